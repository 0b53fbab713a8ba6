// SPDX-License-Identifier: Apache-2.0
// Compiled once per SIMD level. Filtering along a row is filtering across rows of the transposed
// tile, so there is one arithmetic loop: bytes times weights, lane by lane.
#include "ops/image/filter_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/filter_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

// One vector of outputs at `at`.
template <class D32>
HWY_INLINE void filter_vector(D32 d32, const std::uint8_t* rows, std::int64_t row_bytes,
                              const std::int32_t* weights, std::int64_t taps, std::uint8_t* out) {
  const hn::Rebind<std::uint8_t, D32> d8;
  auto sum = hn::Set(d32, kHalf);
  for (std::int64_t t = 0; t < taps; ++t) {
    const auto pixels = hn::PromoteTo(d32, hn::LoadU(d8, rows + t * row_bytes));
    sum = hn::Add(sum, hn::Mul(pixels, hn::Set(d32, weights[t])));
  }
  hn::StoreU(hn::DemoteTo(d8, hn::ShiftRight<kWeightBits>(sum)), d8, out);
}

void FilterBytes(const std::uint8_t* rows, std::int64_t row_bytes, const std::int32_t* weights,
                 std::int64_t taps, std::int64_t count, std::uint8_t* out) {
  const hn::ScalableTag<std::int32_t> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    filter_vector(d32, rows + i, row_bytes, weights, taps, out + i);
  const hn::CappedTag<std::int32_t, 1> d1;
  for (; i < count; ++i) filter_vector(d1, rows + i, row_bytes, weights, taps, out + i);
}

// out[j][i] = in[i][j] for a tile of 16 x 16 bytes.
HWY_INLINE void transpose_tile(const std::uint8_t* in, std::int64_t in_stride, std::uint8_t* out,
                               std::int64_t out_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t i = 0; i < kTile; ++i)
    for (std::int64_t j = 0; j < kTile; ++j) out[j * out_stride + i] = in[i * in_stride + j];
#else
  // Each stage interleaves vectors that are half the tile apart; four stages transpose it.
  const hn::FixedTag<std::uint8_t, 16> d8;
  hn::Vec<decltype(d8)> tile[16], mixed[16];
  const auto interleave = [d8](const auto* from, auto* to) HWY_ATTR {
    for (int i = 0; i < 8; ++i) {
      to[2 * i] = hn::InterleaveLower(d8, from[i], from[i + 8]);
      to[2 * i + 1] = hn::InterleaveUpper(d8, from[i], from[i + 8]);
    }
  };
  for (std::int64_t i = 0; i < kTile; ++i) tile[i] = hn::LoadU(d8, in + i * in_stride);
  interleave(tile, mixed);
  interleave(mixed, tile);
  interleave(tile, mixed);
  interleave(mixed, tile);
  for (std::int64_t i = 0; i < kTile; ++i) hn::StoreU(tile[i], d8, out + i * out_stride);
#endif
}

// Transposes rows x columns bytes, both padded to whole tiles in memory that may be read and
// written.
void transpose(const std::uint8_t* in, std::int64_t in_stride, std::int64_t columns,
               std::uint8_t* out) {
  for (std::int64_t x = 0; x < columns; x += kTile)
    transpose_tile(in + x, in_stride, out + x * kTile, kTile);
}

void FilterRows(const std::uint8_t* in, std::int64_t in_stride, std::int64_t rows,
                std::int64_t in_pixels, std::int64_t origin, std::int64_t channels,
                const AxisView& axis, std::uint8_t* out, std::int64_t out_stride,
                std::uint8_t* work) {
  const std::int64_t in_bytes = in_pixels * channels, out_bytes = axis.outputs * channels;
  const std::int64_t in_padded = (in_bytes + kTile - 1) / kTile * kTile;
  const std::int64_t out_padded = (out_bytes + kTile - 1) / kTile * kTile;
  std::uint8_t* tall = work;                           // in_padded columns of kTile rows
  std::uint8_t* filtered = tall + in_padded * kTile;   // out_padded columns of kTile rows
  std::uint8_t* edge = filtered + out_padded * kTile;  // a tile that reaches over the edge

  const std::int64_t whole = rows == kTile ? in_bytes / kTile * kTile : 0;
  transpose(in, in_stride, whole, tall);
  for (std::int64_t x = whole; x < in_bytes; x += kTile) {
    const std::int64_t width = in_bytes - x < kTile ? in_bytes - x : kTile;
    for (std::int64_t r = 0; r < kTile; ++r)
      for (std::int64_t i = 0; i < kTile; ++i)
        edge[r * kTile + i] = r < rows && i < width ? in[r * in_stride + x + i] : std::uint8_t{0};
    transpose_tile(edge, kTile, tall + x * kTile, kTile);
  }

  const std::int64_t column = channels * kTile;
  for (std::int64_t x = 0; x < axis.outputs; ++x)
    FilterBytes(tall + (axis.first[x] - origin) * column, column, axis.weights + x * axis.taps,
                axis.count[x], column, filtered + x * column);

  for (std::int64_t x = 0; x < out_bytes; x += kTile) {
    const std::int64_t width = out_bytes - x < kTile ? out_bytes - x : kTile;
    if (rows == kTile && width == kTile) {
      transpose_tile(filtered + x * kTile, kTile, out + x, out_stride);
      continue;
    }
    transpose_tile(filtered + x * kTile, kTile, edge, kTile);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < width; ++i) out[r * out_stride + x + i] = edge[r * kTile + i];
  }
}

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(FilterBytes);
HWY_EXPORT(FilterRows);

void filter_bytes(const std::uint8_t* rows, std::int64_t row_bytes, const std::int32_t* weights,
                  std::int64_t taps, std::int64_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(FilterBytes)(rows, row_bytes, weights, taps, count, out);
}

void filter_rows(const std::uint8_t* in, std::int64_t in_stride, std::int64_t rows,
                 std::int64_t in_pixels, std::int64_t origin, std::int64_t channels,
                 const AxisView& axis, std::uint8_t* out, std::int64_t out_stride,
                 std::uint8_t* work) {
  HWY_DYNAMIC_DISPATCH(FilterRows)
  (in, in_stride, rows, in_pixels, origin, channels, axis, out, out_stride, work);
}

std::int64_t filter_rows_work(std::int64_t in_pixels, std::int64_t outputs, std::int64_t channels) {
  const auto padded = [&](std::int64_t pixels) {
    return (pixels * channels + kTile - 1) / kTile * kTile;
  };
  return (padded(in_pixels) + padded(outputs) + kTile) * kTile;
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
