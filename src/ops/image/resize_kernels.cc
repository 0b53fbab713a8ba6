// SPDX-License-Identifier: Apache-2.0
// Compiled once per SIMD level. Both passes bring four taps of an output together as the four bytes
// of a 32-bit lane, and multiply them by weights that are split into parts small enough for the
// multiply-add of the level:
//   AVX3_DL (VNNI)  three signed bytes a weight, four taps at once, exact in 32 bits
//   others          two signed 16-bit halves a weight, two taps at once: the even ones, the odd
//   ones
// Sums of parts may wrap around; the sum of a whole filter does not.
#define HWY_WANT_AVX3_DL
#include "ops/image/resize_kernels.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/resize_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

#if HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE

// No vectors of known width: the definition, as it stands. A table is the axis itself.
struct Table {
  std::int64_t taps, outputs;
};

std::int64_t ColumnTableBytes(const AxisView& axis) {
  return static_cast<std::int64_t>(sizeof(Table)) +
         axis.outputs * (axis.taps + 1) * static_cast<std::int64_t>(sizeof(std::int32_t));
}
std::int64_t RowTableBytes(const AxisView& axis) { return ColumnTableBytes(axis); }

HWY_INLINE std::uint8_t clamped(std::int32_t sum) {
  const std::int32_t value = sum >> kWeightBits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
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

#if HWY_TARGET == HWY_AVX3_DL

constexpr int kParts = 3;

// The four weights of a lane as kParts words: byte t of word p is part p of weight t.
HWY_INLINE void split_weights(const std::int32_t* weights, std::uint32_t* words) {
  // Signed bytes: what a byte borrows from the next one, it has added before.
  alignas(16) static constexpr std::uint8_t kByPart[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                           2, 6, 10, 14, 3, 7, 11, 15};
  const hn::Full128<std::int32_t> d32;
  const hn::Full128<std::uint8_t> d8;
  const auto carry = hn::Set(d32, 0x8080);
  const auto bytes = hn::Xor(hn::Add(hn::LoadU(d32, weights), carry), carry);
  const auto parts = hn::TableLookupBytes(hn::BitCast(d8, bytes), hn::Load(d8, kByPart));
  alignas(16) std::uint32_t lanes[4];
  hn::Store(parts, d8, reinterpret_cast<std::uint8_t*>(lanes));
  for (int p = 0; p < kParts; ++p) words[p] = lanes[p];
}

// Highway's choice of this level asks for VNNI, but its compiler flags do not name it.
template <class V>
HWY_INLINE V add_dot4(V sum, V bytes, V weights) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(bytes.raw), "v"(weights.raw));
  return sum;
}

// Sums of outputs, one a lane.
template <class D32>
class Sums {
 public:
  using V = hn::Vec<D32>;
  HWY_INLINE Sums() : low_(hn::Set(D32(), kHalf)), middle_(hn::Zero(D32())), high_(middle_) {}
  // Four taps a lane, by the words of their weights.
  HWY_INLINE void add(V taps, const V* words) {
    low_ = add_dot4(low_, taps, words[0]);
    middle_ = add_dot4(middle_, taps, words[1]);
    high_ = add_dot4(high_, taps, words[2]);
  }
  HWY_INLINE V values() const {
    const auto sum = hn::Add(hn::Add(low_, hn::ShiftLeft<8>(middle_)), hn::ShiftLeft<16>(high_));
    return hn::ShiftRight<kWeightBits>(sum);
  }

 private:
  V low_, middle_, high_;
};

#else

constexpr int kParts = 4;

// The four weights of a lane as kParts words: low and high halves of the even ones, then of the odd
// ones.
HWY_INLINE void split_weights(const std::int32_t* weights, std::uint32_t* words) {
  for (int odd = 0; odd < 2; ++odd) {
    const auto a = static_cast<std::uint32_t>(weights[odd]),
               b = static_cast<std::uint32_t>(weights[odd + 2]);
    // Signed halves: what the low half borrows from the high one, it has added before.
    words[2 * odd] = (a & 0xFFFF) | b << 16;
    words[2 * odd + 1] = (a + 0x8000) >> 16 | ((b + 0x8000) & 0xFFFF0000);
  }
}

