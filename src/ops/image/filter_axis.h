// SPDX-License-Identifier: Apache-2.0
// The weights of one axis of a resize, in Pillow's arithmetic: doubles, rounded to 22-bit fixed
// point. Private to resampling.
#pragma once

#include <cstdint>

#include "ops/image/resample.h"
#include "ops/image/resize_kernels.h"
#include "ops/image/scratch.h"

namespace cutwater::image {

// Inputs [low, low + count) of an axis.
struct AxisPart {
  std::int64_t low = 0, count = 0;
};

// What the outputs [begin, end) read, of an axis that makes `out` pixels of `in`.
AxisPart axis_reads(Interpolation filter, std::int64_t in, std::int64_t out, std::int64_t begin,
                    std::int64_t end);

class FilterAxis {
 public:
  FilterAxis(Interpolation filter, std::int64_t in, std::int64_t out, std::int64_t begin,
             std::int64_t end);

  // Counted from the first input that is read: input 0 of the view is input axis_reads().low.
  const AxisView& view() const { return view_; }

 private:
  Scratch memory_;
  AxisView view_;
};

}  // namespace cutwater::image
