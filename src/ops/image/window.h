// SPDX-License-Identifier: Apache-2.0
// Window: a rectangle over an image that may reach beyond its edges. Cropping and padding are both
// "copy a window"; what lies outside is filled, or mirrored from inside.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "cutwater/param.h"
#include "cutwater/tensor.h"

namespace cutwater::image {

enum class Padding : std::uint8_t { kConstant, kEdge, kReflect, kSymmetric };

// What pixels outside of the image are.
struct Outside {
  Padding mode = Padding::kConstant;
  std::array<std::uint8_t, 3> fill{};
};

// Where the pixel at `place` of an axis of this length comes from; -1: the fill colour.
std::int64_t source_place(std::int64_t place, std::int64_t length, Padding mode);

// out(y, x) = in(window.top + y, window.left + x), for out.present().
void copy_window(const TensorView& in, const Region& window, const Outside& outside,
                 const TensorSpan& out);

// The same for planes, whole ones. REQUIRES: the window lies inside.
void copy_planes_window(const TensorView& in, const Region& window, const TensorSpan& out);

// The part of the input that copy_window reads for this part of its output.
Region window_needs(const TensorSpec& in, const Region& window, Padding mode, const Region& out);

// Padding as torchvision takes it: all sides; left-and-right, top-and-bottom; or left, top, right,
// bottom. Throws Error(kInvalidArgument).
struct Border {
  std::int64_t left = 0, top = 0, right = 0, bottom = 0;
};
Border parse_border(std::string_view op, const List& padding);

// One value for all channels or one each, 0..255. Throws Error(kInvalidArgument).
std::array<std::uint8_t, 3> parse_fill(std::string_view op, const List& fill);

}  // namespace cutwater::image

template <>
struct cutwater::EnumNames<cutwater::image::Padding> {
  static constexpr std::array<std::string_view, 4> kNames = {"constant", "edge", "reflect",
                                                             "symmetric"};
  static constexpr std::string_view kExpected = "one of constant, edge, reflect, symmetric";
};
