// SPDX-License-Identifier: Apache-2.0
// JPEG as Pillow decodes it: plain libjpeg, fed with blocks of 64 KiB, row by row.
#pragma once

#include <cstdint>
#include <optional>

#include "image.h"

namespace cutwater::fuzz {

// What Pillow takes from its own walk over the markers.
struct JpegClaims {
  std::int64_t width, height;
  int components;
};

// None where Pillow would refuse the file, and where libjpeg contradicts the claims.
std::optional<Pixels> decode_as_pillow(Input file, const JpegClaims& claims);

}  // namespace cutwater::fuzz
