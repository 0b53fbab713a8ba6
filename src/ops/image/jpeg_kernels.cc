// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_kernels.h"

#include <bit>
#include <cstring>

#define HWY_WANT_AVX3_DL 1
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/jpeg_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "ops/image/jpeg_plain_dct.h"
#include "ops/image/simd_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace cutwater::HWY_NAMESPACE;  // simd_pairs-inl.h
using namespace idct;                     // its constants

#if HWY_TARGET != HWY_SCALAR

using D16 = hn::CappedTag<std::int16_t, 8 * kGroupBlocks>;
using V16 = hn::Vec<D16>;
using D32 = hn::Repartition<std::int32_t, D16>;

// v * first + w * second for the lower (upper) halves of the lanes.
struct Pairs {
  V16 lower, upper;
  HWY_INLINE Pairs(V16 v, V16 w)
      : lower(hn::InterleaveLower(D16(), v, w)), upper(hn::InterleaveUpper(D16(), v, w)) {}
};
struct Sums {
  hn::Vec<D32> lower, upper;
};
HWY_INLINE Sums operator+(Sums a, Sums b) {
  return {hn::Add(a.lower, b.lower), hn::Add(a.upper, b.upper)};
}
HWY_INLINE Sums operator-(Sums a, Sums b) {
  return {hn::Sub(a.lower, b.lower), hn::Sub(a.upper, b.upper)};
}
HWY_INLINE Sums times(const Pairs& pairs, int first, int second) {
  const auto packed =
      static_cast<std::uint32_t>(second) << 16 | (static_cast<std::uint32_t>(first) & 0xffffU);
  const auto factors = hn::BitCast(D16(), hn::Set(D32(), static_cast<std::int32_t>(packed)));
  return {multiply_pairs(pairs.lower, factors), multiply_pairs(pairs.upper, factors)};
}
// v shifted left by kConstBits, plus the rounding term.
template <int kShift>
HWY_INLINE Sums scaled_up(V16 v) {
  const auto zero = hn::Zero(D16());
  const auto half = hn::Set(D32(), 1 << (kShift - 1));
  const auto wide = [&](V16 high) HWY_ATTR {
    return hn::Add(hn::ShiftRight<16 - kConstBits>(hn::BitCast(D32(), high)), half);
  };
  return {wide(hn::InterleaveLower(D16(), zero, v)), wide(hn::InterleaveUpper(D16(), zero, v))};
}
template <int kShift>
HWY_INLINE V16 scaled_down(Sums sums) {
  return hn::ReorderDemote2To(D16(), hn::ShiftRight<kShift>(sums.lower),
                              hn::ShiftRight<kShift>(sums.upper));
}

// dct_column on all lanes: x[r] is row r.
template <int kShift>
HWY_INLINE void dct_pass(V16 (&x)[8]) {
  const Pairs x26(x[2], x[6]), x71(x[7], x[1]), x53(x[5], x[3]);
  const Pairs s34(hn::Add(x[7], x[3]), hn::Add(x[5], x[1]));
  const Sums t2 = times(x26, k0541, k0541 - k1847), t3 = times(x26, k0541 + k0765, k0541);
  const Sums t0 = scaled_up<kShift>(hn::Add(x[0], x[4]));
  const Sums t1 = scaled_up<kShift>(hn::Sub(x[0], x[4]));
  const Sums z3 = times(s34, k1175 - k1961, k1175), z4 = times(s34, k1175, k1175 - k0390);
  const Sums o0 = times(x71, k0298 - k0899, -k0899) + z3;
  const Sums o3 = times(x71, -k0899, k1501 - k0899) + z4;
  const Sums o1 = times(x53, k2053 - k2562, -k2562) + z4;
  const Sums o2 = times(x53, -k2562, k3072 - k2562) + z3;
  const Sums e0 = t0 + t3, e3 = t0 - t3, e1 = t1 + t2, e2 = t1 - t2;
  x[0] = scaled_down<kShift>(e0 + o3);
  x[7] = scaled_down<kShift>(e0 - o3);
  x[1] = scaled_down<kShift>(e1 + o2);
  x[6] = scaled_down<kShift>(e1 - o2);
  x[2] = scaled_down<kShift>(e2 + o1);
  x[5] = scaled_down<kShift>(e2 - o1);
  x[3] = scaled_down<kShift>(e3 + o0);
  x[4] = scaled_down<kShift>(e3 - o0);
}

