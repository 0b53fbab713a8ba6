// SPDX-License-Identifier: Apache-2.0
#include "ops/image/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::image {
namespace {

constexpr int kPrecision = 32 - 8 - 2;  // bits of a weight: eight bits of pixel and two of headroom

struct Filter {
  double support;
  double (*weight)(double);
};

double box_weight(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
double triangle_weight(double x) { return std::max(0.0, 1.0 - std::abs(x)); }
double hamming_weight(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (0.54 + 0.46 * std::cos(x));
}
double bicubic_weight(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}
double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}
double lanczos_weight(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

Filter filter_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBox: return {0.5, box_weight};
    case Interpolation::kHamming: return {1.0, hamming_weight};
    case Interpolation::kBicubic: return {2.0, bicubic_weight};
    case Interpolation::kLanczos: return {3.0, lanczos_weight};
    case Interpolation::kBilinear:
    case Interpolation::kNearest:
    case Interpolation::kNearestExact: break;
  }
  return {1.0, triangle_weight};
}

// One axis of a resize: output i is the sum of in[first[i] + t] * weight(i)[t] over count[i] taps.
class Axis {
 public:
  Axis(const Filter& filter, std::int64_t in, std::int64_t out, std::int64_t begin, std::int64_t end)
      : begin_(begin) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const double filter_scale = std::max(scale, 1.0);
    const double support = filter.support * filter_scale;
    taps_ = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
    const auto outputs = static_cast<std::size_t>(end - begin);
    first_.resize(outputs);
    count_.resize(outputs);
    weights_.resize(outputs * taps_);
    std::vector<double> exact(taps_);
    for (std::size_t i = 0; i < outputs; ++i) {
      const double center = (static_cast<double>(begin + static_cast<std::int64_t>(i)) + 0.5) * scale;
      const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
      const auto high = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), in);
      const auto taps = static_cast<std::size_t>(high - low);
      double total = 0;
      for (std::size_t t = 0; t < taps; ++t) {
        exact[t] = filter.weight((static_cast<double>(t) + static_cast<double>(low) - center + 0.5) *
                                 (1.0 / filter_scale));
        total += exact[t];
      }
      for (std::size_t t = 0; t < taps; ++t) {
        const double share = total != 0.0 ? exact[t] / total : exact[t];
        const double fixed = share * (1 << kPrecision);
        weights_[i * taps_ + t] = static_cast<std::int32_t>(share < 0 ? fixed - 0.5 : fixed + 0.5);
      }
      first_[i] = low;
      count_[i] = static_cast<std::int64_t>(taps);
    }
  }

  std::int64_t first(std::int64_t i) const { return first_[index(i)]; }
  std::int64_t count(std::int64_t i) const { return count_[index(i)]; }
  const std::int32_t* weights(std::int64_t i) const { return weights_.data() + index(i) * taps_; }

  // The inputs that all outputs together read: the first, and how many.
  std::pair<std::int64_t, std::int64_t> reads() const {
    std::int64_t low = first_.front(), high = 0;
    for (std::size_t i = 0; i < first_.size(); ++i) {
      low = std::min(low, first_[i]);
      high = std::max(high, first_[i] + count_[i]);
    }
    return {low, std::max<std::int64_t>(high - low, 1)};
  }

 private:
  std::size_t index(std::int64_t i) const { return static_cast<std::size_t>(i - begin_); }

  std::int64_t begin_;
  std::size_t taps_ = 0;
  std::vector<std::int64_t> first_, count_;
  std::vector<std::int32_t> weights_;
};

std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

// One row to output pixels [begin, end). `row` starts at the row's pixel number `origin`.
template <int kChannels>
void filter_row(const std::uint8_t* row, std::int64_t origin, const Axis& axis, std::int64_t begin,
                std::int64_t end, std::uint8_t* out) {
  for (std::int64_t x = begin; x < end; ++x, out += kChannels) {
    const std::uint8_t* pixel = row + (axis.first(x) - origin) * kChannels;
    const std::int32_t* weight = axis.weights(x);
    std::array<std::int32_t, static_cast<std::size_t>(kChannels)> sum;
    sum.fill(1 << (kPrecision - 1));
    for (std::int64_t t = axis.count(x); t > 0; --t, ++weight, pixel += kChannels)
      for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += pixel[c] * *weight;
    for (std::size_t c = 0; c < sum.size(); ++c) out[c] = rounded(sum[c]);
  }
}

// `bytes` neighbouring bytes of one output row, from rows `row_bytes` apart.
void filter_columns(const std::uint8_t* first_row, std::int64_t row_bytes, const std::int32_t* weights,
                    std::int64_t taps, std::int64_t bytes, std::vector<std::int32_t>& sums,
                    std::uint8_t* out) {
  const auto count = static_cast<std::size_t>(bytes);
  sums.assign(count, 1 << (kPrecision - 1));
  for (std::int64_t t = 0; t < taps; ++t) {
    const std::uint8_t* row = first_row + t * row_bytes;
    const std::int32_t weight = weights[t];
    for (std::size_t i = 0; i < count; ++i) sums[i] += row[i] * weight;
  }
  for (std::size_t i = 0; i < count; ++i) out[i] = rounded(sums[i]);
}

// The working rows of a thread, kept between samples: fresh pages cost more than the filtering.
struct Scratch {
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> sums;
};
Scratch& scratch() {
  thread_local Scratch rows;
  return rows;
}

bool columns_first(const Region& box, std::int64_t height, std::int64_t width, const Resample& how) {
  const std::int64_t shrink = box.height - height;
  return how.pillow >= 13 && shrink > 0 && shrink > 2 * (box.width - width);
}

