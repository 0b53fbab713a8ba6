// SPDX-License-Identifier: Apache-2.0
// Image files to RGB pixels, exactly as Pillow's Image.open(...).convert("RGB"). Private to decode.
//
// One file per format; codec.cc tells formats apart by their first bytes, never by a file name.
// What Pillow refuses is refused here (Error kBadSample with the reason); what it accepts with a
// warning gives its pixels. Differences that we chose are listed in docs/images.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cutwater/tensor.h"

namespace cutwater::image {

using Bytes = std::span<const std::uint8_t>;

// Checked from the header, before any memory is asked for.
struct Limits {
  std::int64_t max_pixels = 178'956'970;           // Pillow's own refusal
  std::int64_t max_bytes = std::int64_t{1} << 30;  // of the encoded file
  std::int64_t max_scans = 256;                    // of a JPEG that has several
};

enum class Format : std::uint8_t { kJpeg, kPng, kWebp, kBmp, kGif };

std::string_view name_of(Format format);

struct Header {
  Format format = Format::kJpeg;
  std::int64_t height = 0, width = 0;  // as stored, before any EXIF rotation
  int exif_orientation = 1;            // 1..8; 1 where there is none
  std::int64_t scratch_bytes = 0;      // what decoding allocates besides its output, at most
};

// Parses as little as tells the size. Throws Error(kBadSample).
Header read_header(Bytes file, const Limits& limits);

// Writes the pixels of out.present() (a region of the whole height x width x 3 u8 image). The
// pixels, and whether the file is refused, do not depend on the region. `header` is what
// read_header() gave for this file. Throws Error(kBadSample).
void decode_rgb(Bytes file, const Header& header, const Limits& limits, const TensorSpan& out);

}  // namespace cutwater::image
