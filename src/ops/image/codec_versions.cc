// SPDX-License-Identifier: Apache-2.0
#include "ops/image/codec_versions.h"

#include <jconfig.h>
#include <webp/demux.h>
#include <zlib.h>

namespace cutwater::image {
namespace {

// 0x010204 → "1.2.4"
std::string dotted(int version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff) + "." +
         std::to_string(version & 0xff);
}

// 2001005 → "2.1.5"
std::string dotted_decimal(int version) {
  return std::to_string(version / 1000000) + "." + std::to_string(version / 1000 % 1000) + "." +
         std::to_string(version % 1000);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> codec_versions() {
  return {{"jpeg", "own, and libjpeg-turbo " + dotted_decimal(LIBJPEG_TURBO_VERSION_NUMBER)},
          {"png", "own, on zlib " ZLIB_VERSION},
          {"webp", "libwebp " + dotted(WebPGetDemuxVersion())},
          {"gif", "own"},
          {"bmp", "own"}};
}

}  // namespace cutwater::image