// Each block for itself: three stages of interleaving vectors that are half the block apart.
HWY_INLINE void transpose_blocks(V16 (&x)[8]) {
  const D16 d16;
  V16 mixed[8];
  const auto interleave = [&](const V16* from, V16* to) HWY_ATTR {
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = hn::InterleaveLower(d16, from[i], from[i + 4]);
      to[2 * i + 1] = hn::InterleaveUpper(d16, from[i], from[i + 4]);
    }
  };
  interleave(x, mixed);
  interleave(mixed, x);
  interleave(x, mixed);
  for (int i = 0; i < 8; ++i) x[i] = mixed[i];
}

// Values that the shortcut for blocks with a single row of coefficients would let wrap.
HWY_INLINE bool beyond_pictures(V16 first_row) {
  const auto back = hn::ShiftRight<kPass1Bits>(hn::ShiftLeft<kPass1Bits>(first_row));
  return !hn::AllTrue(D16(), hn::Eq(back, first_row));
}

void InverseDct(std::int16_t* coefficients, const std::int16_t* quantizer, std::int64_t groups,
                After after, std::uint8_t* out, std::int64_t row_bytes) {
  const D16 d16;
  const hn::Rebind<std::uint8_t, D16> d8;
  constexpr std::int64_t kRow = 8 * kGroupBlocks;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  for (std::int64_t g = 0; g < groups; ++g, coefficients += kGroupValues, out += kRow) {
    for (std::int64_t c = 0; c < kRow; c += lanes) {
      V16 x[8];
      for (int r = 0; r < 8; ++r)
        x[r] = hn::Mul(hn::LoadU(d16, coefficients + r * kRow + c),
                       hn::LoadDup128(d16, quantizer + 8 * r));
      if (HWY_UNLIKELY(beyond_pictures(x[0]))) {
        plain_inverse_dct(coefficients, quantizer, out, row_bytes);
        break;
      }
      dct_pass<kShift1>(x);
      transpose_blocks(x);
      dct_pass<kShift2>(x);
      transpose_blocks(x);
      const auto center = hn::Set(d16, 128);
      for (int r = 0; r < 8; ++r)
        hn::StoreU(hn::DemoteTo(d8, hn::SaturatedAdd(x[r], center)), d8, out + r * row_bytes + c);
    }
    if (after == After::kClear)
      for (std::int64_t i = 0; i < kGroupValues; i += lanes)
        hn::StoreU(hn::Zero(d16), d16, coefficients + i);
  }
}

#else  // HWY_SCALAR

void InverseDct(std::int16_t* coefficients, const std::int16_t* quantizer, std::int64_t groups,
                After after, std::uint8_t* out, std::int64_t row_bytes) {
  for (std::int64_t g = 0; g < groups; ++g, coefficients += kGroupValues, out += 8 * kGroupBlocks) {
    plain_inverse_dct(coefficients, quantizer, out, row_bytes);
    if (after == After::kClear) std::memset(coefficients, 0, kGroupValues * sizeof *coefficients);
  }
}

#endif

template <class T>
HWY_INLINE T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// One block, value by value.
HWY_INLINE const std::uint8_t* expand_block(std::uint64_t mask, const std::uint8_t* values,
                                            std::int16_t* block) {
  for (std::int64_t r = 0; r < 8; ++r) std::memset(block + group_place(8 * r), 0, 16);
  const bool wide = (mask & 1) != 0;
  for (std::uint64_t left = mask & ~std::uint64_t{1}; left != 0; left &= left - 1) {
    std::int16_t& place = block[group_place(std::countr_zero(left))];
    place = wide ? load<std::int16_t>(values) : static_cast<std::int8_t>(*values);
    values += wide ? 2 : 1;
  }
  return values;
}

