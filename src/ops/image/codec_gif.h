// SPDX-License-Identifier: Apache-2.0
// The first frame of a GIF, by code of our own: the decoder is short, and only so does a damaged
// file give what Pillow gives. Private to codec.cc.
#pragma once

#include "ops/image/codec.h"

namespace cutwater::image {

Header read_gif_header(Bytes file, const Limits& limits);
void decode_gif(Bytes file, const TensorSpan& out);

}  // namespace cutwater::image
