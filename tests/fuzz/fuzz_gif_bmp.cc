// SPDX-License-Identifier: Apache-2.0
// GIF and BMP, and whatever is no image at all: the formats that libraries have no part in.
#include "image.h"
#include "ops/image/codec_common.h"

namespace cutwater::fuzz {

FUZZ_TARGET(gif_bmp) {
  if (image::starts_with(input, "\xFF\xD8") || image::starts_with(input, "\x89PNG") ||
      image::starts_with(input, "RIFF"))
    return;
  checked_decode(input);
}

}  // namespace cutwater::fuzz
