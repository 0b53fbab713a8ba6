// SPDX-License-Identifier: Apache-2.0
#include "ops/image/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::image {
namespace {

using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using Data = std::vector<std::uint8_t>;

// Step by step from the place inwards: bouncing at the edges, as the modes are described.
std::int64_t walked(std::int64_t place, std::int64_t length, Padding mode) {
  if (mode == Padding::kConstant) return place < 0 || place >= length ? -1 : place;
  if (mode == Padding::kEdge) return place < 0 ? 0 : place >= length ? length - 1 : place;
  std::int64_t at = 0, direction = 1;
  const auto step = [&] {
    if (at + direction >= 0 && at + direction < length) {
      at += direction;
    } else {
      direction = -direction;  // symmetric: the edge pixel is seen twice
      if (mode == Padding::kReflect && length > 1) at += direction;
    }
  };
  if (place < 0) {
    direction = -1;
    for (std::int64_t i = place; i < 0; ++i) step();
  } else {
    for (std::int64_t i = 0; i < place; ++i) step();
  }
  return at;
}

constexpr Padding kModes[] = {Padding::kConstant, Padding::kEdge, Padding::kReflect,
                              Padding::kSymmetric};

TEST(SourcePlace, BouncesAtTheEdges) {
  for (const Padding mode : kModes)
    for (std::int64_t length = 1; length <= 6; ++length)
      for (std::int64_t place = -20; place <= 20; ++place)
        EXPECT_EQ(source_place(place, length, mode), walked(place, length, mode))
            << "place " << place << " of " << length << ", mode " << static_cast<int>(mode);
}

// NumPy: np.pad([0, 1, 2], 4, mode).
TEST(SourcePlace, AgreesWithNumPy) {
  const std::pair<Padding, std::vector<std::int64_t>> table[] = {
      {Padding::kEdge, {0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2}},
      {Padding::kReflect, {0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2}},
      {Padding::kSymmetric, {2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0}},
  };
  for (const auto& [mode, expected] : table)
    for (std::int64_t place = -4; place < 7; ++place)
      EXPECT_EQ(source_place(place, 3, mode), expected[static_cast<std::size_t>(place + 4)])
          << place;
}

Data noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Data data(size);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
  return data;
}

TEST(CopyWindow, IsTheSourcePlaceOfEachPixel) {
  std::mt19937 random(4);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 500; ++round) {
    const std::int64_t channels = random() % 2 == 0 ? 1 : 3;
    const TensorSpec in_spec{DType::kU8, {1 + upto(6), 1 + upto(6), channels}};
    const Region window{upto(20) - 10, upto(20) - 10, 1 + upto(8), 1 + upto(8)};
    const TensorSpec out_spec{DType::kU8, {window.height, window.width, channels}};
    const Outside outside{kModes[random() % 4], {1, 2, 3}};
    const Data in = noise(in_spec.bytes(), static_cast<unsigned>(round));
    Data out(out_spec.bytes(), 99);
    copy_window(TensorView(in_spec, in.data()), window, outside, TensorSpan(out_spec, out.data()));
    for (std::int64_t y = 0; y < window.height; ++y)
      for (std::int64_t x = 0; x < window.width; ++x)
        for (std::int64_t c = 0; c < channels; ++c) {
          const std::int64_t from_y = walked(window.top + y, in_spec.shape[0], outside.mode);
          const std::int64_t from_x = walked(window.left + x, in_spec.shape[1], outside.mode);
          const auto at = static_cast<std::size_t>((y * window.width + x) * channels + c);
          const auto from =
              static_cast<std::size_t>((from_y * in_spec.shape[1] + from_x) * channels + c);
          ASSERT_EQ(out[at], from_y < 0 || from_x < 0 ? c + 1 : in[from]) << y << " " << x;
        }
  }
}

TEST(CopyPlanesWindow, OfNothingIsNothing) {
  for (const Layout layout : {Layout::kPlanes, Layout::kPlanesLast}) {
    const TensorSpec in{DType::kF32, {0, 300, 300}, layout}, out{DType::kF32, {0, 2, 2}, layout};
    copy_planes_window(TensorView(in, nullptr), {5, 6, 2, 2}, TensorSpan(out, nullptr));
  }
}

TEST(WindowNeeds, IsTheSmallestRectangleThatIsRead) {
  std::mt19937 random(6);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  for (int round = 0; round < 1000; ++round) {
    const TensorSpec in{DType::kU8, {1 + upto(9), 1 + upto(9), 3}};
    const Padding mode = kModes[random() % 4];
    const Region window{upto(30) - 15, upto(30) - 15, 12, 12};
    const Region out{upto(8), upto(8), 1 + upto(3), 1 + upto(3)};
    const Region needs = window_needs(in, window, mode, out);
    ASSERT_TRUE(whole(in).contains(needs));

    const auto read = [&](std::int64_t begin, std::int64_t count, std::int64_t length) {
      std::int64_t low = length, high = -1;
      for (std::int64_t place = begin; place < begin + count; ++place)
        if (const std::int64_t source = walked(place, length, mode); source >= 0) {
          low = std::min(low, source);
          high = std::max(high, source);
        }
      return high < 0 ? std::pair<std::int64_t, std::int64_t>{0, 1}
                      : std::pair<std::int64_t, std::int64_t>{low, high - low + 1};
    };
    const auto [top, height] = read(window.top + out.top, out.height, in.shape[0]);
    const auto [left, width] = read(window.left + out.left, out.width, in.shape[1]);
    ASSERT_EQ(needs, (Region{top, left, height, width}));
  }
}

TEST(ParseBorder, ReadsTorchvisionsForms) {
  struct {
    List padding;
    std::int64_t left, top, right, bottom;
  } const table[] = {{{3}, 3, 3, 3, 3}, {{1, 2}, 1, 2, 1, 2}, {{1, 2, 3, 4}, 1, 2, 3, 4}};
  for (const auto& row : table) {
    const Border border = parse_border("pad", row.padding);
    EXPECT_EQ(border.left, row.left);
    EXPECT_EQ(border.top, row.top);
    EXPECT_EQ(border.right, row.right);
    EXPECT_EQ(border.bottom, row.bottom);
  }
  for (const List& bad :
       {List{}, List{1, 2, 3}, List{-1}, List{0.5}, List{1e9}, List{1, 2, 3, 4, 5}})
    EXPECT_THAT([&] { parse_border("pad", bad); },
                ThrowsMessage<Error>(HasSubstr("pad: padding must be 1, 2 or 4 whole numbers")));
}

TEST(ParseFill, IsOneColourOrThree) {
  EXPECT_EQ(parse_fill("pad", {7}), (std::array<std::uint8_t, 3>{7, 7, 7}));
  EXPECT_EQ(parse_fill("pad", {1, 0, 255}), (std::array<std::uint8_t, 3>{1, 0, 255}));
  for (const List& bad : {List{}, List{1, 2}, List{-1}, List{256}, List{0.5}})
    EXPECT_THAT(
        [&] { parse_fill("pad", bad); },
        ThrowsMessage<Error>(
            StrEq("pad: fill must be 1 or 3 whole numbers in 0..255, got " + to_text(Value{bad}))));
}

}  // namespace
}  // namespace cutwater::image
