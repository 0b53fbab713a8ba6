// SPDX-License-Identifier: Apache-2.0
// How the blocks and samples of a JPEG lie in its image.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "cutwater/tensor.h"

namespace cutwater::image {

inline std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Coefficient k of a block in the order of the file is number kNaturalOrder[k] row by row.
inline constexpr std::array<std::uint8_t, 64> kNaturalOrder = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// MCUs [left, right) x [top, bottom).
struct McuWindow {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
  std::int64_t across() const { return right - left; }
  std::int64_t down() const { return bottom - top; }
  bool contains(const McuWindow& other) const {
    return other.left >= left && other.top >= top && other.right <= right && other.bottom <= bottom;
  }
  // The same MCUs, counted from others on.
  McuWindow moved(std::int64_t across, std::int64_t down) const {
    return {left + across, top + down, right + across, bottom + down};
  }
};

struct JpegGeometry {
  // Values are part of the coefficient form: never renumber.
  enum class Color : std::uint8_t { kGray = 0, kYcc = 1, kRgb = 2 };
  // Blocks of a component per MCU, across and down.
  struct Sampling {
    std::int64_t h = 1, v = 1;
  };

  std::int64_t width = 0, height = 0;
  Color color = Color::kGray;
  std::array<Sampling, 3> sampling;  // a gray image has one block per MCU

  std::size_t components() const { return color == Color::kGray ? 1 : 3; }
  std::int64_t max_h() const { return most(&Sampling::h); }
  std::int64_t max_v() const { return most(&Sampling::v); }
  std::int64_t mcus_across() const { return divide_up(width, 8 * max_h()); }
  std::int64_t mcus_down() const { return divide_up(height, 8 * max_v()); }
  std::int64_t blocks_across(std::size_t c) const { return mcus_across() * sampling[c].h; }
  std::int64_t blocks_down(std::size_t c) const { return mcus_down() * sampling[c].v; }
  // Samples of a component that belong to the image; blocks beyond are padding.
  std::int64_t samples_across(std::size_t c) const {
    return divide_up(width * sampling[c].h, max_h());
  }
  std::int64_t samples_down(std::size_t c) const {
    return divide_up(height * sampling[c].v, max_v());
  }

  // What the formats allow, and whole steps from each component to the image.
  bool sound() const {
    std::int64_t blocks = 0;
    for (std::size_t c = 0; c < components(); ++c) {
      const auto [h, v] = sampling[c];
      if (h < 1 || h > 4 || v < 1 || v > 4 || max_h() % h != 0 || max_v() % v != 0) return false;
      blocks += h * v;
    }
    constexpr std::int64_t kMostBlocks = 10, kMostPixels = 65500;
    return blocks <= kMostBlocks && width >= 1 && height >= 1 && width <= kMostPixels &&
           height <= kMostPixels;
  }

  // The MCUs that these pixels are made from: upsampling looks one sample around.
  McuWindow window(const Region& part) const {
    const std::int64_t mcu_width = 8 * max_h(), mcu_height = 8 * max_v();
    const auto from = [](std::int64_t begin, std::int64_t margin, std::int64_t size) {
      return std::max<std::int64_t>(begin - margin, 0) / size;
    };
    return {from(part.left, max_h(), mcu_width), from(part.top, max_v(), mcu_height),
            divide_up(std::min(part.left + part.width + max_h(), width), mcu_width),
            divide_up(std::min(part.top + part.height + max_v(), height), mcu_height)};
  }

  McuWindow all_mcus() const { return {0, 0, mcus_across(), mcus_down()}; }

  // Some of the MCUs as an image of their own.
  JpegGeometry cut_to(const McuWindow& window) const {
    const std::int64_t mcu_width = 8 * max_h(), mcu_height = 8 * max_v();
    JpegGeometry part = *this;
    part.width = std::min(window.right * mcu_width, width) - window.left * mcu_width;
    part.height = std::min(window.bottom * mcu_height, height) - window.top * mcu_height;
    return part;
  }

 private:
  std::int64_t most(std::int64_t Sampling::*factor) const {
    std::int64_t most = 1;
    for (std::size_t c = 0; c < components(); ++c) most = std::max(most, sampling[c].*factor);
    return most;
  }
};

// Some MCUs of an image.
struct JpegWindow {
  JpegGeometry image;
  McuWindow mcus;
};

}  // namespace cutwater::image
