// SPDX-License-Identifier: Apache-2.0
// to_tensor and normalize as values, for their own files and for the kernels that fuse them.
#pragma once

#include <cstdint>
#include <memory>

#include "cutwater/op.h"
#include "ops/image/row_adapters.h"

namespace cutwater::image {

struct ToTensor {
  bool channels_last = false;

  static constexpr std::tuple kParams{
      Param{"channels_last", &ToTensor::channels_last,
            "Keep the channels of a pixel together in memory, as torch.channels_last does; the "
            "shape stays channels first."}};

  void check() const {}
  TensorSpec out_spec(const TensorView& in) const;
  void apply(const TensorView& in, const TensorSpan& out) const;
};

struct Normalize {
  List mean, std;

  static constexpr std::tuple kParams{
      Param{"mean", &Normalize::mean, "Subtracted: one value, or one per channel.",
            Need::kRequired},
      Param{"std", &Normalize::std, "Divided by: one value, or one per channel.", Need::kRequired}};

  void check() const;
  TensorSpec out_spec(const TensorView& in) const;
  void apply(const TensorView& in, const TensorSpan& out) const;

  // What to_tensor and this make of pixel values.
  PixelValues pixel_values(std::int64_t channels) const {
    PixelValues values;
    for (std::int64_t c = 0; c < channels; ++c)
      values[static_cast<std::size_t>(c)] = ChannelValues(mean_of(c), std_of(c));
    return values;
  }
  float mean_of(std::int64_t channel) const { return per_channel(mean, channel); }
  float std_of(std::int64_t channel) const { return per_channel(std, channel); }

 private:
  static float per_channel(const List& list, std::int64_t channel) {
    return static_cast<float>(list.size() == 1 ? list[0] : list[static_cast<std::size_t>(channel)]);
  }
};

// Writes rows as float32 of this spec: channels first, or last in memory.
std::unique_ptr<RowWriter> write_floats(const PixelValues& values, const TensorSpan& out);

}  // namespace cutwater::image
