// SPDX-License-Identifier: Apache-2.0
// The pass along the row. Compiled once per SIMD level.
#define HWY_WANT_AVX3_DL
#include <cstring>

#include "ops/image/resize_kernels.h"
#include "ops/image/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/resize_columns.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/image/weighted_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if CUTWATER_PLAIN_LEVEL

// A table is the axis itself.
struct Table {
  std::int64_t taps, outputs;
};

std::int64_t ColumnTableBytes(const AxisView& axis) {
  return static_cast<std::int64_t>(sizeof(Table)) +
         axis.outputs * (axis.taps + 1) * static_cast<std::int64_t>(sizeof(std::int32_t));
}
void MakeColumnTable(const AxisView& axis, bool mirrored, std::uint8_t* table) {
  const Table head{axis.taps, axis.outputs};
  std::memcpy(table, &head, sizeof head);
  auto* to = reinterpret_cast<std::int32_t*>(table + sizeof head);
  for (std::int64_t x = 0; x < axis.outputs; ++x, to += axis.taps + 1) {
    const std::int64_t i = mirrored ? axis.outputs - 1 - x : x;
    to[0] = axis.first[i];
    for (std::int64_t t = 0; t < axis.taps; ++t) to[1 + t] = axis.weights[i * axis.taps + t];
  }
}

void FilterColumns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                   std::uint8_t* out, std::int64_t plane_stride) {
  Table head;
  std::memcpy(&head, table, sizeof head);
  for (std::int64_t c = 0; c < channels; ++c, out += plane_stride) {
    const auto* record = reinterpret_cast<const std::int32_t*>(table + sizeof head);
    for (std::int64_t x = 0; x < head.outputs; ++x, record += head.taps + 1) {
      const std::uint8_t* from = in.plane[static_cast<std::size_t>(c)] + record[0];
      std::int32_t sum = kHalf;
      for (std::int64_t t = 0; t < head.taps; ++t) sum += from[t] * record[1 + t];
      out[x] = clamped(sum);
    }
  }
}

#else

using Bytes = hn::CappedTag<std::uint8_t, HWY_TARGET == HWY_AVX3_DL ? 64 : 32>;
using Lanes = hn::Repartition<std::int32_t, Bytes>;
using LaneVec = hn::Vec<Lanes>;
constexpr std::int64_t kVector = hn::MaxLanes(Bytes());  // in bytes
constexpr std::int64_t kLanes = kVector / 4, kBlocks = kVector / 16;
// Outputs that are made from one window of the input, by one look-up of bytes.
constexpr std::int64_t kWindow = HWY_TARGET == HWY_AVX3_DL ? 64 : 16, kInWindow = kWindow / 4;
constexpr std::int64_t kWindows = kVector / kWindow;
constexpr std::int64_t kStep = kVector;  // outputs of four vectors

// The head of a table. Behind it: where the windows of each vector begin; then, for each vector, a
// look-up and the words of its weights, four taps after four taps.
struct Table {
  std::int64_t outputs, taps, vectors;
  bool wide;  // outputs lie too far apart for windows: the look-up is where each one begins

  std::int64_t record_bytes() const { return kVector * (1 + taps / kTapGroup * kParts); }
  std::int64_t head_bytes() const {
    return rounded_up(kTableBytes + vectors * kWindows * std::int64_t{sizeof(std::int32_t)},
                      kCacheLine);
  }
  static constexpr std::int64_t kTableBytes = kCacheLine;
};
static_assert(sizeof(Table) <= Table::kTableBytes);

HWY_INLINE Table table_of(const AxisView& axis) {
  const std::int64_t unit = kStep < kPlaneStep ? kStep : kPlaneStep;
  return {axis.outputs, axis.taps, rounded_up(axis.outputs, unit) / kLanes, false};
}

std::int64_t ColumnTableBytes(const AxisView& axis) {
  const Table table = table_of(axis);
  return table.head_bytes() + table.vectors * table.record_bytes();
}

// Which output lane `lane` of vector `vector` makes, so that packed() puts them in order (or, with
// windows as wide as a vector, as good as in order).
HWY_INLINE std::int64_t output_of(std::int64_t vector, std::int64_t lane) {
  if (kWindows == 1 && kBlocks > 1) return vector * kLanes + lane;
  return vector / 4 * kStep + lane / 4 * 16 + vector % 4 * 4 + lane % 4;
}

