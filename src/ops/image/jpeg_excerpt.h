// SPDX-License-Identifier: Apache-2.0
// An excerpt of a JPEG: those of its MCUs that some region is made from, as a JPEG of their own
// that knows its place in the image. The pixels of the region are those of the whole file, to the
// bit. What a storage sends where it knows the draws. EXCERPT.md tells its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "cutwater/op.h"
#include "ops/image/codec.h"
#include "ops/image/jpeg_baseline.h"
#include "ops/image/jpeg_planes.h"

namespace cutwater::image {

// Whether the bytes are (or claim to be) an excerpt.
bool is_jpeg_excerpt(Bytes bytes);

// Replaces `out` by an excerpt of a JPEG for a region of it, as stored. False: there is none that
// is smaller than the file, or the file is not ours to decode; `out` then means nothing. `header`
// is what read_header() gave for this file, `hint` (may be null) its entropy index. Throws
// Error(kBadSample) where decoding the file would.
bool write_jpeg_excerpt(Bytes file, const Header& header, const Limits& limits,
                        const Region& region, Hint* hint, std::vector<std::uint8_t>& out);

// About the share of the file's bytes that an excerpt has, from the header; 1: there is none.
// Throws Error(kBadSample) where reading the header does. REQUIRES: the region is not empty.
double jpeg_excerpt_share(Bytes file, const Region& region);

// An excerpt that somebody else holds.
class JpegExcerpt {
 public:
  // Throws Error(kBadSample) where the bytes are no such excerpt.
  JpegExcerpt(Bytes excerpt, const Limits& limits);

  // That of the whole image.
  const Header& header() const { return header_; }
  // Reconstructs a region's samples. Throws Error(kBadSample), also where the region needs what is
  // not in the excerpt.
  void reconstruct(const Region& region, JpegPlanes& planes) const;

 private:
  Bytes jpeg_;
  Header header_;
  JpegPlace place_;
  McuWindow mcus_;      // of the image
  JpegGeometry image_;  // but for its colors
};

}  // namespace cutwater::image
