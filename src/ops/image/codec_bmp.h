// SPDX-License-Identifier: Apache-2.0
// BMP, by code of our own. Private to codec.cc.
#pragma once

#include "ops/image/codec.h"

namespace cutwater::image {

Header read_bmp_header(Bytes file, const Limits& limits);
void decode_bmp(Bytes file, const TensorSpan& out);

}  // namespace cutwater::image