const std::uint8_t* ExpandBlocks(const std::uint8_t* masks, const std::uint8_t* dcs,
                                 const std::uint8_t* values, std::int64_t blocks,
                                 std::int16_t* coefficients) {
  std::int64_t x = 0;
#if HWY_TARGET <= HWY_AVX3_DL
  // Four blocks at once: each expands to two vectors of four rows, which are then dealt out so that
  // a vector holds one row of all four.
  const __m512i dc_places = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0,
                                             0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0);
  for (; x + kGroupBlocks <= blocks; x += kGroupBlocks, coefficients += kGroupValues) {
    __m512i half[2][4];
    for (int b = 0; b < 4; ++b) {
      const auto mask = load<std::uint64_t>(masks + 8 * (x + b));
      const std::uint64_t present = mask & ~std::uint64_t{1};
      const int count = std::popcount(present);
      if (HWY_UNLIKELY((mask & 1) != 0)) {
        const auto lower = static_cast<std::uint32_t>(present);
        half[0][b] = _mm512_maskz_expandloadu_epi16(lower, values);
        half[1][b] = _mm512_maskz_expandloadu_epi16(static_cast<std::uint32_t>(present >> 32),
                                                    values + 2 * std::popcount(lower));
        values += 2 * count;
      } else {
        const __m512i bytes = _mm512_maskz_expand_epi8(present, _mm512_loadu_si512(values));
        half[0][b] = _mm512_cvtepi8_epi16(_mm512_castsi512_si256(bytes));
        half[1][b] = _mm512_cvtepi8_epi16(_mm512_extracti64x4_epi64(bytes, 1));
        values += count;
      }
    }
    const __m512i four_dcs =
        _mm512_broadcastq_epi64(_mm_cvtsi64_si128(load<std::int64_t>(dcs + 2 * x)));
    for (int h = 0; h < 2; ++h) {
      const __m512i a = _mm512_shuffle_i32x4(half[h][0], half[h][1], 0x44);
      const __m512i b = _mm512_shuffle_i32x4(half[h][0], half[h][1], 0xEE);
      const __m512i c = _mm512_shuffle_i32x4(half[h][2], half[h][3], 0x44);
      const __m512i d = _mm512_shuffle_i32x4(half[h][2], half[h][3], 0xEE);
      __m512i first = _mm512_shuffle_i32x4(a, c, 0x88);
      if (h == 0) first = _mm512_mask_permutexvar_epi16(first, 0x01010101U, dc_places, four_dcs);
      std::int16_t* rows = coefficients + h * 4 * 8 * kGroupBlocks;
      _mm512_storeu_si512(rows, first);
      _mm512_storeu_si512(rows + 32, _mm512_shuffle_i32x4(a, c, 0xDD));
      _mm512_storeu_si512(rows + 64, _mm512_shuffle_i32x4(b, d, 0x88));
      _mm512_storeu_si512(rows + 96, _mm512_shuffle_i32x4(b, d, 0xDD));
    }
  }
#endif
  for (std::int64_t i = 0; x < blocks; ++x, ++i) {
    std::int16_t* block = coefficients + block_place(i);
    values = expand_block(load<std::uint64_t>(masks + 8 * x), values, block);
    block[0] = load<std::int16_t>(dcs + 2 * x);
  }
  return values;
}

std::size_t ValueBytes(const std::uint8_t* masks, std::int64_t blocks) {
  std::uint64_t bytes = 0;
  std::int64_t x = 0;
#if HWY_TARGET <= HWY_AVX3_DL  // others have no instruction for it that is worth a vector
  __m512i sums = _mm512_setzero_si512();
  const __m512i one = _mm512_set1_epi64(1);
  for (; x + 8 <= blocks; x += 8) {
    const __m512i mask = _mm512_loadu_si512(masks + 8 * x);
    const __m512i values = _mm512_popcnt_epi64(_mm512_andnot_si512(one, mask));
    sums = _mm512_add_epi64(sums, _mm512_sllv_epi64(values, _mm512_and_si512(mask, one)));
  }
  bytes = static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums));
#endif
  for (; x < blocks; ++x) {
    const auto mask = load<std::uint64_t>(masks + 8 * x);
    bytes += static_cast<std::uint64_t>(std::popcount(mask & ~std::uint64_t{1})) << (mask & 1);
  }
  return static_cast<std::size_t>(bytes);
}

#if HWY_TARGET <= HWY_AVX3_DL

// Rows r and three more of a block in one vector.
HWY_INLINE __m512i four_rows(const std::int16_t* block, std::int64_t r) {
  const auto row = [&](std::int64_t n) HWY_ATTR {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + group_place(8 * (r + n))));
  };
  const __m256i lower = _mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(1), 1);
  const __m256i upper = _mm256_inserti128_si256(_mm256_castsi128_si256(row(2)), row(3), 1);
  return _mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1);
}

