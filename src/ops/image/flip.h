// SPDX-License-Identifier: Apache-2.0
// What the two flips share: the draw, and the copy of a mirrored image.
#pragma once

#include <cstdint>
#include <cstring>

#include "cutwater/op.h"
#include "ops/image/image_ops.h"

namespace cutwater::image {

struct FlipDraw {
  bool flip = false;
  static constexpr std::tuple kFields{Param{"flip", &FlipDraw::flip}};
};

enum class Axis : bool { kRows, kColumns };

// A flip with probability p over one axis. Not an op itself: the two op files give it its name.
template <Axis kAxis>
struct Flip {
  double p = 0.5;

  using Draw = FlipDraw;

  void check(std::string_view name) const {
    if (!(p >= 0 && p <= 1))
      throw Error(Code::kInvalidArgument,
                  std::string(name) + ": p must be in 0..1, got " + to_text(Value{p}));
  }
  Draw draw(const TensorSpec&, Rng rng) const { return {rng.uniform() < p}; }

  static Region mirrored(const TensorSpec& image, const Region& part) {
    Region other = part;
    if (kAxis == Axis::kRows)
      other.top = image.shape[0] - part.top - part.height;
    else
      other.left = image.shape[1] - part.left - part.width;
    return other;
  }
  Region needs(const TensorSpec& in, const Draw& draw, const Region& out) const {
    return draw.flip ? mirrored(in, out) : out;
  }
  void apply(const TensorView& in, const Draw& draw, const TensorSpan& out) const {
    const Region& make = out.present();
    const auto pixel_bytes = static_cast<std::size_t>(in.pixel_bytes());
    for (std::int64_t y = make.top; y < make.top + make.height; ++y) {
      const bool flip_rows = draw.flip && kAxis == Axis::kRows;
      const std::int64_t from = flip_rows ? in.dim(0) - 1 - y : y;
      std::uint8_t* to = out.pixel(y, make.left);
      if (!draw.flip || kAxis == Axis::kRows) {
        std::memcpy(to, in.pixel(from, make.left),
                    static_cast<std::size_t>(make.width) * pixel_bytes);
        continue;
      }
      const std::uint8_t* last = in.pixel(from, in.dim(1) - 1 - make.left);
      for (std::int64_t x = 0; x < make.width; ++x, to += pixel_bytes, last -= pixel_bytes)
        for (std::size_t c = 0; c < pixel_bytes; ++c) to[c] = last[c];
    }
  }
};

}  // namespace cutwater::image
