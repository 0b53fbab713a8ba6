// SPDX-License-Identifier: Apache-2.0
// WebP, as it comes and with the size in its header set right: else libwebp looks no further.
#include <algorithm>

#include "image.h"
#include "ops/image/codec_common.h"

namespace cutwater::fuzz {

FUZZ_TARGET(webp) {
  if (!image::starts_with(input, "RIFF") || input.size() < 8) return;
  checked_decode(input);
  std::vector<std::uint8_t> repaired(input.begin(), input.end());
  for (std::size_t i = 0; i < 4; ++i)
    repaired[4 + i] = static_cast<std::uint8_t>((input.size() - 8) >> (8 * i));
  if (!std::ranges::equal(repaired, input)) checked_decode(repaired);
}

}  // namespace cutwater::fuzz
