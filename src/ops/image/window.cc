// SPDX-License-Identifier: Apache-2.0
#include "ops/image/window.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "cutwater/error.h"

namespace cutwater::image {
namespace {

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  const std::int64_t remainder = a % b;
  return remainder < 0 ? remainder + b : remainder;
}

// The span of source places that positions [begin, begin + count) of an axis read.
std::pair<std::int64_t, std::int64_t> places_read(std::int64_t begin, std::int64_t count,
                                                  std::int64_t length, Padding mode) {
  if (begin >= 0 && begin + count <= length) return {begin, count};
  std::int64_t low = length, high = -1;
  for (std::int64_t place = begin; place < begin + count; ++place) {
    const std::int64_t source = source_place(place, length, mode);
    if (source < 0) continue;
    low = std::min(low, source);
    high = std::max(high, source);
  }
  if (high < 0) return {0, 0};
  return {low, high - low + 1};
}

}  // namespace

std::int64_t source_place(std::int64_t place, std::int64_t length, Padding mode) {
  if (place >= 0 && place < length) return place;
  switch (mode) {
    case Padding::kConstant: return -1;
    case Padding::kEdge: return std::clamp<std::int64_t>(place, 0, length - 1);
    case Padding::kReflect: {  // ... 2 1 | 0 1 2 | 1 0 ...
      if (length == 1) return 0;
      const std::int64_t period = 2 * (length - 1), at = floor_mod(place, period);
      return at < length ? at : period - at;
    }
    case Padding::kSymmetric: {  // ... 1 0 | 0 1 2 | 2 1 ...
      const std::int64_t period = 2 * length, at = floor_mod(place, period);
      return at < length ? at : period - 1 - at;
    }
  }
  return -1;
}

void copy_window(const TensorView& in, const Region& window, const Outside& outside,
                 const TensorSpan& out) {
  const Region& make = out.present();
  const std::int64_t channels = in.pixel_bytes();
  const std::int64_t first_x = window.left + make.left, height = in.dim(0), width = in.dim(1);
  const auto fill_pixel = [&](std::uint8_t* pixel) {
    for (std::int64_t c = 0; c < channels; ++c)
      pixel[c] = outside.fill[static_cast<std::size_t>(c)];
  };
  // The columns that lie inside the image are one copy.
  const std::int64_t inside_begin = std::clamp<std::int64_t>(-first_x, 0, make.width);
  const std::int64_t inside_end =
      std::clamp<std::int64_t>(width - first_x, inside_begin, make.width);

  for (std::int64_t y = make.top; y < make.top + make.height; ++y) {
    const std::int64_t source_y = source_place(window.top + y, height, outside.mode);
    std::uint8_t* row = out.pixel(y, make.left);
    const auto edge_pixel = [&](std::int64_t x) {
      const std::int64_t source_x = source_place(first_x + x, width, outside.mode);
      if (source_y < 0 || source_x < 0)
        fill_pixel(row + x * channels);
      else
        std::memcpy(row + x * channels, in.pixel(source_y, source_x),
                    static_cast<std::size_t>(channels));
    };
    if (source_y < 0) {
      for (std::int64_t x = 0; x < make.width; ++x) fill_pixel(row + x * channels);
      continue;
    }
    for (std::int64_t x = 0; x < inside_begin; ++x) edge_pixel(x);
    if (inside_end > inside_begin)
      std::memcpy(row + inside_begin * channels, in.pixel(source_y, first_x + inside_begin),
                  static_cast<std::size_t>((inside_end - inside_begin) * channels));
    for (std::int64_t x = inside_end; x < make.width; ++x) edge_pixel(x);
  }
}

void copy_planes_window(const TensorView& in, const Region& window, const TensorSpan& out) {
  // Channels that stand together in memory are one plane of larger elements.
  const Shape& shape = in.spec().shape;
  const std::int64_t rows = shape.from_end(2), columns = shape.from_end(1);
  const bool last = in.spec().layout == Layout::kPlanesLast;
  const std::int64_t together = last ? shape.from_end(3) : 1;
  std::int64_t planes = 1;
  for (std::size_t axis = 0; axis + (last ? 3 : 2) < shape.rank(); ++axis) planes *= shape[axis];
  const std::int64_t element = static_cast<std::int64_t>(size_of(in.spec().dtype)) * together;
  const auto row_bytes = static_cast<std::size_t>(window.width * element);
  if (row_bytes == 0) return;  // no channels: there may be no memory at all
  std::uint8_t* to = out.bytes();
  for (std::int64_t plane = 0; plane < planes; ++plane)
    for (std::int64_t y = window.top; y < window.top + window.height; ++y, to += row_bytes)
      std::memcpy(to, in.bytes() + ((plane * rows + y) * columns + window.left) * element,
                  row_bytes);
}

Region window_needs(const TensorSpec& in, const Region& window, Padding mode, const Region& out) {
  const auto [top, rows] = places_read(window.top + out.top, out.height, in.shape[0], mode);
  const auto [left, columns] = places_read(window.left + out.left, out.width, in.shape[1], mode);
  // A window wholly outside reads nothing; one pixel keeps regions from being empty.
  return {top, left, std::max<std::int64_t>(rows, 1), std::max<std::int64_t>(columns, 1)};
}

Border parse_border(std::string_view op, const List& padding) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kInvalidArgument,
                std::string(op) +
                    ": padding must be 1, 2 or 4 whole numbers of at least 0 (all; "
                    "left/right, top/bottom; left, top, right, bottom), got " +
                    why);
  };
  constexpr double kMost = 1 << 24;
  for (const double side : padding)
    if (!(side >= 0 && side <= kMost) || side != std::trunc(side)) refuse(to_text(Value{padding}));
  const auto side = [&](std::size_t i) { return static_cast<std::int64_t>(padding[i]); };
  switch (padding.size()) {
    case 1: return {side(0), side(0), side(0), side(0)};
    case 2: return {side(0), side(1), side(0), side(1)};
    case 4: return {side(0), side(1), side(2), side(3)};
    default: refuse(to_text(Value{padding}));
  }
  return {};
}

std::array<std::uint8_t, 3> parse_fill(std::string_view op, const List& fill) {
  const bool fits = (fill.size() == 1 || fill.size() == 3) &&
                    std::all_of(fill.begin(), fill.end(), [](double value) {
                      return value >= 0 && value <= 255 && value == std::trunc(value);
                    });
  if (!fits)
    throw Error(Code::kInvalidArgument, std::string(op) +
                                            ": fill must be 1 or 3 whole numbers in 0..255, got " +
                                            to_text(Value{fill}));
  const auto channel = [&](std::size_t c) {
    return static_cast<std::uint8_t>(fill[fill.size() == 1 ? 0 : c]);
  };
  return {channel(0), channel(1), channel(2)};
}

}  // namespace cutwater::image