void MakeColumnTable(const AxisView& axis, bool mirrored, std::uint8_t* memory) {
  Table table = table_of(axis);
  const auto first_of = [&](std::int64_t output) {
    return axis.first[mirrored ? axis.outputs - 1 - output : output];
  };
  // Where the window of this output begins.
  const auto begin_of = [&](std::int64_t output) {
    const std::int64_t one = output / kInWindow * kInWindow;
    const std::int64_t other = one + kInWindow < axis.outputs ? one + kInWindow : axis.outputs;
    return first_of(mirrored ? other - 1 : one);
  };
  for (std::int64_t i = 0; i < axis.outputs && !table.wide; ++i)
    table.wide = first_of(i) - begin_of(i) + kTapGroup > kWindow;
  std::memcpy(memory, &table, sizeof table);

  auto* begins = reinterpret_cast<std::int32_t*>(memory + Table::kTableBytes);
  std::uint8_t* record = memory + table.head_bytes();
  for (std::int64_t v = 0; v < table.vectors; ++v, record += table.record_bytes()) {
    auto* look_up = reinterpret_cast<std::uint32_t*>(record);
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t output = output_of(v, lane);
      const bool made = output < axis.outputs;
      const std::int32_t first = made ? first_of(output) : 0;
      const std::int32_t begin = made ? begin_of(output) : 0;
      if (lane % kInWindow == 0) begins[v * kWindows + lane / kInWindow] = begin;
      if (table.wide)
        look_up[lane % 4 * kBlocks + lane / 4] = static_cast<std::uint32_t>(first);
      else
        look_up[lane] = static_cast<std::uint32_t>(first - begin) * 0x01010101 + 0x03020100;
      static constexpr std::int32_t kNone[kTapGroup] = {};
      const std::int32_t* weights =
          axis.weights + (mirrored ? axis.outputs - 1 - output : output) * axis.taps;
      std::uint32_t* to = look_up + kLanes + lane;
      for (std::int64_t t = 0; t < axis.taps; t += kTapGroup, to += kParts * kLanes) {
        std::uint32_t words[kParts];
        split_weights(made ? weights + t : kNone, words);
        for (int p = 0; p < kParts; ++p) to[p * kLanes] = words[p];
      }
    }
  }
}

// Blocks of 16 bytes from so many places.
template <class D8>
HWY_INLINE hn::Vec<D8> load_blocks(D8 d8, const std::uint8_t* in, const std::int32_t* at) {
  if constexpr (hn::MaxLanes(D8()) == 16) {
    return hn::LoadU(d8, in + *at);
  } else {
    const hn::Half<D8> half;
    return hn::Combine(d8, load_blocks(half, in, at + hn::MaxLanes(half) / 16),
                       load_blocks(half, in, at));
  }
}

// Four bytes a lane, by the look-up of a vector.
HWY_INLINE LaneVec look_up_taps(const std::uint8_t* in, const std::int32_t* begins,
                                hn::Vec<Bytes> look_up) {
  const Bytes d8;
#if HWY_TARGET == HWY_AVX3_DL
  const auto window = hn::LoadU(d8, in + *begins);
  return LaneVec{_mm512_permutexvar_epi8(look_up.raw, window.raw)};
#else
  return hn::BitCast(Lanes(), hn::TableLookupBytes(load_blocks(d8, in, begins), look_up));
#endif
}

// Sixteen bytes a lane from where each output begins, as four vectors of four bytes a lane.
HWY_INLINE void load_taps(const std::uint8_t* in, const std::int32_t* firsts, LaneVec* taps) {
  const Bytes d8;
  const Lanes d32;
  const hn::Repartition<std::uint64_t, Lanes> d64;
  const auto load = [&](int i) HWY_ATTR {
    return hn::BitCast(d32, load_blocks(d8, in, firsts + i * kBlocks));
  };
  const auto a = load(0), b = load(1), c = load(2), d = load(3);
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d32, a, b));
  const auto ab_high = hn::BitCast(d64, hn::InterleaveUpper(d32, a, b));
  const auto cd_low = hn::BitCast(d64, hn::InterleaveLower(d32, c, d));
  const auto cd_high = hn::BitCast(d64, hn::InterleaveUpper(d32, c, d));
  taps[0] = hn::BitCast(d32, hn::InterleaveLower(d64, ab_low, cd_low));
  taps[1] = hn::BitCast(d32, hn::InterleaveUpper(d64, ab_low, cd_low));
  taps[2] = hn::BitCast(d32, hn::InterleaveLower(d64, ab_high, cd_high));
  taps[3] = hn::BitCast(d32, hn::InterleaveUpper(d64, ab_high, cd_high));
}

HWY_INLINE void load_words(const std::uint8_t* from, LaneVec* words) {
  for (int p = 0; p < kParts; ++p)
    words[p] = hn::Load(Lanes(), reinterpret_cast<const std::int32_t*>(from + p * kVector));
}

// How the taps of a row are brought together.
enum class Fetch { kOneLookUp, kLookUps, kLoads };