void copy_part(const TensorView& in, const Region& box, const TensorSpan& out) {
  const Region& make = out.present();
  for (std::int64_t y = make.top; y < make.top + make.height; ++y)
    std::copy_n(in.pixel(box.top + y, box.left + make.left), make.width * in.pixel_bytes(),
                out.pixel(y, make.left));
}

// Pillow steps through the source by adding the scale, so errors of the sum are part of the pixels;
// what steps out of the image stays black.
std::vector<std::int64_t> nearest_places(std::int64_t in, std::int64_t out) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(out));
  const double step = static_cast<double>(in) / static_cast<double>(out);
  double at = step * 0.5;
  for (std::int64_t& place : places) {
    const auto source = static_cast<std::int64_t>(at);
    place = source < in ? source : -1;
    at += step;
  }
  return places;
}

void resample_nearest(const TensorView& in, const Region& box, const TensorSpan& out) {
  const Region& make = out.present();
  const auto rows = nearest_places(box.height, out.dim(0));
  const auto columns = nearest_places(box.width, out.dim(1));
  const std::int64_t channels = in.pixel_bytes();
  for (std::int64_t y = make.top; y < make.top + make.height; ++y) {
    std::uint8_t* to = out.pixel(y, make.left);
    const std::int64_t row = rows[static_cast<std::size_t>(y)];
    for (std::int64_t x = make.left; x < make.left + make.width; ++x, to += channels) {
      const std::int64_t column = columns[static_cast<std::size_t>(x)];
      if (row < 0 || column < 0)
        std::fill_n(to, channels, std::uint8_t{0});
      else
        std::copy_n(in.pixel(box.top + row, box.left + column), channels, to);
    }
  }
}

bool is_nearest(const Resample& how) {
  return how.interpolation == Interpolation::kNearest ||
         how.interpolation == Interpolation::kNearestExact;
}

template <int kChannels>
void resample_filtered(const TensorView& in, const Region& box, const Resample& how,
                       const TensorSpan& out) {
  const Region& make = out.present();
  const Filter filter = filter_of(how.interpolation);
  const bool filter_x = box.width != out.dim(1), filter_y = box.height != out.dim(0);
  const std::int64_t bottom = make.top + make.height, right = make.left + make.width;
  const Axis columns(filter, box.width, out.dim(1), make.left, right);
  const Axis rows(filter, box.height, out.dim(0), make.top, bottom);
  const std::int64_t left = columns.reads().first, width = columns.reads().second;
  const auto source_row = [&](std::int64_t y) { return in.pixel(box.top + y, box.left + left); };
  Scratch& work = scratch();

  if (!filter_y) {
    for (std::int64_t y = make.top; y < bottom; ++y)
      filter_row<kChannels>(source_row(y), left, columns, make.left, right, out.pixel(y, make.left));
    return;
  }
  if (!filter_x) {
    for (std::int64_t y = make.top; y < bottom; ++y)
      filter_columns(in.pixel(box.top + rows.first(y), box.left + make.left), in.row_bytes(),
                     rows.weights(y), rows.count(y), make.width * kChannels, work.sums,
                     out.pixel(y, make.left));
    return;
  }
  if (columns_first(box, out.dim(0), out.dim(1), how)) {
    work.pixels.resize(static_cast<std::size_t>(width * kChannels));
    for (std::int64_t y = make.top; y < bottom; ++y) {
      filter_columns(source_row(rows.first(y)), in.row_bytes(), rows.weights(y), rows.count(y),
                     width * kChannels, work.sums, work.pixels.data());
      filter_row<kChannels>(work.pixels.data(), left, columns, make.left, right,
                            out.pixel(y, make.left));
    }
    return;
  }
  const auto [top, height] = rows.reads();
  const std::int64_t row_bytes = make.width * kChannels;
  work.pixels.resize(static_cast<std::size_t>(height * row_bytes));
  for (std::int64_t y = 0; y < height; ++y)
    filter_row<kChannels>(source_row(top + y), left, columns, make.left, right,
                          work.pixels.data() + y * row_bytes);
  for (std::int64_t y = make.top; y < bottom; ++y)
    filter_columns(work.pixels.data() + (rows.first(y) - top) * row_bytes, row_bytes, rows.weights(y),
                   rows.count(y), row_bytes, work.sums, out.pixel(y, make.left));
}

}  // namespace

void require_pillow(std::string_view op, std::int64_t pillow) {
  if (pillow < kOldestPillow || pillow > kNewestPillow)
    throw Error(Code::kInvalidArgument,
                std::string(op) + ": pillow must be 13, or 12 for the pixels of Pillow up to 12, got " +
                    std::to_string(pillow));
}

void resample(const TensorView& in, const Region& box, const Resample& how, const TensorSpan& out) {
  if (box.height == out.dim(0) && box.width == out.dim(1)) return copy_part(in, box, out);
  if (is_nearest(how)) return resample_nearest(in, box, out);
  if (in.dim(2) == 1) return resample_filtered<1>(in, box, how, out);
  resample_filtered<3>(in, box, how, out);
}

Region resample_needs(const Region& box, std::int64_t out_height, std::int64_t out_width,
                      const Resample& how, const Region& out) {
  if (box.height == out_height && box.width == out_width)
    return {box.top + out.top, box.left + out.left, out.height, out.width};
  if (is_nearest(how)) return box;
  const Filter filter = filter_of(how.interpolation);
  const Axis rows(filter, box.height, out_height, out.top, out.top + out.height);
  const Axis columns(filter, box.width, out_width, out.left, out.left + out.width);
  const auto [top, height] = rows.reads();
  const auto [left, width] = columns.reads();
  return {box.top + top, box.left + left, height, width};
}

}  // namespace cutwater::image
