// SPDX-License-Identifier: Apache-2.0
#include "ops/image/filter_kernels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cutwater::image {
namespace {

// Runs the test body once per SIMD level that this processor has, the portable one included.
template <class F>
void for_each_simd_level(F&& body) {
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    const std::int64_t level = left & -left;
    hwy::SetSupportedTargetsForTest(level);
    SCOPED_TRACE(hwy::TargetName(level));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

std::uint8_t weighted(const std::vector<std::uint8_t>& pixels, std::size_t first,
                      std::size_t stride, const std::int32_t* weights, std::size_t taps) {
  std::int64_t sum = 1 << (kWeightBits - 1);
  for (std::size_t t = 0; t < taps; ++t)
    sum += std::int64_t{pixels[first + t * stride]} * weights[t];
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> kWeightBits, 0, 255));
}

std::vector<std::uint8_t> noise(std::size_t count, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// Weights of sharpening filters of so many taps: some negative, so that sums leave 0..255 on both
// sides, but never 32 bits: a real filter's weights add up to one.
std::vector<std::int32_t> sharp_weights(std::size_t count, std::size_t taps, std::mt19937& random) {
  const std::int32_t one = 1 << kWeightBits;
  std::uniform_int_distribution<std::int32_t> share(-one / 2, one * 3 / 2);
  std::vector<std::int32_t> weights(count);
  for (std::int32_t& weight : weights) weight = share(random) / static_cast<std::int32_t>(taps);
  return weights;
}

TEST(FilterBytesTest, EveryLevelGivesTheWeightedSums) {
  std::mt19937 random(1);
  for (const std::size_t count : {1, 2, 15, 16, 17, 63, 64, 100, 672}) {
    for (const std::size_t taps : {1, 2, 3, 7}) {
      const std::size_t stride = count + 5;
      const auto pixels = noise(stride * taps, random);
      const auto weights = sharp_weights(taps, taps, random);
      for_each_simd_level([&] {
        std::vector<std::uint8_t> out(count + 1, 0xAB);
        filter_bytes(pixels.data(), static_cast<std::int64_t>(stride), weights.data(),
                     static_cast<std::int64_t>(taps), static_cast<std::int64_t>(count), out.data());
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_EQ(out[i], weighted(pixels, i, stride, weights.data(), taps)) << i;
        EXPECT_EQ(out[count], 0xAB) << "wrote past the end";
      });
    }
  }
}

TEST(FilterRowsTest, EveryLevelGivesTheWeightedSums) {
  std::mt19937 random(2);
  for (const std::size_t channels : {1, 3}) {
    for (const std::size_t rows : {1, 5, 15, 16}) {
      for (const std::size_t pixels_in : {1, 5, 16, 33, 100}) {
        const std::size_t taps = std::min<std::size_t>(pixels_in, 4), outputs = 1 + random() % 40;
        const std::size_t stride = pixels_in * channels + random() % 7;
        const std::int64_t origin = 11;
        const auto pixels = noise(rows * stride, random);
        const auto weights = sharp_weights(outputs * taps, taps, random);
        std::vector<std::int64_t> first(outputs), count(outputs);
        for (std::size_t x = 0; x < outputs; ++x) {
          count[x] = static_cast<std::int64_t>(1 + random() % taps);
          first[x] = origin + static_cast<std::int64_t>(
                                  random() % (pixels_in - static_cast<std::size_t>(count[x]) + 1));
        }
        const AxisView axis{first.data(), count.data(), weights.data(),
                            static_cast<std::int64_t>(taps), static_cast<std::int64_t>(outputs)};
        for_each_simd_level([&] {
          std::vector<std::uint8_t> out(rows * outputs * channels);
          std::vector<std::uint8_t> work(static_cast<std::size_t>(
              filter_rows_work(static_cast<std::int64_t>(pixels_in), axis.outputs,
                               static_cast<std::int64_t>(channels))));
          filter_rows(pixels.data(), static_cast<std::int64_t>(stride),
                      static_cast<std::int64_t>(rows), static_cast<std::int64_t>(pixels_in), origin,
                      static_cast<std::int64_t>(channels), axis, out.data(),
                      static_cast<std::int64_t>(outputs * channels), work.data());
          for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t x = 0; x < outputs; ++x)
              for (std::size_t c = 0; c < channels; ++c) {
                const auto at = static_cast<std::size_t>(first[x] - origin) * channels + c;
                ASSERT_EQ(out[(r * outputs + x) * channels + c],
                          weighted(pixels, r * stride + at, channels, weights.data() + x * taps,
                                   static_cast<std::size_t>(count[x])))
                    << "row " << r << " pixel " << x << " channel " << c;
              }
        });
      }
    }
  }
}

}  // namespace
}  // namespace cutwater::image