// One vector of outputs of each plane; the planes share the loads of the table.
template <Fetch kFetch, int kPlanes>
HWY_INLINE void filter_vector(std::int64_t taps, const std::uint8_t* record,
                              const std::int32_t* begins, const std::uint8_t* const* in, int vector,
                              LaneVec (&values)[kPlanes][4]) {
  const Lanes d32;
  const auto look_up = hn::Load(Bytes(), record);
  const std::uint8_t* weights = record + kVector;
  constexpr std::int64_t kWords = kParts * kVector;
  LaneVec words[kParts];
  if constexpr (kFetch == Fetch::kOneLookUp) {
    load_words(weights, words);
    for (int c = 0; c < kPlanes; ++c)
      values[c][vector] = values_of(d32, look_up_taps(in[c], begins, look_up), words);
  } else {
    Sums<Lanes> sums[kPlanes];
    if constexpr (kFetch == Fetch::kLookUps) {
      for (std::int64_t t = 0; t < taps; t += kTapGroup, weights += kWords) {
        load_words(weights, words);
        for (int c = 0; c < kPlanes; ++c)
          sums[c].add(look_up_taps(in[c] + t, begins, look_up), words);
      }
    } else {
      const auto* firsts = reinterpret_cast<const std::int32_t*>(record);
      for (std::int64_t t = 0; t < taps; t += 4 * kTapGroup, weights += 4 * kWords)
        for (int c = 0; c < kPlanes; ++c) {
          LaneVec bytes[4];
          load_taps(in[c] + t, firsts, bytes);
          for (int k = 0; k < 4 && t + k * kTapGroup < taps; ++k) {
            load_words(weights + k * kWords, words);
            sums[c].add(bytes[k], words);
          }
        }
    }
    for (int c = 0; c < kPlanes; ++c) values[c][vector] = sums[c].values();
  }
}

HWY_INLINE hn::Vec<Bytes> in_order(hn::Vec<Bytes> bytes) {
#if HWY_TARGET == HWY_AVX3_DL
  // A vector was made of 16 outputs in a row, and packed() has dealt them out to the blocks.
  alignas(64) static constexpr std::int32_t kCollect[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                            2, 6, 10, 14, 3, 7, 11, 15};
  return hn::Vec<Bytes>{_mm512_permutexvar_epi32(hn::Load(Lanes(), kCollect).raw, bytes.raw)};
#else
  return bytes;
#endif
}

template <Fetch kFetch, int kPlanes>
void filter_planes(const std::uint8_t* memory, const std::uint8_t* const* in, std::uint8_t* out,
                   std::int64_t plane_stride) {
  const auto& table = *reinterpret_cast<const Table*>(memory);
  const auto* begins = reinterpret_cast<const std::int32_t*>(memory + Table::kTableBytes);
  const std::uint8_t* record = memory + table.head_bytes();
  const std::int64_t taps = table.taps, record_bytes = table.record_bytes();
  LaneVec values[kPlanes][4];
  std::int64_t left = table.vectors;
  for (; left >= 4; left -= 4, out += kStep) {
    for (int q = 0; q < 4; ++q, record += record_bytes, begins += kWindows)
      filter_vector<kFetch, kPlanes>(taps, record, begins, in, q, values);
    for (int c = 0; c < kPlanes; ++c)
      hn::StoreU(in_order(packed(values[c])), Bytes(), out + c * plane_stride);
  }
  if (left == 0) return;
  // Half a step, where a step is twice kPlaneStep.
  for (int q = 0; q < 2; ++q, record += record_bytes, begins += kWindows)
    filter_vector<kFetch, kPlanes>(taps, record, begins, in, q, values);
  const hn::Half<Bytes> half;
  for (int c = 0; c < kPlanes; ++c) {
    values[c][2] = values[c][3] = hn::Zero(Lanes());
    hn::StoreU(hn::LowerHalf(half, in_order(packed(values[c]))), half, out + c * plane_stride);
  }
}

template <int kPlanes>
void filter_planes(const std::uint8_t* table, const std::uint8_t* const* in, std::uint8_t* out,
                   std::int64_t plane_stride) {
  const auto& head = *reinterpret_cast<const Table*>(table);
  if (head.wide) return filter_planes<Fetch::kLoads, kPlanes>(table, in, out, plane_stride);
  if (head.taps > kTapGroup)
    return filter_planes<Fetch::kLookUps, kPlanes>(table, in, out, plane_stride);
  filter_planes<Fetch::kOneLookUp, kPlanes>(table, in, out, plane_stride);
}

void FilterColumns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                   std::uint8_t* out, std::int64_t plane_stride) {
  const std::uint8_t* const* planes = in.plane.data();
  if (channels == 3) return filter_planes<3>(table, planes, out, plane_stride);
  for (std::int64_t c = 0; c < channels; ++c)
    filter_planes<1>(table, planes + c, out + c * plane_stride, plane_stride);
}

#endif

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(ColumnTableBytes);
HWY_EXPORT(MakeColumnTable);
HWY_EXPORT(FilterColumns);

std::int64_t column_table_bytes(const AxisView& axis) {
  return HWY_DYNAMIC_DISPATCH(ColumnTableBytes)(axis);
}
void make_column_table(const AxisView& axis, bool mirrored, std::uint8_t* table) {
  HWY_DYNAMIC_DISPATCH(MakeColumnTable)(axis, mirrored, table);
}
void filter_columns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                    std::uint8_t* out, std::int64_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(FilterColumns)(table, in, channels, out, plane_stride);
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
