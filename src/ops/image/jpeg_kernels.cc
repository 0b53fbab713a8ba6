// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/jpeg_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Constants of the slow integer DCT: cosines in 13-bit fixed point (Loeffler, Ligtenberg,
// Moschytz).
constexpr int kConstBits = 13, kPass1Bits = 2;
constexpr std::int32_t k0298 = 2446, k0390 = 3196, k0541 = 4433, k0765 = 6270, k0899 = 7373,
                       k1175 = 9633, k1501 = 12299, k1847 = 15137, k1961 = 16069, k2053 = 16819,
                       k2562 = 20995, k3072 = 25172;

// One pass over columns: in[r] is row r (16-bit), out[r] likewise, scaled down by kShift and
// saturated. Sums of two inputs wrap at 16 bits, as in libjpeg-turbo.
template <int kShift, class D32>
HWY_INLINE void dct_pass(D32 d32, const std::int16_t* in, std::int16_t* out) {
  const hn::Rebind<std::int16_t, D32> d16;
  const auto row = [&](int r) HWY_ATTR { return hn::LoadU(d16, in + 8 * r); };
  const auto wide = [&](auto v) HWY_ATTR { return hn::PromoteTo(d32, v); };
  const auto times = [&](auto v, std::int32_t c) HWY_ATTR { return hn::Mul(v, hn::Set(d32, c)); };

  const auto x2 = wide(row(2)), x6 = wide(row(6));
  const auto t2 = hn::Add(times(x2, k0541), times(x6, k0541 - k1847));
  const auto t3 = hn::Add(times(x2, k0541 + k0765), times(x6, k0541));
  const auto t0 = hn::ShiftLeft<kConstBits>(wide(hn::Add(row(0), row(4))));
  const auto t1 = hn::ShiftLeft<kConstBits>(wide(hn::Sub(row(0), row(4))));
  const auto half = hn::Set(d32, 1 << (kShift - 1));
  const auto e0 = hn::Add(hn::Add(t0, t3), half), e3 = hn::Add(hn::Sub(t0, t3), half);
  const auto e1 = hn::Add(hn::Add(t1, t2), half), e2 = hn::Add(hn::Sub(t1, t2), half);

  const auto x1 = wide(row(1)), x3 = wide(row(3)), x5 = wide(row(5)), x7 = wide(row(7));
  const auto s3 = wide(hn::Add(row(7), row(3))), s4 = wide(hn::Add(row(5), row(1)));
  const auto z3 = hn::Add(times(s3, k1175 - k1961), times(s4, k1175));
  const auto z4 = hn::Add(times(s3, k1175), times(s4, k1175 - k0390));
  const auto o0 = hn::Add(hn::Add(times(x7, k0298 - k0899), times(x1, -k0899)), z3);
  const auto o3 = hn::Add(hn::Add(times(x7, -k0899), times(x1, k1501 - k0899)), z4);
  const auto o1 = hn::Add(hn::Add(times(x5, k2053 - k2562), times(x3, -k2562)), z4);
  const auto o2 = hn::Add(hn::Add(times(x5, -k2562), times(x3, k3072 - k2562)), z3);

  const auto put = [&](int r, auto sum) HWY_ATTR {
    hn::StoreU(hn::DemoteTo(d16, hn::ShiftRight<kShift>(sum)), d16, out + 8 * r);
  };
  put(0, hn::Add(e0, o3));
  put(7, hn::Sub(e0, o3));
  put(1, hn::Add(e1, o2));
  put(6, hn::Sub(e1, o2));
  put(2, hn::Add(e2, o1));
  put(5, hn::Sub(e2, o1));
  put(3, hn::Add(e3, o0));
  put(4, hn::Sub(e3, o0));
}

template <int kShift>
HWY_INLINE void dct_columns(const std::int16_t* in, std::int16_t* out) {
  const hn::CappedTag<std::int32_t, 8> d32;
  for (std::size_t c = 0; c < 8; c += hn::Lanes(d32)) dct_pass<kShift>(d32, in + c, out + c);
}

HWY_INLINE void transpose_block(std::int16_t* block) {
#if HWY_TARGET == HWY_SCALAR
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < i; ++j) {
      const std::int16_t kept = block[8 * i + j];
      block[8 * i + j] = block[8 * j + i];
      block[8 * j + i] = kept;
    }
#else
  const hn::FixedTag<std::int16_t, 8> d16;
  hn::Vec<decltype(d16)> rows[8], mixed[8];
  const auto interleave = [d16](const auto* from, auto* to) HWY_ATTR {
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = hn::InterleaveLower(d16, from[i], from[i + 4]);
      to[2 * i + 1] = hn::InterleaveUpper(d16, from[i], from[i + 4]);
    }
  };
  for (int i = 0; i < 8; ++i) rows[i] = hn::Load(d16, block + 8 * i);
  interleave(rows, mixed);
  interleave(mixed, rows);
  interleave(rows, mixed);
  for (int i = 0; i < 8; ++i) hn::Store(mixed[i], d16, block + 8 * i);
#endif
}

HWY_INLINE bool only_first_row(const std::int16_t* block) {
  const hn::CappedTag<std::int16_t, 8> d16;
  auto any = hn::Zero(d16);
  for (std::size_t i = 8; i < 64; i += hn::Lanes(d16)) any = hn::Or(any, hn::LoadU(d16, block + i));
  return hn::AllTrue(d16, hn::Eq(any, hn::Zero(d16)));
}