// Sums of outputs, one a lane.
template <class D32>
class Sums {
 public:
  using V = hn::Vec<D32>;
  HWY_INLINE Sums() : low_(hn::Zero(D32())), low2_(low_), high_(low_), high2_(low_) {}
  // Four taps a lane, by the words of their weights.
  HWY_INLINE void add(V taps, const V* words) {
    const D32 d32;
    const hn::Repartition<std::int16_t, D32> d16;
    const hn::Repartition<std::uint16_t, D32> du16;
    const auto even = hn::BitCast(d16, hn::And(taps, hn::Set(d32, 0x00FF00FF)));
    const auto odd = hn::BitCast(d16, hn::ShiftRight<8>(hn::BitCast(du16, taps)));
    const auto part = [&](int p) HWY_ATTR { return hn::BitCast(d16, words[p]); };
    low_ = hn::ReorderWidenMulAccumulate(d32, even, part(0), low_, low2_);
    high_ = hn::ReorderWidenMulAccumulate(d32, even, part(1), high_, high2_);
    low_ = hn::ReorderWidenMulAccumulate(d32, odd, part(2), low_, low2_);
    high_ = hn::ReorderWidenMulAccumulate(d32, odd, part(3), high_, high2_);
  }
  HWY_INLINE V values() const {
    const auto low = hn::RearrangeToOddPlusEven(low_, low2_);
    const auto high = hn::RearrangeToOddPlusEven(high_, high2_);
    const auto sum = hn::Add(hn::Add(low, hn::Set(D32(), kHalf)), hn::ShiftLeft<16>(high));
    return hn::ShiftRight<kWeightBits>(sum);
  }

 private:
  V low_, low2_, high_, high2_;
};

#endif

// Two vectors of 16-bit values as bytes, clamped, block by block.
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128
HWY_INLINE hn::Vec128<std::uint8_t> clamped(hn::Vec128<std::int16_t> a,
                                            hn::Vec128<std::int16_t> b) {
  return hn::Vec128<std::uint8_t>{_mm_packus_epi16(a.raw, b.raw)};
}
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE hn::Vec256<std::uint8_t> clamped(hn::Vec256<std::int16_t> a,
                                            hn::Vec256<std::int16_t> b) {
  return hn::Vec256<std::uint8_t>{_mm256_packus_epi16(a.raw, b.raw)};
}
#endif
#if HWY_TARGET <= HWY_AVX3
HWY_INLINE hn::Vec512<std::uint8_t> clamped(hn::Vec512<std::int16_t> a,
                                            hn::Vec512<std::int16_t> b) {
  return hn::Vec512<std::uint8_t>{_mm512_packus_epi16(a.raw, b.raw)};
}
#endif
#else
HWY_INLINE auto clamped(hn::Vec<hn::Full128<std::int16_t> > a,
                        hn::Vec<hn::Full128<std::int16_t> > b) {
  const hn::Full128<std::uint8_t> d8;
  const hn::Half<decltype(d8)> half;
  return hn::Combine(d8, hn::DemoteTo(half, b), hn::DemoteTo(half, a));
}
#endif

// Four vectors as one of bytes: a block of 16 has the four lanes of that block of each, in turn.
template <class V>
HWY_INLINE auto packed(const V* values) {
  const hn::Repartition<std::int16_t, hn::DFromV<V> > d16;
  return clamped(hn::ReorderDemote2To(d16, values[0], values[1]),
                 hn::ReorderDemote2To(d16, values[2], values[3]));
}

// ---- along the row

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
    return 64 +
           (vectors * kWindows * static_cast<std::int64_t>(sizeof(std::int32_t)) + 63) / 64 * 64;
  }
};
static_assert(sizeof(Table) <= 64);

