// SPDX-License-Identifier: Apache-2.0
// Rows of pixels to planes and back, and pixel values to normalized floats, as SIMD: chosen at run
// time by what the processor has. All levels give the same bytes.
#pragma once

#include <cstdint>

#include "ops/image/row_stream.h"

namespace cutwater::image {

// `count` pixels of three channels to planes, and back. Nothing else is read or written.
void split_pixels(const std::uint8_t* pixels, std::int64_t count, std::uint8_t* const* planes);
void join_pixels(const PlanarRow& row, std::int64_t count, std::uint8_t* pixels);

// What the values 0..255 of a channel become: (value / 255 - mean) / std in float32, each of the
// three operations rounded, as in torch.
class ChannelValues {
 public:
  ChannelValues() : mean_(0), std_(1), inverse_(1) {}
  ChannelValues(float mean, float std);

  float mean() const { return mean_; }
  float std() const { return std_; }
  // 1 / std as a sum of two floats, where multiplying by it gives the rounded quotient for all of
  // the 256 values (it was tried); both 0 where only dividing does.
  bool has_inverse() const { return inverse_ != 0; }
  float inverse() const { return inverse_; }
  float inverse_rest() const { return inverse_rest_; }

 private:
  float mean_, std_, inverse_ = 0, inverse_rest_ = 0;
};

// Floats of `count` pixels: out[c * plane_stride + i] for in.plane[c][i], c < channels; and of
// three channels, out[3 * i + c].
void to_float_planes(const ChannelValues* values, const PlanarRow& in, std::int64_t channels,
                     std::int64_t count, float* out, std::int64_t plane_stride);
void to_float_pixels(const ChannelValues* values, const PlanarRow& in, std::int64_t count,
                     float* out);

}  // namespace cutwater::image
