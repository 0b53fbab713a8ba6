// SPDX-License-Identifier: Apache-2.0
// The inner loops of resizing, as SIMD: chosen at run time by what the processor has. All levels
// give the same bytes: the arithmetic is integer and exact.
#pragma once

#include <cstdint>

#include "ops/image/row_stream.h"

namespace cutwater::image {

inline constexpr int kWeightBits = 32 - 8 - 2;  // eight bits of pixel and two of headroom
inline constexpr std::int64_t kTapGroup = 4;    // taps that are weighed at once

// One axis of a resize. Output i is
//   clamp((half + sum over t < taps of in[first[i] + t] * weights[i * taps + t]) >> kWeightBits).
// first[] never falls. taps is a multiple of kTapGroup: weights that stand for no input are 0, and
// first[i] + taps <= inputs rounded up to kTapGroup. Weights are in -2..2, and so are their sums.
struct AxisView {
  const std::int32_t* first = nullptr;
  const std::int32_t* weights = nullptr;
  std::int64_t taps = 0, outputs = 0, inputs = 0;
};

// A table holds the weights as the kernels of this processor read them. Its memory is the caller's,
// aligned to 64 bytes.
std::int64_t column_table_bytes(const AxisView& axis);
std::int64_t row_table_bytes(const AxisView& axis);

// Planes of a filtered row are a multiple of this apart, so that whole vectors can be written.
inline constexpr std::int64_t kPlaneStep = 32;

// Along the row: out[c * plane_stride + i] is output i of in.plane[c], or output outputs - 1 - i
// where mirrored. Writes up to the next multiple of kPlaneStep; reads into the slack of `in`.
void make_column_table(const AxisView& axis, bool mirrored, std::uint8_t* table);
void filter_columns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                    std::uint8_t* out, std::int64_t plane_stride);

// Across rows: out[i] for i in [0, count) is output `output` of rows[0][i], rows[1][i]... (taps of
// them, the first being number first[output] of the axis). Reads and writes up to kRowSlack behind.
void make_row_table(const AxisView& axis, std::uint8_t* table);
void filter_rows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                 const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out);

}  // namespace cutwater::image
