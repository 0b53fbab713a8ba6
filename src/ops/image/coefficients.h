// SPDX-License-Identifier: Apache-2.0
// The coefficient form: a baseline JPEG after entropy decoding, before reconstruction, as compact
// bytes that caches, shards and the wire can hold. About 2.2 times the file, and the pixels of any
// region are some three times faster to have. COEFFICIENTS.md tells its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/image/codec.h"
#include "ops/image/jpeg_planes.h"
#include "ops/image/jpeg_scan.h"

namespace cutwater::image {

// Whether the bytes are (or claim to be) a coefficient form.
bool is_coefficient_form(Bytes bytes);

// False: the scan is not sound, and `out` means nothing.
bool write_coefficients(const BaselineScan& scan, const ScanBits& bits, int exif_orientation,
                        std::vector<std::uint8_t>& out);

// A form that somebody else holds.
class CoefficientForm {
 public:
  // Throws Error(kBadSample) where the bytes are no such form.
  explicit CoefficientForm(Bytes form);

  const JpegGeometry& geometry() const { return geometry_; }
  int exif_orientation() const { return exif_orientation_; }
  // Reconstructs a region's samples. Throws Error(kBadSample).
  void reconstruct(const Region& region, JpegPlanes& planes) const;

 private:
  struct Row {
    const std::uint8_t *masks, *dcs, *values, *end;
  };
  Row row(std::size_t c, std::int64_t y) const;

  Bytes form_;
  JpegGeometry geometry_;
  int exif_orientation_ = 1;
  std::array<Quantizer, 3> quantizers_{};
  std::array<std::int64_t, 3> first_row_{};  // of each component, in the table of rows
  std::size_t table_ = 0, rows_ = 0;         // where that table is, and the end of what may be read
};

}  // namespace cutwater::image
