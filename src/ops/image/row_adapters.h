// SPDX-License-Identifier: Apache-2.0
// Where rows come from and where they go: images as tensors, and normalized floats in a batch.
#pragma once

#include <array>
#include <cstdint>

#include "cutwater/tensor.h"
#include "ops/image/pixel_kernels.h"
#include "ops/image/row_stream.h"
#include "ops/image/scratch.h"

namespace cutwater::image {

// Reads the part `part` of a uint8 image of 1 or 3 channels. REQUIRES: it is present.
class PixelReader final : public RowReader {
 public:
  PixelReader(const TensorView& in, const Region& part);
  PlanarRow next() override;

 private:
  const std::uint8_t* next_;
  std::int64_t row_bytes_, width_, channels_, plane_stride_;
  Scratch planes_;
};

// Writes out.present() of a uint8 image of 1 or 3 channels.
class PixelWriter final : public RowWriter {
 public:
  explicit PixelWriter(const TensorSpan& out);
  void put(const PlanarRow& row) override;

 private:
  std::uint8_t* next_;
  std::int64_t row_bytes_, width_, channels_;
};

// What the values of each channel become. By default, 0..255 to 0..1.
using PixelValues = std::array<ChannelValues, 3>;

// Writes float32 channels x rows x columns.
class FloatPlanesWriter final : public RowWriter {
 public:
  FloatPlanesWriter(const PixelValues& values, std::int64_t channels, std::int64_t height,
                    std::int64_t width, float* out);
  void put(const PlanarRow& row) override;

 private:
  const PixelValues values_;
  std::int64_t channels_, plane_, width_;
  float* next_;
};

// Writes float32 rows x columns x channels.
class FloatPixelsWriter final : public RowWriter {
 public:
  FloatPixelsWriter(const PixelValues& values, std::int64_t channels, std::int64_t width,
                    float* out);
  void put(const PlanarRow& row) override;

 private:
  const PixelValues values_;
  std::int64_t channels_, width_;
  float* next_;
};

}  // namespace cutwater::image
