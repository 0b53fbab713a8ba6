// SPDX-License-Identifier: Apache-2.0
// The inner loops of resampling, as SIMD: chosen at run time by what the processor has. All levels
// give the same bytes: the arithmetic is integer and exact.
#pragma once

#include <cstdint>

namespace cutwater::image {

inline constexpr int kWeightBits = 32 - 8 - 2;  // eight bits of pixel and two of headroom
inline constexpr std::int64_t kTile = 16;       // rows that are filtered together

// out[i] = clamp((half + sum over t of rows[t * row_bytes + i] * weights[t]) >> kWeightBits), for
// i in [0, count).
void filter_bytes(const std::uint8_t* rows, std::int64_t row_bytes, const std::int32_t* weights,
                  std::int64_t taps, std::int64_t count, std::uint8_t* out);

// One axis of a resize, as the kernels read it.
struct AxisView {
  const std::int64_t* first;    // per output: the first input it reads
  const std::int64_t* count;    // per output: how many it reads
  const std::int32_t* weights;  // taps per output
  std::int64_t taps;
  std::int64_t outputs;
};

// Filters up to kTile rows along the row. Row r of the input starts at in + r * in_stride and its
// first pixel is number `origin` of the axis; row r of the output starts at out + r * out_stride.
// `work` has room for filter_rows_work(...) bytes.
void filter_rows(const std::uint8_t* in, std::int64_t in_stride, std::int64_t rows,
                 std::int64_t in_pixels, std::int64_t origin, std::int64_t channels,
                 const AxisView& axis, std::uint8_t* out, std::int64_t out_stride,
                 std::uint8_t* work);
std::int64_t filter_rows_work(std::int64_t in_pixels, std::int64_t outputs, std::int64_t channels);

}  // namespace cutwater::image
