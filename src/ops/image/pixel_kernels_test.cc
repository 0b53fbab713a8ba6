// SPDX-License-Identifier: Apache-2.0
#include "ops/image/pixel_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "ops/image/test_simd_levels.h"

namespace cutwater::image {
namespace {

using Data = std::vector<std::uint8_t>;
constexpr int kCounts[] = {1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 100, 224, 255, 256};

Data noise(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Data bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

// In memory of exactly the size that is needed: sanitizers see a step outside.
TEST(Pixels, AreSplitAndJoinedOnEveryLevel) {
  for (const int count : kCounts) {
    const auto size = static_cast<std::size_t>(count);
    const Data pixels = noise(3 * size, 1);
    for_each_simd_level([&] {
      Data planes[3] = {Data(size), Data(size), Data(size)};
      std::uint8_t* const to[] = {planes[0].data(), planes[1].data(), planes[2].data()};
      split_pixels(pixels.data(), count, to);
      for (std::size_t i = 0; i < 3 * size; ++i) ASSERT_EQ(planes[i % 3][i / 3], pixels[i]) << i;
      Data joined(3 * size);
      join_pixels({{to[0], to[1], to[2]}}, count, joined.data());
      EXPECT_EQ(joined, pixels);
    });
  }
}

// The definition; the compiler must not contract it, which the build forbids.
float normalized(std::uint8_t value, float mean, float std) {
  const float unit = static_cast<float>(value) / 255.0F;
  const float centered = unit - mean;
  return centered / std;
}

struct Channel {
  float mean, std;
};

std::vector<Channel> channels() {
  constexpr float kTiny = std::numeric_limits<float>::denorm_min(),
                  kHuge = std::numeric_limits<float>::max();
  std::vector<Channel> some = {
      {0, 1},        {0.485F, 0.229F}, {0.456F, 0.224F}, {0.406F, 0.225F},   {0.5F, 0.5F},
      {0.5F, -0.5F}, {-0.0F, -1},      {1, 3},           {0, 1.0F / 255},    {0.5F, kTiny},
      {0.5F, kHuge}, {kHuge, 1},       {kTiny, kTiny},   {-kHuge, 1e-38F},   {0.1F, 1e-30F},
      {0.3F, 1e30F}, {0.3F, 1e38F},    {0.3F, 3e-39F},   {0.25F, 0x1p-126F}, {0.2F, 0x1.FFFFFEp0F}};
  std::mt19937 random(4);
  std::uniform_real_distribution<float> mean(-1, 2), log_std(-3, 3);
  for (int i = 0; i < 500; ++i)
    some.push_back({mean(random), (random() % 2 == 0 ? 1.0F : -1.0F) * std::exp(log_std(random))});
  return some;
}

TEST(ToFloats, GivesTheBitsOfTheThreeOperationsOnEveryLevel) {
  Data bytes(256);
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::uint8_t>(i);
  for_each_simd_level([&] {
    for (const Channel& channel : channels()) {
      const ChannelValues values(channel.mean, channel.std);
      std::vector<float> out(256);
      to_float_planes(&values, {{bytes.data()}}, 1, 256, out.data(), 0);
      for (std::size_t i = 0; i < 256; ++i)
        ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]),
                  std::bit_cast<std::uint32_t>(
                      normalized(static_cast<std::uint8_t>(i), channel.mean, channel.std)))
            << i << ": (x - " << channel.mean << ") / " << channel.std;
    }
  });
}

TEST(ToFloats, MakesRowsOfAnyLengthOfPlanesAndOfPixels) {
  const Channel some[] = {{0.485F, 0.229F}, {0.456F, 0.224F}, {0.406F, 0.225F}};
  for (const int count : kCounts) {
    const auto size = static_cast<std::size_t>(count);
    const Data planes[] = {noise(size, 1), noise(size, 2), noise(size, 3)};
    const PlanarRow row{{planes[0].data(), planes[1].data(), planes[2].data()}};
    for_each_simd_level([&] {
      const ChannelValues values[] = {ChannelValues(some[0].mean, some[0].std),
                                      ChannelValues(some[1].mean, some[1].std),
                                      ChannelValues(some[2].mean, some[2].std)};
      std::vector<float> pixels(3 * size);
      to_float_pixels(values, row, count, pixels.data());
      std::vector<float> plane(3 * size);
      to_float_planes(values, row, 3, count, plane.data(), count);
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t i = 0; i < size; ++i) {
          const float expected = normalized(planes[c][i], some[c].mean, some[c].std);
          ASSERT_EQ(plane[c * size + i], expected) << i;
          ASSERT_EQ(pixels[3 * i + c], expected) << i;
        }
    });
  }
}

TEST(ChannelValues, MultipliesWhereThatIsExact) {
  EXPECT_TRUE(ChannelValues().has_inverse());
  EXPECT_TRUE(ChannelValues(0.485F, 0.229F).has_inverse());
}

}  // namespace
}  // namespace cutwater::image
