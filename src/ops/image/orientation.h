// SPDX-License-Identifier: Apache-2.0
// EXIF orientation: how a stored image must be turned to stand upright, as Pillow's exif_transpose.
#pragma once

#include <cstdint>
#include <cstring>

#include "cutwater/tensor.h"

namespace cutwater::image {

class Orientation {
 public:
  explicit Orientation(int exif) : exif_(exif) {}

  bool is_upright() const { return exif_ == 1; }

  TensorSpec upright(const TensorSpec& stored) const {
    if (!swaps_axes()) return stored;
    return {stored.dtype, {stored.shape[1], stored.shape[0], stored.shape[2]}, stored.layout};
  }

  // The part of the stored image that becomes this part of the upright one.
  Region stored_region(const TensorSpec& stored, const Region& part) const {
    const Place a = stored_place(stored, part.top, part.left);
    const Place b = stored_place(stored, part.top + part.height - 1, part.left + part.width - 1);
    const std::int64_t top = a.y < b.y ? a.y : b.y, left = a.x < b.x ? a.x : b.x;
    return {top, left, a.y + b.y - 2 * top + 1, a.x + b.x - 2 * left + 1};
  }

  // Writes out.present() of the upright image.
  void turn(const TensorView& stored, const TensorSpan& out) const {
    const Region& make = out.present();
    for (std::int64_t y = make.top; y < make.top + make.height; ++y)
      for (std::int64_t x = make.left; x < make.left + make.width; ++x) {
        const Place from = stored_place(stored.spec(), y, x);
        std::memcpy(out.pixel(y, x), stored.pixel(from.y, from.x), 3);
      }
  }

 private:
  struct Place {
    std::int64_t y, x;
  };

  bool swaps_axes() const { return exif_ >= 5; }

  // Where the upright image's pixel (y, x) is stored.
  Place stored_place(const TensorSpec& stored, std::int64_t y, std::int64_t x) const {
    const std::int64_t last_y = stored.shape[0] - 1, last_x = stored.shape[1] - 1;
    switch (exif_) {
      case 2: return {y, last_x - x};
      case 3: return {last_y - y, last_x - x};
      case 4: return {last_y - y, x};
      case 5: return {x, y};
      case 6: return {last_y - x, y};
      case 7: return {last_y - x, last_x - y};
      case 8: return {x, last_x - y};
      default: return {y, x};
    }
  }

  int exif_;
};

}  // namespace cutwater::image
