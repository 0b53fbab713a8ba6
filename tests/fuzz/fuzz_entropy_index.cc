// SPDX-License-Identifier: Apache-2.0
// Any bytes as the entropy index of some JPEGs. One that names another content changes no pixel.
// One that lies about the right content may lead to other pixels, not out of the data.
#include <xxhash.h>

#include <cstring>

#include "image.h"
#include "ops/image/test_jpeg.h"

namespace cutwater::fuzz {
namespace {

constexpr std::size_t kContentAt = 1, kHeader = 9;

const std::vector<image::Data>& files() {
  static const std::vector<image::Data> kFiles = [] {
    std::mt19937 random(1);
    std::vector<image::Data> made;
    for (const image::JpegLayout& layout : image::kLayouts)
      made.push_back(
          image::encode({.width = 300, .height = 50, .layout = layout, .quality = 30}, random));
    return made;
  }();
  return kFiles;
}

}  // namespace

FUZZ_TARGET(entropy_index) {
  if (input.empty()) return;
  const image::Data& file = files()[input[0] % files().size()];
  std::vector<std::uint8_t> known(input.begin() + 1, input.end());
  const std::uint64_t content = XXH3_64bits(file.data(), file.size());
  if (known.size() < kHeader || std::memcmp(known.data() + kContentAt, &content, 8) != 0)
    require(checked_decode(file, known).pixels.has_value(), "sound files are decoded");
  if (known.size() < kHeader) return;
  known[0] = 2;
  std::memcpy(known.data() + kContentAt, &content, sizeof content);
  decode_parts(file, known);
}

}  // namespace cutwater::fuzz
