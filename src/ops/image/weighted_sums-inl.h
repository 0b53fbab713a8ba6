// SPDX-License-Identifier: Apache-2.0
// Included once per SIMD level, by the kernels of both passes: pixels times weights. Four taps of
// an output are the four bytes of a 32-bit lane, and weights are split into parts small enough for
// the multiply-add of the level:
//   AVX3_DL (VNNI)  three signed bytes a weight, four taps at once
//   others          two signed 16-bit halves a weight, two taps at once: the even ones, the odd
//   ones
// Sums of parts may wrap around at 32 bits; the sum of a whole filter does not.
#include <cstdint>

#include "ops/image/resize_kernels.h"

#if defined(CUTWATER_WEIGHTED_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CUTWATER_WEIGHTED_SUMS_INL_H_
#undef CUTWATER_WEIGHTED_SUMS_INL_H_
#else
#define CUTWATER_WEIGHTED_SUMS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);

// No vectors of known width: then the kernels are the definition, as it stands.
#define CUTWATER_PLAIN_LEVEL (HWY_TARGET == HWY_SCALAR || HWY_HAVE_SCALABLE)

#if CUTWATER_PLAIN_LEVEL

HWY_INLINE std::uint8_t clamped(std::int32_t sum) {
  const std::int32_t value = sum >> kWeightBits;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
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

// The values of outputs that have no more than four taps.
template <class D32>
HWY_INLINE hn::Vec<D32> values_of(D32 d32, hn::Vec<D32> taps, const hn::Vec<D32>* words) {
  auto sum = add_dot4(hn::Set(d32, kHalf >> 16), taps, words[2]);
  sum = add_dot4(hn::ShiftLeft<8>(sum), taps, words[1]);
  return hn::ShiftRight<kWeightBits>(add_dot4(hn::ShiftLeft<8>(sum), taps, words[0]));
}

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

// The values of outputs that have no more than four taps.
template <class D32>
HWY_INLINE hn::Vec<D32> values_of(D32, hn::Vec<D32> taps, const hn::Vec<D32>* words) {
  Sums<D32> sums;
  sums.add(taps, words);
  return sums.values();
}

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

#endif

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
