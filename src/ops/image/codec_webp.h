// SPDX-License-Identifier: Apache-2.0
// WebP, the first frame, by libwebp's animation decoder as Pillow does. Private to codec.cc.
#pragma once

#include "ops/image/codec.h"

namespace cutwater::image {

Header read_webp_header(Bytes file, const Limits& limits);
void decode_webp(Bytes file, const Header& header, const TensorSpan& out);

}  // namespace cutwater::image
