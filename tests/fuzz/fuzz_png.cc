// SPDX-License-Identifier: Apache-2.0
// PNG, as it comes and with the checksums of its chunks set right: else none would be read.
#include <zlib.h>

#include <algorithm>

#include "image.h"
#include "ops/image/codec_common.h"

namespace cutwater::fuzz {
namespace {

std::vector<std::uint8_t> with_checksums(Input file) {
  std::vector<std::uint8_t> out(file.begin(), file.end());
  constexpr std::size_t kSignature = 8, kAround = 12;  // length, type and checksum
  std::size_t at = kSignature;
  while (at < file.size() && file.size() - at >= kAround) {
    const std::size_t length = image::be32(file, at);
    if (length > file.size() - at - kAround) break;
    const auto sum = crc32(0, file.data() + at + 4, static_cast<unsigned>(length + 4));
    for (std::size_t i = 0; i < 4; ++i)
      out[at + 8 + length + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    at += kAround + length;
  }
  return out;
}

}  // namespace

FUZZ_TARGET(png) {
  if (!image::starts_with(input, "\x89PNG")) return;
  checked_decode(input);
  const std::vector<std::uint8_t> repaired = with_checksums(input);
  if (!std::ranges::equal(repaired, input)) checked_decode(repaired);
}

}  // namespace cutwater::fuzz
