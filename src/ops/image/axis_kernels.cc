// SPDX-License-Identifier: Apache-2.0
// Compiled once per SIMD level.
#include "ops/image/axis_kernels.h"

#include "ops/image/resize_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/image/axis_kernels.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cutwater::image::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void TriangleWeights(const TriangleAxis& axis, double* exact, std::int32_t* weights) {
  const hn::CappedTag<double, kTapGroup> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto half = hn::Set(d, 0.5), one = hn::Set(d, 1.0), zero = hn::Zero(d);
  const auto shrink = hn::Set(d, axis.shrink), unit = hn::Set(d, 1 << kWeightBits);
  for (std::int64_t i = 0; i < axis.outputs; ++i, weights += axis.taps) {
    const auto center = hn::Set(d, (static_cast<double>(axis.begin + i) + 0.5) * axis.scale);
    const auto low = hn::Set(d, axis.low[i]), high = hn::Set(d, axis.high[i]);
    for (std::int64_t t = 0; t < axis.taps; t += lanes) {
      const auto input = hn::Iota(d, static_cast<double>(axis.first[i] + t));
      const auto x = hn::Mul(hn::Add(hn::Sub(input, center), half), shrink);
      const auto inside = hn::And(hn::Ge(input, low), hn::Lt(input, high));
      hn::StoreU(hn::IfThenElseZero(inside, hn::Max(zero, hn::Sub(one, hn::Abs(x)))), d, exact + t);
    }
    double total = 0;
    for (std::int64_t t = 0; t < axis.taps; ++t) total += exact[t];  // in this order
    const auto divisor = hn::Set(d, total != 0 ? total : 1.0);
    for (std::int64_t t = 0; t < axis.taps; t += lanes) {
      const auto share = hn::Div(hn::LoadU(d, exact + t), divisor);
      hn::StoreU(hn::DemoteTo(d32, hn::Add(hn::Mul(share, unit), half)), d32, weights + t);
    }
  }
}

}  // namespace cutwater::image::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cutwater::image {

HWY_EXPORT(TriangleWeights);

void triangle_weights(const TriangleAxis& axis, double* exact, std::int32_t* weights) {
  HWY_DYNAMIC_DISPATCH(TriangleWeights)(axis, exact, weights);
}

}  // namespace cutwater::image
#endif  // HWY_ONCE
