// SPDX-License-Identifier: Apache-2.0
#include "ops/image/row_adapters.h"

#include <cstring>

namespace cutwater::image {

PixelReader::PixelReader(const TensorView& in, const Region& part)
    : next_(in.pixel(part.top, part.left)),
      row_bytes_(in.row_bytes()),
      width_(part.width),
      channels_(in.dim(2)),
      plane_stride_(row_distance(part.width)),
      planes_(channels_ * plane_stride_ + kRowSlack) {}

PlanarRow PixelReader::next() {
  std::uint8_t* const to = planes_.data();
  // A copy even of one channel: behind a tensor's last row there is no slack.
  if (channels_ == 1) {
    std::memcpy(to, next_, static_cast<std::size_t>(width_));
    next_ += row_bytes_;
    return {{to, to, to}};
  }
  std::uint8_t* const planes[] = {to, to + plane_stride_, to + 2 * plane_stride_};
  split_pixels(next_, width_, planes);
  next_ += row_bytes_;
  return {{planes[0], planes[1], planes[2]}};
}

PixelWriter::PixelWriter(const TensorSpan& out)
    : next_(out.pixel(out.present().top, out.present().left)),
      row_bytes_(out.row_bytes()),
      width_(out.present().width),
      channels_(out.dim(2)) {}

void PixelWriter::put(const PlanarRow& row) {
  if (channels_ == 1)
    std::memcpy(next_, row.plane[0], static_cast<std::size_t>(width_));
  else
    join_pixels(row, width_, next_);
  next_ += row_bytes_;
}

FloatPlanesWriter::FloatPlanesWriter(const PixelValues& values, std::int64_t channels,
                                     std::int64_t height, std::int64_t width, float* out)
    : values_(values), channels_(channels), plane_(height * width), width_(width), next_(out) {}

void FloatPlanesWriter::put(const PlanarRow& row) {
  to_float_planes(values_.data(), row, channels_, width_, next_, plane_);
  next_ += width_;
}

FloatPixelsWriter::FloatPixelsWriter(const PixelValues& values, std::int64_t channels,
                                     std::int64_t width, float* out)
    : values_(values), channels_(channels), width_(width), next_(out) {}

void FloatPixelsWriter::put(const PlanarRow& row) {
  if (channels_ == 1)
    to_float_planes(values_.data(), row, 1, width_, next_, 0);
  else
    to_float_pixels(values_.data(), row, width_, next_);
  next_ += width_ * channels_;
}

}  // namespace cutwater::image
