// SPDX-License-Identifier: Apache-2.0
#include "ops/image/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "cutwater/error.h"
#include "ops/image/filter_kernels.h"

namespace cutwater::image {
namespace {

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
  Axis(const Filter& filter, std::int64_t in, std::int64_t out, std::int64_t begin,
       std::int64_t end)
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
      const double center =
          (static_cast<double>(begin + static_cast<std::int64_t>(i)) + 0.5) * scale;
      const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
      const auto high =
          std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), in);
      const auto taps = static_cast<std::size_t>(high - low);
      double total = 0;
      for (std::size_t t = 0; t < taps; ++t) {
        exact[t] =
            filter.weight((static_cast<double>(t) + static_cast<double>(low) - center + 0.5) *
                          (1.0 / filter_scale));
        total += exact[t];
      }
      for (std::size_t t = 0; t < taps; ++t) {
        const double share = total != 0.0 ? exact[t] / total : exact[t];
        const double fixed = share * (1 << kWeightBits);
        weights_[i * taps_ + t] = static_cast<std::int32_t>(share < 0 ? fixed - 0.5 : fixed + 0.5);
      }
      first_[i] = low;
      count_[i] = static_cast<std::int64_t>(taps);
    }
  }

  std::int64_t first(std::int64_t i) const { return first_[index(i)]; }
  std::int64_t count(std::int64_t i) const { return count_[index(i)]; }
  const std::int32_t* weights(std::int64_t i) const { return weights_.data() + index(i) * taps_; }

  AxisView view() const {
    return {first_.data(), count_.data(), weights_.data(), static_cast<std::int64_t>(taps_),
            static_cast<std::int64_t>(first_.size())};
  }

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

// The working rows of a thread, kept between samples: fresh pages cost more than the filtering.
struct Scratch {
  std::vector<std::uint8_t> rows, tiles;
};
Scratch& scratch() {
  thread_local Scratch work;
  return work;
}

bool columns_first(const Region& box, std::int64_t height, std::int64_t width,
                   const Resample& how) {
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

void resample_filtered(const TensorView& in, const Region& box, const Resample& how,
                       const TensorSpan& out) {
  const Region& make = out.present();
  const Filter filter = filter_of(how.interpolation);
  const bool filter_x = box.width != out.dim(1), filter_y = box.height != out.dim(0);
  const std::int64_t channels = in.dim(2), bottom = make.top + make.height;
  const Axis columns(filter, box.width, out.dim(1), make.left, make.left + make.width);
  const Axis rows(filter, box.height, out.dim(0), make.top, bottom);
  const std::int64_t left = columns.reads().first, width = columns.reads().second;
  Scratch& work = scratch();
  work.tiles.resize(static_cast<std::size_t>(filter_rows_work(width, make.width, channels)));

  // `count` rows that start at pixel `left` of the box, along the row.
  const auto along = [&](const std::uint8_t* from, std::int64_t from_stride, std::int64_t count,
                         std::uint8_t* to, std::int64_t to_stride) {
    for (std::int64_t y = 0; y < count; y += kTile)
      filter_rows(from + y * from_stride, from_stride, std::min(kTile, count - y), width, left,
                  channels, columns.view(), to + y * to_stride, to_stride, work.tiles.data());
  };
  // `count` bytes of output row y, across rows.
  const auto across = [&](const std::uint8_t* from, std::int64_t from_stride, std::int64_t y,
                          std::int64_t count, std::uint8_t* to) {
    filter_bytes(from, from_stride, rows.weights(y), rows.count(y), count, to);
  };

  if (!filter_y) {
    along(in.pixel(box.top + make.top, box.left + left), in.row_bytes(), make.height,
          out.pixel(make.top, make.left), out.row_bytes());
    return;
  }
  if (!filter_x) {
    for (std::int64_t y = make.top; y < bottom; ++y)
      across(in.pixel(box.top + rows.first(y), box.left + make.left), in.row_bytes(), y,
             make.width * channels, out.pixel(y, make.left));
    return;
  }
  if (columns_first(box, out.dim(0), out.dim(1), how)) {
    const std::int64_t row_bytes = width * channels;
    work.rows.resize(static_cast<std::size_t>(make.height * row_bytes));
    for (std::int64_t y = 0; y < make.height; ++y)
      across(in.pixel(box.top + rows.first(make.top + y), box.left + left), in.row_bytes(),
             make.top + y, row_bytes, work.rows.data() + y * row_bytes);
    along(work.rows.data(), row_bytes, make.height, out.pixel(make.top, make.left),
          out.row_bytes());
    return;
  }
  const std::int64_t top = rows.reads().first, height = rows.reads().second;
  const std::int64_t row_bytes = make.width * channels;
  work.rows.resize(static_cast<std::size_t>(height * row_bytes));
  along(in.pixel(box.top + top, box.left + left), in.row_bytes(), height, work.rows.data(),
        row_bytes);
  for (std::int64_t y = make.top; y < bottom; ++y)
    across(work.rows.data() + (rows.first(y) - top) * row_bytes, row_bytes, y, row_bytes,
           out.pixel(y, make.left));
}

}  // namespace

void require_pillow(std::string_view op, std::int64_t pillow) {
  if (pillow < kOldestPillow || pillow > kNewestPillow)
    throw Error(Code::kInvalidArgument,
                std::string(op) +
                    ": pillow must be 13, or 12 for the pixels of Pillow up to 12, got " +
                    std::to_string(pillow));
}

void resample(const TensorView& in, const Region& box, const Resample& how, const TensorSpan& out) {
  if (box.height == out.dim(0) && box.width == out.dim(1)) return copy_part(in, box, out);
  if (is_nearest(how)) return resample_nearest(in, box, out);
  resample_filtered(in, box, how, out);
}

Region resample_needs(const Region& box, std::int64_t out_height, std::int64_t out_width,
                      const Resample& how, const Region& out) {
  if (box.height == out_height && box.width == out_width)
    return {box.top + out.top, box.left + out.left, out.height, out.width};
  if (is_nearest(how)) return box;
  // Outputs read from left to right: the first and the last one tell.
  const Filter filter = filter_of(how.interpolation);
  const auto span = [&](std::int64_t in, std::int64_t size, std::int64_t begin,
                        std::int64_t count) {
    const std::int64_t last = begin + count - 1;
    const auto [low, low_count] = Axis(filter, in, size, begin, begin + 1).reads();
    const auto [high, high_count] = Axis(filter, in, size, last, last + 1).reads();
    return std::pair(low, high + high_count - low);
  };
  const auto [top, height] = span(box.height, out_height, out.top, out.height);
  const auto [left, width] = span(box.width, out_width, out.left, out.width);
  return {box.top + top, box.left + left, height, width};
}

}  // namespace cutwater::image
