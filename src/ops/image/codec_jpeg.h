// SPDX-License-Identifier: Apache-2.0
// JPEG, by libjpeg-turbo. Private to codec*.cc and jpeg_excerpt.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/image/codec.h"
#include "ops/image/jpeg_symbols.h"

namespace cutwater::image {

// What the markers up to the first scan say.
struct JpegFrame {
  struct Component {
    std::int64_t h = 1, v = 1;  // sampling factors
  };

  std::int64_t width = 0, height = 0;
  int components = 0;  // 1 gray, 3 colour, 4 CMYK; 0 until a frame header was seen
  std::array<Component, 4> sampling;
  bool progressive = false;
  int scan_components = 0;  // of the first scan
  std::size_t scan_at = 0;  // where the first scan's data begin
  int exif_orientation = 1;

  // All rows come from one pass over the data; otherwise all coefficients are kept in memory.
  bool single_scan() const { return !progressive && scan_components == components; }
};

// Walks the markers just as Pillow does, and refuses what its walk refuses.
JpegFrame read_jpeg_frame(Bytes file);

// Refuses a file of more scans than so many; the first one's data begin at `at`.
void check_scans(Bytes file, std::size_t at, std::int64_t limit);

Header read_jpeg_header(Bytes file, const Limits& limits);
void decode_jpeg(Bytes file, const Header& header, const Limits& limits, const TensorSpan& out);

// The MCUs that a region of a progressive JPEG is made from. False: it is not progressive, or not a
// sound one of a kind that a baseline JPEG can be. Throws Error(kBadSample) where decoding does.
bool read_progressive_part(Bytes file, const Header& header, const Limits& limits,
                           const Region& region, JpegPart& part);

}  // namespace cutwater::image