HWY_INLINE std::uint8_t* pack_block(const std::int16_t* block, std::uint64_t& mask,
                                    std::uint8_t* values) {
  const __m512i half[2] = {four_rows(block, 0), four_rows(block, 4)};
  std::uint64_t present = 0, wide = 0;
  __m256i bytes[2];
  for (int h = 0; h < 2; ++h) {
    bytes[h] = _mm512_cvtepi16_epi8(half[h]);
    present |= std::uint64_t{_mm512_test_epi16_mask(half[h], half[h])} << (32 * h);
    wide |= std::uint64_t{_mm512_cmpneq_epi16_mask(half[h], _mm512_cvtepi8_epi16(bytes[h]))}
            << (32 * h);
  }
  present &= ~std::uint64_t{1};
  mask = present;
  if (HWY_UNLIKELY((wide & present) != 0)) {
    mask |= 1;
    for (int h = 0; h < 2; ++h) {
      const auto part = static_cast<std::uint32_t>(present >> (32 * h));
      _mm512_storeu_si512(values, _mm512_maskz_compress_epi16(part, half[h]));
      values += 2 * std::popcount(part);
    }
    return values;
  }
  const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(bytes[0]), bytes[1], 1);
  _mm512_storeu_si512(values, _mm512_maskz_compress_epi8(present, all));
  return values + std::popcount(present);
}

#else

HWY_INLINE std::uint8_t* pack_block(const std::int16_t* block, std::uint64_t& mask,
                                    std::uint8_t* values) {
  std::uint64_t present = 0, wide = 0;
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t n = 1; n < 64; ++n) {
    const std::int16_t value = block[group_place(n)];
    present |= std::uint64_t{value != 0} << n;
    wide |= std::uint64_t{value != static_cast<std::int8_t>(value)} << n;
  }
#else
  const hn::FixedTag<std::int16_t, 8> d;
  for (std::int64_t r = 0; r < 8; ++r) {
    const auto row = hn::LoadU(d, block + group_place(8 * r));
    const auto narrow = hn::ShiftRight<8>(hn::ShiftLeft<8>(row));
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Ne(row, hn::Zero(d)), bits);
    present |= std::uint64_t{bits[0]} << (8 * r);
    hn::StoreMaskBits(d, hn::Ne(row, narrow), bits);
    wide |= std::uint64_t{bits[0]} << (8 * r);
  }
#endif
  present &= ~std::uint64_t{1};
  const bool two_bytes = (wide & present) != 0;
  mask = present | (two_bytes ? 1 : 0);
  for (std::uint64_t left = present; left != 0; left &= left - 1) {
    const std::int16_t value = block[group_place(std::countr_zero(left))];
    *values++ = static_cast<std::uint8_t>(value);
    if (two_bytes) *values++ = static_cast<std::uint8_t>(value >> 8);
  }
  return values;
}

#endif

std::uint8_t* PackBlocks(const std::int16_t* coefficients, std::int64_t blocks, std::uint8_t* masks,
                         std::uint8_t* dcs, std::uint8_t* values) {
  for (std::int64_t x = 0; x < blocks; ++x) {
    const std::int16_t* block = coefficients + block_place(x);
    std::uint64_t mask = 0;
    values = pack_block(block, mask, values);
    std::memcpy(masks + 8 * x, &mask, sizeof mask);
    std::memcpy(dcs + 2 * x, block, sizeof *block);
  }
  return values;
}

// Products of 16-bit numbers as libjpeg has them: rounded after 16 fractional bits. Its factors
// beyond 16 bits are split into a whole part and the rest.
constexpr int kRed = 91881 - 65536, kBlue = 116130 - 2 * 65536;
constexpr int kGreenBlue = -22554, kGreenRed = 65536 - 46802;

void YccToRgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
              std::int64_t count, std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue) {
#if HWY_TARGET == HWY_SCALAR
  constexpr int kHalf = 1 << 15;
  const auto clamp = [](int v) { return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v); };
  for (std::int64_t i = 0; i < count; ++i) {
    const int luma = y[i], b = cb[i] - 128, r = cr[i] - 128;
    red[i] = clamp(luma + r + ((kRed * r + kHalf) >> 16));
    green[i] = clamp(luma - r + ((kGreenBlue * b + kGreenRed * r + kHalf) >> 16));
    blue[i] = clamp(luma + 2 * b + ((kBlue * b + kHalf) >> 16));
  }
