// SPDX-License-Identifier: Apache-2.0
// The pass across rows. Compiled once per SIMD level.
#define HWY_WANT_AVX3_DL
#include <cstring>

#include "ops/image/resize_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/resize_rows.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/image/weighted_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if CUTWATER_PLAIN_LEVEL

// A table is the axis itself.
std::int64_t RowTableBytes(const AxisView& axis) {
  return axis.outputs * axis.taps * static_cast<std::int64_t>(sizeof(std::int32_t));
}

void MakeRowTable(const AxisView& axis, std::uint8_t* table) {
  std::memcpy(table, axis.weights,
              static_cast<std::size_t>(axis.outputs * axis.taps) * sizeof(std::int32_t));
}

void FilterRows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out) {
  const auto* weights = reinterpret_cast<const std::int32_t*>(table) + output * taps;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int32_t sum = kHalf;
    for (std::int64_t t = 0; t < taps; ++t) sum += rows[t][i] * weights[t];
    out[i] = clamped(sum);
  }
}

#else

std::int64_t RowTableBytes(const AxisView& axis) {
  return axis.outputs * axis.taps / kTapGroup * kParts *
         static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void MakeRowTable(const AxisView& axis, std::uint8_t* table) {
  auto* words = reinterpret_cast<std::uint32_t*>(table);
  for (std::int64_t t = 0; t < axis.outputs * axis.taps; t += kTapGroup, words += kParts)
    split_weights(axis.weights + t, words);
}

// Four rows as four vectors of four bytes a lane, in the order of packed().
template <class D8, class V>
HWY_INLINE void weave(D8 d8, const std::uint8_t* const* rows, std::int64_t at, V* taps) {
  const hn::Repartition<std::uint16_t, D8> d16;
  const hn::DFromV<V> d32;
  const auto a = hn::LoadU(d8, rows[0] + at), b = hn::LoadU(d8, rows[1] + at);
  const auto c = hn::LoadU(d8, rows[2] + at), d = hn::LoadU(d8, rows[3] + at);
  const auto ab_low = hn::BitCast(d16, hn::InterleaveLower(d8, a, b));
  const auto ab_high = hn::BitCast(d16, hn::InterleaveUpper(d8, a, b));
  const auto cd_low = hn::BitCast(d16, hn::InterleaveLower(d8, c, d));
  const auto cd_high = hn::BitCast(d16, hn::InterleaveUpper(d8, c, d));
  taps[0] = hn::BitCast(d32, hn::InterleaveLower(d16, ab_low, cd_low));
  taps[1] = hn::BitCast(d32, hn::InterleaveUpper(d16, ab_low, cd_low));
  taps[2] = hn::BitCast(d32, hn::InterleaveLower(d16, ab_high, cd_high));
  taps[3] = hn::BitCast(d32, hn::InterleaveUpper(d16, ab_high, cd_high));
}

void FilterRows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out) {
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::Repartition<std::int32_t, decltype(d8)> d32;
  using V = hn::Vec<decltype(d32)>;
  const auto step = static_cast<std::int64_t>(hn::Lanes(d8));
  const std::int32_t* group =
      reinterpret_cast<const std::int32_t*>(table) + output * (taps / kTapGroup) * kParts;
  const auto set_words = [&](const std::int32_t* from, V* words) HWY_ATTR {
    for (int p = 0; p < kParts; ++p) words[p] = hn::Set(d32, from[p]);
  };
  V words[kParts], bytes[4], values[4];
  if (taps == kTapGroup) {
    set_words(group, words);
    const std::uint8_t* const four[] = {rows[0], rows[1], rows[2], rows[3]};
    for (std::int64_t i = 0; i < count; i += step) {
      weave(d8, four, i, bytes);
      for (int q = 0; q < 4; ++q) values[q] = values_of(d32, bytes[q], words);
      hn::StoreU(packed(values), d8, out + i);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; i += step) {
    Sums<decltype(d32)> sums[4];
    for (std::int64_t t = 0; t < taps; t += kTapGroup) {
      set_words(group + t / kTapGroup * kParts, words);
      weave(d8, rows + t, i, bytes);
      for (int q = 0; q < 4; ++q) sums[q].add(bytes[q], words);
    }
    for (int q = 0; q < 4; ++q) values[q] = sums[q].values();
    hn::StoreU(packed(values), d8, out + i);
  }
}

#endif

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(RowTableBytes);
HWY_EXPORT(MakeRowTable);
HWY_EXPORT(FilterRows);

std::int64_t row_table_bytes(const AxisView& axis) {
  return HWY_DYNAMIC_DISPATCH(RowTableBytes)(axis);
}
void make_row_table(const AxisView& axis, std::uint8_t* table) {
  HWY_DYNAMIC_DISPATCH(MakeRowTable)(axis, table);
}
void filter_rows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                 const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(FilterRows)(table, taps, output, rows, count, out);
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
