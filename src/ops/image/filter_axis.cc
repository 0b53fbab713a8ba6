// SPDX-License-Identifier: Apache-2.0
#include "ops/image/filter_axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "ops/image/axis_kernels.h"

namespace cutwater::image {
namespace {

// The filters, by how far they reach and what they weigh at a distance.
struct Box {
  static constexpr double kSupport = 0.5;
  static double weight(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};
struct Triangle {
  static constexpr double kSupport = 1.0;  // its weights: triangle_weights()
};
struct Hamming {
  static constexpr double kSupport = 1.0;
  static double weight(double x) {
    x = std::abs(x);
    if (x == 0.0) return 1.0;
    if (x >= 1.0) return 0.0;
    x *= std::numbers::pi;
    return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
  }
};
struct Bicubic {
  static constexpr double kSupport = 2.0;
  static double weight(double x) {
    constexpr double kA = -0.5;
    x = std::abs(x);
    if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
    if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
    return 0.0;
  }
};
struct Lanczos {
  static constexpr double kSupport = 3.0;
  static double weight(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

 private:
  static double sinc(double x) {
    if (x == 0.0) return 1.0;
    x *= std::numbers::pi;
    return std::sin(x) / x;
  }
};

template <class F>
auto with_filter(Interpolation interpolation, const F& use) {
  switch (interpolation) {
    case Interpolation::kBox: return use(Box{});
    case Interpolation::kHamming: return use(Hamming{});
    case Interpolation::kBicubic: return use(Bicubic{});
    case Interpolation::kLanczos: return use(Lanczos{});
    case Interpolation::kBilinear:
    case Interpolation::kNearest:
    case Interpolation::kNearestExact: break;
  }
  return use(Triangle{});
}

// Where the outputs of an axis lie among its inputs.
struct Geometry {
  std::int64_t in;
  double scale, filter_scale, support;

  Geometry(Interpolation filter, std::int64_t inputs, std::int64_t outputs)
      : in(inputs),
        scale(static_cast<double>(inputs) / static_cast<double>(outputs)),
        filter_scale(std::max(scale, 1.0)),
        support(with_filter(filter, [](auto f) { return f.kSupport; }) * filter_scale) {}

  double center(std::int64_t output) const { return (static_cast<double>(output) + 0.5) * scale; }
  std::int32_t low(double center) const {
    return std::max(static_cast<std::int32_t>(center - support + 0.5), 0);
  }
  std::int32_t high(double center) const {
    return std::min(static_cast<std::int32_t>(center + support + 0.5),
                    static_cast<std::int32_t>(in));
  }
  // No output reads more.
  std::int64_t most_taps() const {
    return std::min(static_cast<std::int64_t>(std::ceil(support)) * 2 + 1, in);
  }
  AxisPart reads(std::int64_t begin, std::int64_t end) const {
    // Outputs read from left to right: the first and the last one tell.
    const std::int64_t first = std::min<std::int64_t>(low(center(begin)), in - 1);
    return {first, std::max<std::int64_t>(high(center(end - 1)) - first, 1)};
  }
};

std::int64_t memory_bytes(const Geometry& axis, std::int64_t outputs) {
  const std::int64_t taps = rounded_up(axis.most_taps(), kTapGroup);
  return taps * static_cast<std::int64_t>(sizeof(double)) +
         outputs * (taps + 3) * static_cast<std::int64_t>(sizeof(std::int32_t));
}

// The weights of one output, of the inputs [low, high), into weights[0...].
template <class Filter>
void fill_weights(const Geometry& axis, double center, std::int32_t low, std::int32_t high,
                  double* exact, std::int32_t* weights) {
  const double shrink = 1.0 / axis.filter_scale;
  double total = 0;
  for (std::int32_t t = 0; t < high - low; ++t) {
    exact[t] = Filter::weight((static_cast<double>(low + t) - center + 0.5) * shrink);
    total += exact[t];
  }
  for (std::int32_t t = 0; t < high - low; ++t) {
    const double share = total != 0.0 ? exact[t] / total : exact[t];
    const double fixed = share * (1 << kWeightBits);
    weights[t] = static_cast<std::int32_t>(share < 0 ? fixed - 0.5 : fixed + 0.5);
  }
}

}  // namespace

AxisPart axis_reads(Interpolation filter, std::int64_t in, std::int64_t out, std::int64_t begin,
                    std::int64_t end) {
  return Geometry(filter, in, out).reads(begin, end);
}

FilterAxis::FilterAxis(Interpolation interpolation, std::int64_t in, std::int64_t out,
                       std::int64_t begin, std::int64_t end)
    : memory_(memory_bytes(Geometry(interpolation, in, out), end - begin)) {
  const Geometry axis(interpolation, in, out);
  const AxisPart reads = axis.reads(begin, end);
  const std::int64_t outputs = end - begin;

  auto* const exact = reinterpret_cast<double*>(memory_.data());
  auto* const low =
      reinterpret_cast<std::int32_t*>(exact + rounded_up(axis.most_taps(), kTapGroup));
  std::int32_t* const high = low + outputs;
  std::int32_t* const first = high + outputs;
  std::int32_t* const weights = first + outputs;

  std::int32_t most = 1;
  for (std::int64_t i = 0; i < outputs; ++i) {
    const double center = axis.center(begin + i);
    low[i] = axis.low(center);
    high[i] = axis.high(center);
    most = std::max(most, high[i] - low[i]);
  }
  const std::int64_t taps = rounded_up(most, kTapGroup);
  // The last outputs read further to the left rather than behind the last input.
  const auto last = static_cast<std::int32_t>(std::max(reads.low + reads.count - taps, reads.low));
  for (std::int64_t i = 0; i < outputs; ++i) first[i] = std::min(low[i], last);

  with_filter(interpolation, [&](auto filter) {
    using Filter = decltype(filter);
    if constexpr (std::is_same_v<Filter, Triangle>) {
      triangle_weights(
          {axis.scale, 1.0 / axis.filter_scale, begin, outputs, taps, first, low, high}, exact,
          weights);
    } else {
      std::fill_n(weights, outputs * taps, 0);
      for (std::int64_t i = 0; i < outputs; ++i)
        fill_weights<Filter>(axis, axis.center(begin + i), low[i], high[i], exact,
                             weights + i * taps + (low[i] - first[i]));
    }
    return 0;
  });
  for (std::int64_t i = 0; i < outputs; ++i) first[i] -= static_cast<std::int32_t>(reads.low);
  view_ = {first, weights, taps, outputs, reads.count};
}

}  // namespace cutwater::image