#else
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::Repartition<std::int16_t, decltype(d8)> d16;
  const hn::Repartition<std::int32_t, decltype(d8)> d32;
  using V = hn::Vec<decltype(d16)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d8));
  const auto center = hn::Set(d16, 128), one = hn::Set(d16, 1);
  const auto red_factor = hn::Set(d16, kRed), blue_factor = hn::Set(d16, kBlue);
  const auto green_factors = hn::BitCast(
      d16,
      hn::Set(d32, static_cast<std::int32_t>(static_cast<std::uint32_t>(kGreenRed) << 16 |
                                             (static_cast<std::uint32_t>(kGreenBlue) & 0xffffU))));
  const auto half = hn::Set(d32, 1 << 15);
  const auto lower = [&](auto v) HWY_ATTR {
    return hn::BitCast(d16, hn::InterleaveLower(d8, v, hn::Zero(d8)));
  };
  const auto upper = [&](auto v) HWY_ATTR {
    return hn::BitCast(d16, hn::InterleaveUpper(d8, v, hn::Zero(d8)));
  };
  // (v * factor + half) >> 16: the high half of twice the product, rounded and halved.
  const auto product = [&](V v, V factor) HWY_ATTR {
    return hn::ShiftRight<1>(hn::Add(hn::MulHigh(hn::Add(v, v), factor), one));
  };
  struct Rgb {
    V red, green, blue;
  };
  const auto convert = [&](V luma, V b, V r) HWY_ATTR {
    b = hn::Sub(b, center);
    r = hn::Sub(r, center);
    const auto mixed = [&](V pairs) HWY_ATTR {
      return hn::ShiftRight<16>(hn::Add(multiply_pairs(pairs, green_factors), half));
    };
    const V mix = hn::ReorderDemote2To(d16, mixed(hn::InterleaveLower(d16, b, r)),
                                       mixed(hn::InterleaveUpper(d16, b, r)));
    return Rgb{hn::Add(hn::Add(luma, r), product(r, red_factor)), hn::Add(hn::Sub(luma, r), mix),
               hn::Add(hn::Add(luma, hn::Add(b, b)), product(b, blue_factor))};
  };
  for (std::int64_t i = 0; i < count; i += lanes) {
    const auto luma = hn::LoadU(d8, y + i), b = hn::LoadU(d8, cb + i), r = hn::LoadU(d8, cr + i);
    const Rgb low = convert(lower(luma), lower(b), lower(r));
    const Rgb high = convert(upper(luma), upper(b), upper(r));
    hn::StoreU(pack_bytes(low.red, high.red), d8, red + i);
    hn::StoreU(pack_bytes(low.green, high.green), d8, green + i);
    hn::StoreU(pack_bytes(low.blue, high.blue), d8, blue + i);
  }
#endif
}

// Two results per sample, side by side: as 16-bit lanes, the second is the upper byte.
void Upsample2x1(const std::uint8_t* in, std::int64_t count, std::uint8_t* out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const auto wide = [&](const std::uint8_t* from)
                        HWY_ATTR { return hn::PromoteTo(d16, hn::LoadU(d8, from)); };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  const auto one = hn::Set(d16, 1), two = hn::Set(d16, 2);
  for (; i < count; i += lanes) {
    const auto here = wide(in + i), thrice = hn::Add(here, hn::Add(here, here));
    const auto first = hn::ShiftRight<2>(hn::Add(hn::Add(thrice, wide(in + i - 1)), one));
    const auto second = hn::ShiftRight<2>(hn::Add(hn::Add(thrice, wide(in + i + 1)), two));
    hn::StoreU(
        hn::BitCast(hn::ScalableTag<std::uint8_t>(), hn::Or(first, hn::ShiftLeft<8>(second))),
        hn::ScalableTag<std::uint8_t>(), out + 2 * i);
  }
#endif
  for (; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void Upsample2x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count,
                 std::uint8_t* out) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const auto thrice = [&](auto v) HWY_ATTR { return hn::Add(v, hn::Add(v, v)); };
  const auto column = [&](std::int64_t x) HWY_ATTR {
    return hn::Add(thrice(hn::PromoteTo(d16, hn::LoadU(d8, near + x))),
                   hn::PromoteTo(d16, hn::LoadU(d8, far + x)));
  };
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d16));
  const auto seven = hn::Set(d16, 7), eight = hn::Set(d16, 8);
  for (; i < count; i += lanes) {
    const auto here = thrice(column(i));
    const auto first = hn::ShiftRight<4>(hn::Add(hn::Add(here, column(i - 1)), eight));
    const auto second = hn::ShiftRight<4>(hn::Add(hn::Add(here, column(i + 1)), seven));
    hn::StoreU(
        hn::BitCast(hn::ScalableTag<std::uint8_t>(), hn::Or(first, hn::ShiftLeft<8>(second))),
        hn::ScalableTag<std::uint8_t>(), out + 2 * i);
  }
