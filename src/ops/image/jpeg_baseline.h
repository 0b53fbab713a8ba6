// SPDX-License-Identifier: Apache-2.0
// Baseline JPEG, our own way: only the region that is asked for is reconstructed, rows below it are
// not even parsed, and with an index neither is what lies above and beside it. For sound files of
// all baseline layouts; whatever is odd about a file is left to libjpeg-turbo, whose pixels these
// are to the bit.
#pragma once

#include <cstdint>
#include <vector>

#include "cutwater/op.h"
#include "ops/image/codec.h"
#include "ops/image/jpeg_planes.h"
#include "ops/image/jpeg_scan.h"
#include "ops/image/jpeg_symbols.h"

namespace cutwater::image {

// What the headers say, if the file is one that we decode ourselves. The scan refers to the file
// and to tables of this thread: it is good until the next call.
bool read_baseline_scan(Bytes file, BaselineScan& scan);

// Reconstructs a region's samples. False: the file is not ours to decode. `hint` (may be null)
// holds the file's entropy index.
bool decode_baseline(Bytes file, const Region& region, Hint* hint, JpegPlanes& planes);

// Where in its image a part is that has become a file of its own.
struct JpegPlace {
  std::int64_t width = 0, height = 0;  // of the image
  std::int64_t left = 0, top = 0;      // the first MCU
};
// The same from such a file; the region is one of the whole image. False: the file is not ours to
// decode, or does not have what the region needs.
bool decode_baseline_part(Bytes file, const JpegPlace& place, const Region& region,
                          JpegPlanes& planes);

// Appends a JPEG of just the MCUs that a region is made from, with the file's own codes
// (jpeg_copy.h), and tells which they are. False: the file is not ours to decode, has restarts, has
// no code for what must be said, or it would be `limit` bytes or more; what was appended then means
// nothing.
bool copy_baseline_part(Bytes file, const Region& region, Hint* hint, std::size_t limit,
                        JpegWindow& window, std::vector<std::uint8_t>& out);

// The MCUs that a region is made from, read just as decode_baseline would. False: the file is not
// ours to decode, or what is left of it would be none of ours.
bool read_baseline_part(Bytes file, const Region& region, Hint* hint, JpegPart& part);

// The file's coefficient form (coefficients.h). False: the file is not ours to decode.
bool baseline_coefficients(Bytes file, int exif_orientation, std::vector<std::uint8_t>& form);

}  // namespace cutwater::image
