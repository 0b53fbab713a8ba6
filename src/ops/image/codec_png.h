// SPDX-License-Identifier: Apache-2.0
// PNG, by zlib. Not by libpng: Pillow does not use it either, and what a damaged file gives depends
// on how the chunks, the checksums and the end of the data are treated. Private to codec.cc.
#pragma once

#include "ops/image/codec.h"

namespace cutwater::image {

Header read_png_header(Bytes file, const Limits& limits);
void decode_png(Bytes file, const Header& header, const TensorSpan& out);

}  // namespace cutwater::image