HWY_INLINE Table table_of(const AxisView& axis) {
  const std::int64_t unit = kStep < kPlaneStep ? kStep : kPlaneStep;
  const std::int64_t outputs = (axis.outputs + unit - 1) / unit * unit;
  return {axis.outputs, axis.taps, outputs / kLanes, false};
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
  // Where the window of this output begins, and ends.
  const auto begin_of = [&](std::int64_t output) {
    const std::int64_t one = output / kInWindow * kInWindow;
    const std::int64_t other = one + kInWindow < axis.outputs ? one + kInWindow : axis.outputs;
    return first_of(mirrored ? other - 1 : one);
  };
  for (std::int64_t i = 0; i < axis.outputs && !table.wide; ++i)
    table.wide = first_of(i) - begin_of(i) + kTapGroup > kWindow;
  std::memcpy(memory, &table, sizeof table);

  auto* begins = reinterpret_cast<std::int32_t*>(memory + 64);
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

// One vector of outputs of each plane; the planes share the loads of the table.
template <bool kWide, int kPlanes>
HWY_INLINE void filter_vector(std::int64_t taps, const std::uint8_t* record,
                              const std::int32_t* begins, const std::uint8_t* const* in, int vector,
                              LaneVec (&values)[kPlanes][4]) {
  const std::uint8_t* weights = record + kVector;
  constexpr std::int64_t kWords = kParts * kVector;
  Sums<Lanes> sums[kPlanes];
  LaneVec words[kParts];
  if constexpr (kWide) {
    const auto* firsts = reinterpret_cast<const std::int32_t*>(record);
    for (std::int64_t t = 0; t < taps; t += 16, weights += 4 * kWords)
      for (int c = 0; c < kPlanes; ++c) {
        LaneVec bytes[4];
        load_taps(in[c] + t, firsts, bytes);
        for (int k = 0; k < 4 && t + k * kTapGroup < taps; ++k) {
          load_words(weights + k * kWords, words);
          sums[c].add(bytes[k], words);
        }
      }
  } else {
    const auto look_up = hn::Load(Bytes(), record);
    for (std::int64_t t = 0; t < taps; t += kTapGroup, weights += kWords) {
      load_words(weights, words);
      for (int c = 0; c < kPlanes; ++c)
        sums[c].add(look_up_taps(in[c] + t, begins, look_up), words);
    }
  }
  for (int c = 0; c < kPlanes; ++c) values[c][vector] = sums[c].values();
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

template <bool kWide, int kPlanes>
void filter_planes(const std::uint8_t* memory, const std::uint8_t* const* in, std::uint8_t* out,
                   std::int64_t plane_stride) {
  const auto& table = *reinterpret_cast<const Table*>(memory);
  const auto* begins = reinterpret_cast<const std::int32_t*>(memory + 64);
  const std::uint8_t* record = memory + table.head_bytes();
  const std::int64_t taps = table.taps, record_bytes = table.record_bytes();
  LaneVec values[kPlanes][4];
  std::int64_t left = table.vectors;
  for (; left >= 4; left -= 4, out += kStep) {
    for (int q = 0; q < 4; ++q, record += record_bytes, begins += kWindows)
      filter_vector<kWide, kPlanes>(taps, record, begins, in, q, values);
    for (int c = 0; c < kPlanes; ++c)
      hn::StoreU(in_order(packed(values[c])), Bytes(), out + c * plane_stride);
  }
  if (left == 0) return;
  // Half a step, where a step is twice kPlaneStep.
  for (int q = 0; q < 2; ++q, record += record_bytes, begins += kWindows)
    filter_vector<kWide, kPlanes>(taps, record, begins, in, q, values);
  const hn::Half<Bytes> half;
  for (int c = 0; c < kPlanes; ++c) {
    values[c][2] = values[c][3] = hn::Zero(Lanes());
    hn::StoreU(hn::LowerHalf(half, in_order(packed(values[c]))), half, out + c * plane_stride);
  }
}

void FilterColumns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                   std::uint8_t* out, std::int64_t plane_stride) {
  const bool wide = reinterpret_cast<const Table*>(table)->wide;
  const std::uint8_t* const* planes = in.plane.data();
  if (channels == 3)
    return (wide ? filter_planes<true, 3> : filter_planes<false, 3>)(table, planes, out,
                                                                     plane_stride);
  for (std::int64_t c = 0; c < channels; ++c)
    (wide ? filter_planes<true, 1> : filter_planes<false, 1>)(table, planes + c,
                                                              out + c * plane_stride, plane_stride);
}

// ---- across rows

std::int64_t RowTableBytes(const AxisView& axis) {
  return axis.outputs * axis.taps / kTapGroup * kParts *
         static_cast<std::int64_t>(sizeof(std::uint32_t));
}

void MakeRowTable(const AxisView& axis, std::uint8_t* table) {
  auto* words = reinterpret_cast<std::uint32_t*>(table);
  for (std::int64_t t = 0; t < axis.outputs * axis.taps; t += kTapGroup, words += kParts)
    split_weights(axis.weights + t, words);
}

void FilterRows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out) {
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::Repartition<std::uint16_t, decltype(d8)> d16;
  const hn::Repartition<std::int32_t, decltype(d8)> d32;
  using V = hn::Vec<decltype(d32)>;
  const auto* words =
      reinterpret_cast<const std::int32_t*>(table) + output * (taps / kTapGroup) * kParts;
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d8))) {
    Sums<decltype(d32)> sums[4];
    for (std::int64_t t = 0; t < taps; t += kTapGroup) {
      V parts[kParts];
      for (int p = 0; p < kParts; ++p) parts[p] = hn::Set(d32, words[t / kTapGroup * kParts + p]);
      const auto a = hn::LoadU(d8, rows[t] + i), b = hn::LoadU(d8, rows[t + 1] + i);
      const auto c = hn::LoadU(d8, rows[t + 2] + i), d = hn::LoadU(d8, rows[t + 3] + i);
      const auto ab_low = hn::BitCast(d16, hn::InterleaveLower(d8, a, b));
      const auto ab_high = hn::BitCast(d16, hn::InterleaveUpper(d8, a, b));
      const auto cd_low = hn::BitCast(d16, hn::InterleaveLower(d8, c, d));
      const auto cd_high = hn::BitCast(d16, hn::InterleaveUpper(d8, c, d));
      sums[0].add(hn::BitCast(d32, hn::InterleaveLower(d16, ab_low, cd_low)), parts);
      sums[1].add(hn::BitCast(d32, hn::InterleaveUpper(d16, ab_low, cd_low)), parts);
      sums[2].add(hn::BitCast(d32, hn::InterleaveLower(d16, ab_high, cd_high)), parts);
      sums[3].add(hn::BitCast(d32, hn::InterleaveUpper(d16, ab_high, cd_high)), parts);
    }
    const V values[4] = {sums[0].values(), sums[1].values(), sums[2].values(), sums[3].values()};
    hn::StoreU(packed(values), d8, out + i);
  }
}

