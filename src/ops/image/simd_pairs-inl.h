// SPDX-License-Identifier: Apache-2.0
// Two instructions that Highway 1.0.3 lacks, for every SIMD level. Included once per level.
#if defined(CUTWATER_SIMD_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CUTWATER_SIMD_PAIRS_INL_H_
#undef CUTWATER_SIMD_PAIRS_INL_H_
#else
#define CUTWATER_SIMD_PAIRS_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR  // which has no lanes to pair

// Lane i: a[2i] * b[2i] + a[2i + 1] * b[2i + 1].
template <class V16>
HWY_INLINE auto multiply_pairs(V16 a, V16 b) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec512<std::int32_t>{_mm512_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec256<std::int32_t>{_mm256_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  return hn::Vec128<std::int32_t>{_mm_madd_epi16(a.raw, b.raw)};
#else
  const hn::Repartition<std::int32_t, hn::DFromV<V16> > d32;
  const auto even = [&](auto v) HWY_ATTR {
    return hn::ShiftRight<16>(hn::ShiftLeft<16>(hn::BitCast(d32, v)));
  };
  const auto odd = [&](auto v) HWY_ATTR { return hn::ShiftRight<16>(hn::BitCast(d32, v)); };
  return hn::Add(hn::Mul(even(a), even(b)), hn::Mul(odd(a), odd(b)));
#endif
}

// Undoes InterleaveLower and InterleaveUpper with zero: 16-bit lanes to bytes, clamped to 0..255.
template <class V16>
HWY_INLINE auto pack_bytes(V16 lower, V16 upper) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Vec512<std::uint8_t>{_mm512_packus_epi16(lower.raw, upper.raw)};
#elif HWY_TARGET == HWY_AVX2
  return hn::Vec256<std::uint8_t>{_mm256_packus_epi16(lower.raw, upper.raw)};
#elif HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SSSE3
  return hn::Vec128<std::uint8_t>{_mm_packus_epi16(lower.raw, upper.raw)};
#else
  const hn::Repartition<std::uint8_t, hn::DFromV<V16> > d8;
  const hn::Half<decltype(d8)> half;
  return hn::Combine(d8, hn::DemoteTo(half, upper), hn::DemoteTo(half, lower));
#endif
}

#endif

}  // namespace cutwater::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
