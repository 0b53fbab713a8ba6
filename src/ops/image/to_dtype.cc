// SPDX-License-Identifier: Apache-2.0
// to_dtype: another element type, as torchvision.transforms.v2.ToDtype; with scale=True the range
// of the old type becomes the range of the new one.
#include <bit>
#include <cmath>
#include <limits>

#include "ops/image/image_ops.h"

namespace cutwater::image {
namespace {

// IEEE 754 binary16 from binary32, rounded to nearest even. Arithmetic is torch's: in float32.
struct Half {
  std::uint16_t bits;

  static Half from(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(word >> 16 & 0x8000U);
    const std::uint32_t magnitude = word & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};   // NaN
    if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // infinity
    if (magnitude < 0x38800000U) {  // subnormal: let float addition do the rounding
      const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
      return {
          static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U))};
    }
    const std::uint32_t odd = magnitude >> 13 & 1U;
    return {static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13))};
  }
  float to_float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t magnitude = bits & 0x7fffU;
    if (magnitude >= 0x7c00U)
      return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
    const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1.0p112F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }
};

template <class F>
void visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kU8: return f.template operator()<std::uint8_t>();
    case DType::kI16: return f.template operator()<std::int16_t>();
    case DType::kI32: return f.template operator()<std::int32_t>();
    case DType::kI64: return f.template operator()<std::int64_t>();
    case DType::kF16: return f.template operator()<Half>();
    case DType::kF32: return f.template operator()<float>();
    case DType::kF64: return f.template operator()<double>();
  }
}

template <class T>
constexpr bool kInteger = std::is_integral_v<T>;

// Out-of-range floats become something defined, where C++ leaves it open.
template <class To, class From>
To to_integer(From value) {
  using Limits = std::numeric_limits<To>;
  if (!(value >= static_cast<From>(Limits::min()))) return Limits::min();
  if (value >= static_cast<From>(Limits::max())) return Limits::max();
  return static_cast<To>(value);
}

template <class To, class From>
To convert(From value, bool scale) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half>) {
    if constexpr (kInteger<To>) {
      if (!scale) return to_integer<To>(value.to_float());
      // torch multiplies halves: the product is rounded to a half before it is cut off.
      const auto most = static_cast<double>(std::numeric_limits<To>::max());
      const float scaled = value.to_float() * static_cast<float>(most + 1.0 - 1e-3);
      return to_integer<To>(Half::from(scaled).to_float());
    } else {
      return convert<To>(value.to_float(), scale);
    }
  } else if constexpr (std::is_same_v<To, Half>) {
    if constexpr (kInteger<From>) {
      // torch converts first and scales the half: two roundings.
      const Half plain = Half::from(static_cast<float>(value));
      if (!scale) return plain;
      const auto most = static_cast<double>(std::numeric_limits<From>::max());
      return Half::from(plain.to_float() * static_cast<float>(1.0 / most));
    } else {
      return Half::from(static_cast<float>(value));
    }
  } else if constexpr (kInteger<From> && kInteger<To>) {
    constexpr int kShift = std::numeric_limits<From>::digits - std::numeric_limits<To>::digits;
    if (!scale) return static_cast<To>(value);
    if constexpr (kShift > 0)
      return static_cast<To>(value >> kShift);
    else
      return static_cast<To>(static_cast<std::make_unsigned_t<To>>(value) << -kShift);
  } else if constexpr (kInteger<From>) {
    const To real = static_cast<To>(value);
    if (!scale) return real;
    return real * static_cast<To>(1.0 / static_cast<double>(std::numeric_limits<From>::max()));
  } else if constexpr (kInteger<To>) {
    if (!scale) return to_integer<To>(value);
    const double most = static_cast<double>(std::numeric_limits<To>::max());
    return to_integer<To>(value * static_cast<From>(most + 1.0 - 1e-3));
  } else {
    return static_cast<To>(value);
  }
}

struct ToDtype {
  DType dtype = DType::kF32;
  bool scale = false;

  static constexpr std::tuple kParams{
      Param{"dtype", &ToDtype::dtype, "uint8, int16, int32, int64, float16, float32 or float64.",
            Need::kRequired},
      Param{"scale", &ToDtype::scale, "Map the old type's range (floats: 0..1) to the new one's."}};

  void check() const {}
  TensorSpec out_spec(const TensorView& in) const {
    const DType from = in.spec().dtype;
    const bool unsafe = (from == DType::kF32 && (dtype == DType::kI32 || dtype == DType::kI64)) ||
                        (from == DType::kF64 && dtype == DType::kI64);
    if (scale && unsafe)
      throw Error(Code::kInvalidArgument,
                  "to_dtype: " + std::string(name_of(from)) + " cannot be scaled to " +
                      std::string(name_of(dtype)) + " without loss; go through uint8 or int16");
    if (in.spec().shape.rank() == 1 || in.spec().layout == Layout::kPacked)
      throw Error(Code::kInvalidArgument,
                  "to_dtype: needs pixels, got stored bytes; put decode before it");
    return {dtype, in.spec().shape, in.spec().layout};
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    const std::int64_t count = in.spec().shape.elements();
    visit_dtype(in.spec().dtype, [&]<class From>() {
      visit_dtype(dtype, [&]<class To>() {
        const auto* from = reinterpret_cast<const From*>(in.bytes());
        auto* to = reinterpret_cast<To*>(out.bytes());
        for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i], scale);
      });
    });
  }
};

}  // namespace

constinit const OpDef kToDtype =
    define_op<ToDtype>(image_op("to_dtype", "Change the element type, with or without scaling."));

}  // namespace cutwater::image
