// SPDX-License-Identifier: Apache-2.0
// Resizing exactly as Pillow does it: separable filters, 22-bit fixed-point weights, a rounding to
// uint8 after each of the two passes. Row by row: what lies between the passes stays in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cutwater/param.h"
#include "cutwater/tensor.h"
#include "ops/image/row_stream.h"

namespace cutwater::image {

enum class Interpolation : std::uint8_t {
  kNearest,
  kNearestExact,  // torchvision's name; on Pillow images the same as nearest
  kBilinear,
  kBicubic,
  kBox,
  kHamming,
  kLanczos,
};

// Which Pillow's pixels to give. Up to 12 the rows were always filtered first; from 13 on the
// columns are, where that leaves less work; each pass rounds, so the order shows in the last bit.
inline constexpr std::int64_t kNewestPillow = 13, kOldestPillow = 12;

// Throws Error(kInvalidArgument) unless `pillow` is one of the above.
void require_pillow(std::string_view op, std::int64_t pillow);

struct Resample {
  Interpolation interpolation = Interpolation::kBilinear;
  std::int64_t pillow = kNewestPillow;
};

// The part `box` of an image becomes an image of height x width, which is turned left to right
// where mirrored; of that, the region `make` is wanted.
struct Resizing {
  Region box;
  std::int64_t height = 0, width = 0;
  Resample how;
  Region make;
  bool mirrored = false;
};

// The part of the input that is read for it.
Region resample_needs(const Resizing& resizing);

// Reads rows of resample_needs(), from its top on, and puts those of `make`. Images of 1 or 3
// channels.
void resample_rows(const Resizing& resizing, std::int64_t channels, RowReader& in, RowWriter& out);

// The same for whole tensors: resizes the part `box` of `in` to the whole of out's spec, and writes
// out.present().
void resample(const TensorView& in, const Region& box, const Resample& how, const TensorSpan& out);
Region resample_needs(const Region& box, std::int64_t out_height, std::int64_t out_width,
                      const Resample& how, const Region& out);

}  // namespace cutwater::image

template <>
struct cutwater::EnumNames<cutwater::image::Interpolation> {
  static constexpr std::array<std::string_view, 7> kNames = {
      "nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos"};
  static constexpr std::string_view kExpected =
      "one of nearest, nearest-exact, bilinear, bicubic, box, hamming, lanczos";
};
