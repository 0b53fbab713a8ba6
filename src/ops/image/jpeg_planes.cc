// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_planes.h"

#include <algorithm>
#include <cstring>

#include "ops/image/scratch.h"

namespace cutwater::image {
namespace {

constexpr std::size_t kMostKept = std::size_t{1} << 20;

}  // namespace

void BlockStrip::prepare(const JpegGeometry& geometry, const McuWindow& window) {
  std::int64_t values = 0;
  for (std::size_t c = 0; c < geometry.components(); ++c) {
    begins_[c] = values;
    groups_[c] = groups_of(window.across() * geometry.sampling[c].h);
    values += groups_[c] * geometry.sampling[c].v * kGroupValues;
  }
  values_.assign(static_cast<std::size_t>(values), 0);
}

void JpegPlanes::prepare(const JpegGeometry& geometry, const Region& region) {
  geometry_ = geometry;
  window_ = geometry.window(region);
  for (std::size_t c = 0; c < geometry.components(); ++c) {
    const auto [h, v] = geometry.sampling[c];
    Plane& plane = planes_[c];
    plane.left = window_.left * 8 * h;
    plane.top = window_.top * 8 * v;
    // The last group of blocks may reach beyond the window.
    plane.row_bytes =
        row_distance(groups_of(window_.across() * h) * kGroupBlocks * 8 + 2 * Plane::kMargin);
    const auto bytes = static_cast<std::size_t>(plane.row_bytes * window_.down() * 8 * v);
    if (plane.bytes.size() < bytes) plane.bytes.resize(bytes);
  }
}

void BlockStrip::give_up_large() {
  if (values_.capacity() * sizeof values_[0] > kMostKept) std::vector<std::int16_t>().swap(values_);
}

void JpegPlanes::give_up_large() {
  for (Plane& plane : planes_)
    if (plane.bytes.capacity() > kMostKept) std::vector<std::uint8_t>().swap(plane.bytes);
  if (rows_.capacity() > kMostKept) std::vector<std::uint8_t>().swap(rows_);
}

void JpegPlanes::reconstruct(std::int64_t row, BlockStrip& strip,
                             const std::array<Quantizer, 3>& quantizers, After after) {
  for (std::size_t c = 0; c < geometry_.components(); ++c)
    for (std::int64_t y = 0; y < geometry_.sampling[c].v; ++y) {
      Plane& plane = planes_[c];
      const std::int64_t sample_row = (row * geometry_.sampling[c].v + y) * 8;
      inverse_dct(strip.row(c, y), quantizers[c].data(), strip.groups(c), after,
                  plane.at(sample_row, plane.left), plane.row_bytes);
    }
}

PlaneRows::PlaneRows(JpegPlanes& planes, const Region& region)
    : planes_(planes),
      geometry_(planes.geometry_),
      region_(region),
      y_(region.top),
      buffer_bytes_(static_cast<std::size_t>(
          row_distance(region.width + 8 + 2 * kVectorSlack + 2 * kRowSlack))) {
  // Three upsampled components, three colours.
  planes_.rows_.resize(6 * buffer_bytes_ + kVectorSlack);
  // Beyond the image's left and right edge stands the edge itself.
  for (std::size_t c = 0; c < geometry_.components(); ++c) {
    if (geometry_.sampling[c].h == geometry_.max_h()) continue;
    JpegPlanes::Plane& plane = planes_.planes_[c];
    const McuWindow& window = planes_.window_;
    const std::int64_t width = geometry_.samples_across(c);
    const std::int64_t bottom = window.bottom * 8 * geometry_.sampling[c].v;
    for (std::int64_t y = plane.top; y < bottom; ++y) {
      if (plane.left == 0) *plane.at(y, -1) = *plane.at(y, 0);
      if (window.right == geometry_.mcus_across()) *plane.at(y, width) = *plane.at(y, width - 1);
    }
  }
}

const std::uint8_t* PlaneRows::component_row(std::size_t c, std::int64_t y) {
  JpegPlanes::Plane& plane = planes_.planes_[c];
  const std::int64_t across = geometry_.max_h() / geometry_.sampling[c].h;
  const std::int64_t down = geometry_.max_v() / geometry_.sampling[c].v;
  const std::int64_t near = y / down;
  if (across == 1 && down == 1) return plane.at(near, region_.left);

  const std::int64_t first = region_.left / across;
  const std::int64_t samples = (region_.left + region_.width - 1) / across - first + 1;
  const auto far = [&] {
    return std::clamp<std::int64_t>(near + (y % 2 == 0 ? -1 : 1), 0, geometry_.samples_down(c) - 1);
  };
  std::uint8_t* row = buffer(c);
  // libjpeg interpolates by two only, and only where there is a neighbour; else samples repeat.
  const bool wide = geometry_.samples_across(c) > 2;
  if (across == 1 && down == 2) {
    upsample_1x2(plane.at(near, first), plane.at(far(), first), samples, y % 2 == 0 ? 1 : 2, row);
  } else if (across == 2 && down == 1 && wide) {
    upsample_2x1(plane.at(near, first), samples, row);
  } else if (across == 2 && down == 2 && wide) {
    upsample_2x2(plane.at(near, first), plane.at(far(), first), samples, row);
  } else {
    for (std::int64_t x = 0; x < samples; ++x)
      std::memset(row + x * across, *plane.at(near, first + x), static_cast<std::size_t>(across));
  }
  return row + (region_.left - first * across);
}

PlanarRow PlaneRows::next() {
  const std::int64_t y = y_++;
  const std::uint8_t* first = component_row(0, y);
  if (geometry_.color == JpegGeometry::Color::kGray) return {{first, first, first}};
  const std::uint8_t *second = component_row(1, y), *third = component_row(2, y);
  if (geometry_.color == JpegGeometry::Color::kRgb) return {{first, second, third}};
  std::uint8_t *red = buffer(3), *green = buffer(4), *blue = buffer(5);
  ycc_to_rgb(first, second, third, region_.width, red, green, blue);
  return {{red, green, blue}};
}

}  // namespace cutwater::image