#endif
  for (; i < count; ++i) {
    const int last = 3 * near[i - 1] + far[i - 1], here = 3 * near[i] + far[i],
              next = 3 * near[i + 1] + far[i + 1];
    out[2 * i] = static_cast<std::uint8_t>((3 * here + last + 8) >> 4);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * here + next + 7) >> 4);
  }
}

// A plain loop: the compiler makes SIMD of it for each level.
void Upsample1x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count, int bias,
                 std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>((3 * near[i] + far[i] + bias) >> 2);
}

Unstuffed Unstuff(const std::uint8_t* data, std::size_t size, std::uint8_t* out) {
  const std::uint8_t *from = data, *end = data + size;
  std::uint8_t* to = out;
#if HWY_TARGET <= HWY_AVX3_DL
  // A vector with stuffing loses what stands behind an FF; a marker is left to the plain loop.
  while (end - from > 64) {
    const __m512i bytes = _mm512_loadu_si512(from);
    const std::uint64_t ff = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
    if (ff == 0) {
      _mm512_storeu_si512(to, bytes);
      from += 64;
      to += 64;
      continue;
    }
    const std::uint64_t zero_next =
        _mm512_testn_epi8_mask(_mm512_loadu_si512(from + 1), _mm512_set1_epi8(-1));
    if ((ff & ~zero_next) != 0) break;
    const std::uint64_t kept = ~(ff << 1);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(kept, bytes));
    to += std::popcount(kept);
    from += 64 + (ff >> 63);
  }
#endif
  while (from < end) {
#if HWY_TARGET != HWY_SCALAR
    const hn::CappedTag<std::uint8_t, 32> d8;
    const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d8));
    while (end - from >= lanes) {
      const auto bytes = hn::LoadU(d8, from);
      hn::StoreU(bytes, d8, to);
      const std::intptr_t first = hn::FindFirstTrue(d8, hn::Eq(bytes, hn::Set(d8, 0xFF)));
      const std::ptrdiff_t clean = first < 0 ? lanes : first;
      from += clean;
      to += clean;
      if (first >= 0) break;
    }
    if (from == end) break;
#endif
    if (*from == 0xFF) {
      if (end - from < 2 || from[1] != 0) break;
      *to++ = 0xFF;
      from += 2;
    } else {
      *to++ = *from++;
    }
  }
  return {static_cast<std::size_t>(from - data), static_cast<std::size_t>(to - out)};
}

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(InverseDct);
HWY_EXPORT(ExpandBlocks);
HWY_EXPORT(PackBlocks);
HWY_EXPORT(ValueBytes);
HWY_EXPORT(YccToRgb);
HWY_EXPORT(Upsample2x1);
HWY_EXPORT(Upsample2x2);
HWY_EXPORT(Upsample1x2);
HWY_EXPORT(Unstuff);

void inverse_dct(std::int16_t* coefficients, const std::int16_t* quantizer, std::int64_t groups,
                 After after, std::uint8_t* out, std::int64_t row_bytes) {
  HWY_DYNAMIC_DISPATCH(InverseDct)(coefficients, quantizer, groups, after, out, row_bytes);
}
const std::uint8_t* expand_blocks(const std::uint8_t* masks, const std::uint8_t* dcs,
                                  const std::uint8_t* values, std::int64_t blocks,
                                  std::int16_t* coefficients) {
  return HWY_DYNAMIC_DISPATCH(ExpandBlocks)(masks, dcs, values, blocks, coefficients);
}
std::uint8_t* pack_blocks(const std::int16_t* coefficients, std::int64_t blocks,
                          std::uint8_t* masks, std::uint8_t* dcs, std::uint8_t* values) {
  return HWY_DYNAMIC_DISPATCH(PackBlocks)(coefficients, blocks, masks, dcs, values);
}
std::size_t value_bytes(const std::uint8_t* masks, std::int64_t blocks) {
  return HWY_DYNAMIC_DISPATCH(ValueBytes)(masks, blocks);
}
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::int64_t count, std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue) {
  HWY_DYNAMIC_DISPATCH(YccToRgb)(y, cb, cr, count, red, green, blue);
}
void upsample_2x1(const std::uint8_t* in, std::int64_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Upsample2x1)(in, count, out);
}
void upsample_2x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count,
                  std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Upsample2x2)(near, far, count, out);
}
void upsample_1x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count, int bias,
                  std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Upsample1x2)(near, far, count, bias, out);
}
Unstuffed unstuff(const std::uint8_t* data, std::size_t size, std::uint8_t* out) {
  return HWY_DYNAMIC_DISPATCH(Unstuff)(data, size, out);
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