void InverseDct(const std::int16_t* coefficients, std::int64_t stride,
                const std::int16_t* quantizer, std::int64_t blocks, std::uint8_t* out,
                std::int64_t row_bytes) {
  alignas(64) std::int16_t a[64], b[64];
  const hn::CappedTag<std::int16_t, 32> d16;
  const hn::CappedTag<std::int16_t, 8> row16;
  const hn::Rebind<std::uint8_t, decltype(row16)> row8;
  for (std::int64_t block = 0; block < blocks; ++block, coefficients += stride, out += 8) {
    for (std::size_t i = 0; i < 64; i += hn::Lanes(d16))
      hn::Store(hn::Mul(hn::LoadU(d16, coefficients + i), hn::LoadU(d16, quantizer + i)), d16,
                a + i);
    if (only_first_row(coefficients)) {
      // Each column is constant. libjpeg-turbo takes this way, too, and lets large values wrap.
      for (std::size_t i = 0; i < 64; i += hn::Lanes(row16))
        hn::Store(hn::ShiftLeft<kPass1Bits>(hn::Load(row16, a + i % 8)), row16, b + i);
    } else {
      dct_columns<kConstBits - kPass1Bits>(a, b);
    }
    transpose_block(b);
    dct_columns<kConstBits + kPass1Bits + 3>(b, a);
    transpose_block(a);
    const auto center = hn::Set(row16, 128);
    for (std::int64_t r = 0; r < 8; ++r)
      for (std::size_t c = 0; c < 8; c += hn::Lanes(row16))
        hn::StoreU(hn::DemoteTo(row8, hn::SaturatedAdd(hn::LoadU(row16, a + 8 * r + c), center)),
                   row8, out + r * row_bytes + c);
  }
}

// y + (v * c + half) >> 16, per lane.
void YccToRgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
              std::int64_t count, std::uint8_t* rgb) {
  constexpr std::int32_t kHalf = 1 << 15;
  const auto scalar = [&](std::int64_t i) {
    const std::int32_t luma = y[i], b = cb[i] - 128, r = cr[i] - 128;
    const auto clamp = [](std::int32_t v) {
      return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
    };
    rgb[3 * i] = clamp(luma + ((91881 * r + kHalf) >> 16));
    rgb[3 * i + 1] = clamp(luma + ((-22554 * b - 46802 * r + kHalf) >> 16));
    rgb[3 * i + 2] = clamp(luma + ((116130 * b + kHalf) >> 16));
  };
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<std::uint8_t, decltype(d32)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  const auto half = hn::Set(d32, kHalf), center = hn::Set(d32, 128);
  const auto scaled = [&](auto v, std::int32_t c) HWY_ATTR { return hn::Mul(v, hn::Set(d32, c)); };
  for (; i + lanes <= count; i += lanes) {
    const auto luma = hn::PromoteTo(d32, hn::LoadU(d8, y + i));
    const auto b = hn::Sub(hn::PromoteTo(d32, hn::LoadU(d8, cb + i)), center);
    const auto r = hn::Sub(hn::PromoteTo(d32, hn::LoadU(d8, cr + i)), center);
    const auto red = hn::Add(luma, hn::ShiftRight<16>(hn::Add(scaled(r, 91881), half)));
    const auto green = hn::Add(
        luma, hn::ShiftRight<16>(hn::Add(hn::Add(scaled(b, -22554), scaled(r, -46802)), half)));
    const auto blue = hn::Add(luma, hn::ShiftRight<16>(hn::Add(scaled(b, 116130), half)));
    hn::StoreInterleaved3(hn::DemoteTo(d8, red), hn::DemoteTo(d8, green), hn::DemoteTo(d8, blue),
                          d8, rgb + 3 * i);
  }
#endif
  for (; i < count; ++i) scalar(i);
}

// Plain loops: the compiler makes SIMD of them for each level.
void Upsample2x1(const std::uint8_t* in, std::int64_t count, std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void Upsample2x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count,
                 std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t last = 3 * near[i - 1] + far[i - 1], here = 3 * near[i] + far[i],
                       next = 3 * near[i + 1] + far[i + 1];
    out[2 * i] = static_cast<std::uint8_t>((3 * here + last + 8) >> 4);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * here + next + 7) >> 4);
  }
}

void Upsample1x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count, int bias,
                 std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i)
    out[i] = static_cast<std::uint8_t>((3 * near[i] + far[i] + bias) >> 2);
}

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(InverseDct);
HWY_EXPORT(YccToRgb);
HWY_EXPORT(Upsample2x1);
HWY_EXPORT(Upsample2x2);
HWY_EXPORT(Upsample1x2);

void inverse_dct(const std::int16_t* coefficients, std::int64_t stride,
                 const std::int16_t* quantizer, std::int64_t blocks, std::uint8_t* out,
                 std::int64_t row_bytes) {
  HWY_DYNAMIC_DISPATCH(InverseDct)(coefficients, stride, quantizer, blocks, out, row_bytes);
}
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::int64_t count, std::uint8_t* rgb) {
  HWY_DYNAMIC_DISPATCH(YccToRgb)(y, cb, cr, count, rgb);
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

}  // namespace cutwater::image
#endif  // HWY_ONCE
