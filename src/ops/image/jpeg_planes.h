// SPDX-License-Identifier: Apache-2.0
// The second half of JPEG decoding: coefficients to samples, samples to rows of RGB. Only the
// region that is asked for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/image/jpeg_geometry.h"
#include "ops/image/jpeg_kernels.h"
#include "ops/image/row_stream.h"

namespace cutwater::image {

using Quantizer = std::array<std::int16_t, 64>;  // in natural order

// The coefficients of one row of MCUs of a window, in groups (jpeg_kernels.h). A thread keeps one.
class BlockStrip {
 public:
  void give_up_large();
  void prepare(const JpegGeometry& geometry, const McuWindow& window);  // all zero
  std::int64_t groups(std::size_t c) const { return groups_[c]; }       // of a row of blocks
  // Block row `y` of this row of MCUs.
  std::int16_t* row(std::size_t c, std::int64_t y) {
    return values_.data() + begins_[c] + y * groups_[c] * kGroupValues;
  }

 private:
  std::vector<std::int16_t> values_;
  std::array<std::int64_t, 3> begins_{}, groups_{};
};

// The components' samples of a window of MCUs. A thread keeps one and uses it again: fresh pages
// cost more than the work done in them.
class JpegPlanes {
 public:
  // Makes room for the region's samples.
  void prepare(const JpegGeometry& geometry, const Region& region);
  // What a huge image took is not kept for ever.
  void give_up_large();

  const McuWindow& window() const { return window_; }

  // Turns coefficients into the samples of MCU row `row`.
  void reconstruct(std::int64_t row, BlockStrip& strip, const std::array<Quantizer, 3>& quantizers,
                   After after);

  friend class PlaneRows;

 private:
  struct Plane {
    std::vector<std::uint8_t> bytes;
    std::int64_t row_bytes = 0, left = 0, top = 0;
    static constexpr std::int64_t kMargin = 64;  // readable and writable on both sides of a row

    // Sample (y, x) of the component.
    std::uint8_t* at(std::int64_t y, std::int64_t x) {
      return bytes.data() + (y - top) * row_bytes + kMargin + (x - left);
    }
  };

  JpegGeometry geometry_;
  McuWindow window_;
  std::array<Plane, 3> planes_;
  std::vector<std::uint8_t> rows_;  // PlaneRows' own
};

// The rows of the region that the planes were prepared for, upsampled and converted.
class PlaneRows final : public RowReader {
 public:
  // REQUIRES: every MCU row of the window was reconstructed.
  PlaneRows(JpegPlanes& planes, const Region& region);
  ~PlaneRows() override { planes_.give_up_large(); }
  PlaneRows(const PlaneRows&) = delete;
  PlaneRows& operator=(const PlaneRows&) = delete;
  PlanarRow next() override;

 private:
  // Row y of a component at the image's resolution, from the region's first column on.
  const std::uint8_t* component_row(std::size_t c, std::int64_t y);
  std::uint8_t* buffer(std::size_t i) { return planes_.rows_.data() + i * buffer_bytes_; }

  JpegPlanes& planes_;
  const JpegGeometry& geometry_;
  const Region region_;
  std::int64_t y_;
  std::size_t buffer_bytes_;
};

}  // namespace cutwater::image
