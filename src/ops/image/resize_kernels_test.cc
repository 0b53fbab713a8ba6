// SPDX-License-Identifier: Apache-2.0
#include "ops/image/resize_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "ops/image/scratch.h"
#include "ops/image/test_simd_levels.h"

namespace cutwater::image {
namespace {

using Data = std::vector<std::uint8_t>;

std::int64_t below(std::mt19937& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

Data noise(std::int64_t size, std::mt19937& random) {
  Data bytes(static_cast<std::size_t>(size));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// An axis of random places and weights. Some weights are negative and some larger than one, so that
// sums leave 0..255 on both sides, but they never leave 32 bits: real weights add up to one.
struct RandomAxis {
  std::vector<std::int32_t> first, weights;
  AxisView view;

  RandomAxis(std::int64_t inputs, std::int64_t outputs, std::int64_t taps, std::mt19937& random) {
    const std::int32_t one = 1 << kWeightBits;
    const auto most = std::min(taps, inputs);
    std::uniform_int_distribution<std::int32_t> share(-one / 2, one * 3 / 2);
    for (std::int64_t i = 0; i < outputs; ++i) {
      first.push_back(static_cast<std::int32_t>(below(random, inputs - most + 1)));
      for (std::int64_t t = 0; t < taps; ++t)
        weights.push_back(t < most ? share(random) / static_cast<std::int32_t>(most) : 0);
    }
    std::sort(first.begin(), first.end());
    view = {first.data(), weights.data(), taps, outputs, inputs};
  }

  template <class Pixel>
  std::uint8_t output(std::int64_t i, const Pixel& pixel) const {
    std::int64_t sum = 1 << (kWeightBits - 1);
    for (std::int64_t t = 0; t < view.taps; ++t) {
      const std::int64_t at = first[static_cast<std::size_t>(i)] + t;
      if (at < view.inputs)
        sum += std::int64_t{pixel(at)} * weights[static_cast<std::size_t>(i * view.taps + t)];
    }
    return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kWeightBits, 0, 255));
  }
};

TEST(FilterColumns, IsTheWeightedSumOnEveryLevel) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t inputs = 1 + below(random, round % 3 == 0 ? 2000 : 150);
    const std::int64_t outputs = 1 + below(random, 300);
    const std::int64_t taps = std::min(kTapGroup * (1 + below(random, round % 4 == 0 ? 12 : 2)),
                                       rounded_up(inputs, kTapGroup));
    const std::int64_t channels = round % 2 == 0 ? 3 : 1;
    const bool mirrored = random() % 2 == 0;
    const RandomAxis axis(inputs, outputs, taps, random);
    std::vector<Data> planes;
    PlanarRow in;
    for (std::size_t c = 0; c < 3; ++c) {
      planes.push_back(noise(inputs + kRowSlack, random));
      in.plane[c] = planes[c].data();
    }
    for_each_simd_level([&] {
      const Scratch table(column_table_bytes(axis.view));
      make_column_table(axis.view, mirrored, table.data());
      const std::int64_t stride = rounded_up(outputs, kPlaneStep);
      Data out(static_cast<std::size_t>(channels * stride + 1), 0xAB);
      filter_columns(table.data(), in, channels, out.data(), stride);
      for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t x = 0; x < outputs; ++x) {
          const Data& plane = planes[static_cast<std::size_t>(c)];
          const auto pixel = [&](std::int64_t at) { return plane[static_cast<std::size_t>(at)]; };
          ASSERT_EQ(out[static_cast<std::size_t>(c * stride + x)],
                    axis.output(mirrored ? outputs - 1 - x : x, pixel))
              << inputs << " to " << outputs << ", " << taps << " taps: channel " << c << " pixel "
              << x;
        }
      EXPECT_EQ(out.back(), 0xAB) << "wrote past the end";
    });
  }
}

TEST(FilterRows, IsTheWeightedSumOnEveryLevel) {
  std::mt19937 random(1);
  for (const std::int64_t count : {1, 2, 15, 16, 17, 63, 64, 100, 672})
    for (const std::int64_t taps : {4, 8, 40}) {
      const std::int64_t inputs = taps - below(random, 4);
      const RandomAxis axis(inputs, 3, taps, random);
      const std::int64_t distance = count + kRowSlack;
      const Data pixels = noise(inputs * distance, random);
      for_each_simd_level([&] {
        const Scratch table(row_table_bytes(axis.view));
        make_row_table(axis.view, table.data());
        for (std::int64_t i = 0; i < 3; ++i) {
          std::vector<const std::uint8_t*> rows;
          for (std::int64_t t = 0; t < taps; ++t)
            rows.push_back(pixels.data() + std::min(t, inputs - 1) * distance);
          Data out(static_cast<std::size_t>(count + kRowSlack + 1), 0xAB);
          filter_rows(table.data(), taps, i, rows.data(), count, out.data());
          for (std::int64_t x = 0; x < count; ++x)
            ASSERT_EQ(out[static_cast<std::size_t>(x)], axis.output(i, [&](std::int64_t row) {
              return pixels[static_cast<std::size_t>(row * distance + x)];
            })) << x;
          EXPECT_EQ(out.back(), 0xAB) << "wrote past the slack";
        }
      });
    }
}

}  // namespace
}  // namespace cutwater::image
