// SPDX-License-Identifier: Apache-2.0
// Compiled once per SIMD level. A row that is no multiple of the vector ends with a vector that
// overlaps the one before.
#include "ops/image/pixel_kernels.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/pixel_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls work(d, i) with vectors of T that together cover [0, count), and no place outside of it.
template <class T, class Work>
HWY_INLINE void for_vectors(std::int64_t count, const Work& work) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if (count >= lanes) {
    for (std::int64_t i = 0; i + lanes <= count; i += lanes) work(d, i);
    if (count % lanes != 0) work(d, count - lanes);
  } else {
    for (std::int64_t i = 0; i < count; ++i) work(hn::CappedTag<T, 1>(), i);
  }
}

void SplitPixels(const std::uint8_t* pixels, std::int64_t count, std::uint8_t* const* planes) {
  std::uint8_t *const red = planes[0], *const green = planes[1], *const blue = planes[2];
  for_vectors<std::uint8_t>(count, [=](auto d, std::int64_t i) HWY_ATTR {
    hn::Vec<decltype(d)> r, g, b;
    hn::LoadInterleaved3(d, pixels + 3 * i, r, g, b);
    hn::StoreU(r, d, red + i);
    hn::StoreU(g, d, green + i);
    hn::StoreU(b, d, blue + i);
  });
}

void JoinPixels(const PlanarRow& row, std::int64_t count, std::uint8_t* pixels) {
  const std::uint8_t *red = row.plane[0], *green = row.plane[1], *blue = row.plane[2];
  for_vectors<std::uint8_t>(count, [=](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreInterleaved3(hn::LoadU(d, red + i), hn::LoadU(d, green + i), hn::LoadU(d, blue + i), d,
                          pixels + 3 * i);
  });
}

// value / 255, rounded: 1 / 255 as a sum of two floats, the first so short that its product with a
// byte is exact.
template <class D>
HWY_INLINE hn::Vec<D> unit(D d, const std::uint8_t* in) {
  constexpr float kShort = 0x1.0101p-8F;
  constexpr auto kRest = static_cast<float>(1.0 / 255 - kShort);
  const hn::Rebind<std::uint8_t, D> d8;
  const hn::Rebind<std::int32_t, D> d32;
  const auto value = hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(d8, in)));
  return hn::MulAdd(value, hn::Set(d, kShort), hn::Mul(value, hn::Set(d, kRest)));
}

// Vectors of one channel.
template <class D, bool kInverse>
struct Normalizer {
  hn::Vec<D> mean, std, inverse, rest;

  HWY_INLINE explicit Normalizer(const ChannelValues& values)
      : mean(hn::Set(D(), values.mean())),
        std(hn::Set(D(), values.std())),
        inverse(hn::Set(D(), values.inverse())),
        rest(hn::Set(D(), values.inverse_rest())) {}

  HWY_INLINE hn::Vec<D> operator()(const std::uint8_t* in) const {
    const auto centered = hn::Sub(unit(D(), in), mean);
    if constexpr (kInverse) return hn::MulAdd(centered, inverse, hn::Mul(centered, rest));
    return hn::Div(centered, std);
  }
};

template <bool kInverse>
HWY_INLINE void normalize(const ChannelValues& values, const std::uint8_t* in, std::int64_t count,
                          float* out) {
  // By value: floats in memory could be those that are written.
  for_vectors<float>(count, [values, in, out](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(Normalizer<decltype(d), kInverse>(values)(in + i), d, out + i);
  });
}

void ToFloatPlanes(const ChannelValues* values, const PlanarRow& in, std::int64_t channels,
                   std::int64_t count, float* out, std::int64_t plane_stride) {
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c, out += plane_stride) {
    if (HWY_NATIVE_FMA && values[c].has_inverse())
      normalize<true>(values[c], in.plane[c], count, out);
    else
      normalize<false>(values[c], in.plane[c], count, out);
  }
}

template <bool kInverse>
HWY_INLINE void normalize_pixels(const ChannelValues* values, const PlanarRow& in,
                                 std::int64_t count, float* out) {
  const std::uint8_t *red = in.plane[0], *green = in.plane[1], *blue = in.plane[2];
  const ChannelValues first = values[0], second = values[1], third = values[2];
  for_vectors<float>(count, [=](auto d, std::int64_t i) HWY_ATTR {
    using Channel = Normalizer<decltype(d), kInverse>;
    hn::StoreInterleaved3(Channel(first)(red + i), Channel(second)(green + i),
                          Channel(third)(blue + i), d, out + 3 * i);
  });
}

void ToFloatPixels(const ChannelValues* values, const PlanarRow& in, std::int64_t count,
                   float* out) {
  if (HWY_NATIVE_FMA && values[0].has_inverse() && values[1].has_inverse() &&
      values[2].has_inverse())
    normalize_pixels<true>(values, in, count, out);
  else
    normalize_pixels<false>(values, in, count, out);
}

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(SplitPixels);
HWY_EXPORT(JoinPixels);
HWY_EXPORT(ToFloatPlanes);
HWY_EXPORT(ToFloatPixels);

void split_pixels(const std::uint8_t* pixels, std::int64_t count, std::uint8_t* const* planes) {
  HWY_DYNAMIC_DISPATCH(SplitPixels)(pixels, count, planes);
}
void join_pixels(const PlanarRow& row, std::int64_t count, std::uint8_t* pixels) {
  HWY_DYNAMIC_DISPATCH(JoinPixels)(row, count, pixels);
}
void to_float_planes(const ChannelValues* values, const PlanarRow& in, std::int64_t channels,
                     std::int64_t count, float* out, std::int64_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(ToFloatPlanes)(values, in, channels, count, out, plane_stride);
}
void to_float_pixels(const ChannelValues* values, const PlanarRow& in, std::int64_t count,
                     float* out) {
  HWY_DYNAMIC_DISPATCH(ToFloatPixels)(values, in, count, out);
}

ChannelValues::ChannelValues(float mean, float std) : mean_(mean), std_(std) {
  std::uint8_t bytes[256];
  for (int i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  float divided[256], multiplied[256];
  to_float_planes(this, {{bytes}}, 1, 256, divided, 0);
  inverse_ = 1 / std;
  inverse_rest_ = static_cast<float>(1 / static_cast<double>(std) - inverse_);
  to_float_planes(this, {{bytes}}, 1, 256, multiplied, 0);
  for (int i = 0; i < 256; ++i)
    if (std::bit_cast<std::uint32_t>(divided[i]) != std::bit_cast<std::uint32_t>(multiplied[i])) {
      inverse_ = inverse_rest_ = 0;
      return;
    }
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