#endif

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(ColumnTableBytes);
HWY_EXPORT(RowTableBytes);
HWY_EXPORT(MakeColumnTable);
HWY_EXPORT(MakeRowTable);
HWY_EXPORT(FilterColumns);
HWY_EXPORT(FilterRows);

std::int64_t column_table_bytes(const AxisView& axis) {
  return HWY_DYNAMIC_DISPATCH(ColumnTableBytes)(axis);
}
std::int64_t row_table_bytes(const AxisView& axis) {
  return HWY_DYNAMIC_DISPATCH(RowTableBytes)(axis);
}
void make_column_table(const AxisView& axis, bool mirrored, std::uint8_t* table) {
  HWY_DYNAMIC_DISPATCH(MakeColumnTable)(axis, mirrored, table);
}
void make_row_table(const AxisView& axis, std::uint8_t* table) {
  HWY_DYNAMIC_DISPATCH(MakeRowTable)(axis, table);
}
void filter_columns(const std::uint8_t* table, const PlanarRow& in, std::int64_t channels,
                    std::uint8_t* out, std::int64_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(FilterColumns)(table, in, channels, out, plane_stride);
}
void filter_rows(const std::uint8_t* table, std::int64_t taps, std::int64_t output,
                 const std::uint8_t* const* rows, std::int64_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(FilterRows)(table, taps, output, rows, count, out);
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
