// SPDX-License-Identifier: Apache-2.0
// to_tensor and normalize as values, for their own files and for the kernels that fuse them.
#pragma once

#include <array>
#include <cstdint>

#include "cutwater/op.h"

namespace cutwater::image {

struct ToTensor {
  static constexpr std::tuple<> kParams{};

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

  float mean_of(std::int64_t channel) const { return per_channel(mean, channel); }
  float std_of(std::int64_t channel) const { return per_channel(std, channel); }

 private:
  static float per_channel(const List& list, std::int64_t channel) {
    return static_cast<float>(list.size() == 1 ? list[0] : list[static_cast<std::size_t>(channel)]);
  }
};

// What each of the 256 pixel values becomes. Two rounded operations on 256 inputs: a table gives
// the very floats that dividing, subtracting and dividing again would.
using ValueTable = std::array<float, 256>;
ValueTable unit_table();
ValueTable normalized_table(float mean, float std);

// out[c][y][x] = tables[c][in[y][x][c]]; columns right to left when mirrored.
void look_up_planes(const TensorView& in, const ValueTable* tables, bool mirrored,
                    const TensorSpan& out);

}  // namespace cutwater::image
