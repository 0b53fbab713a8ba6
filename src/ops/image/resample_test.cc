// SPDX-License-Identifier: Apache-2.0
// Properties of every filter. That the pixels are Pillow's is checked in Python, against Pillow.
#include "ops/image/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::image {
namespace {

using ::testing::Each;
using ::testing::StrEq;
using ::testing::ThrowsMessage;
using Data = std::vector<std::uint8_t>;

constexpr Interpolation kFilters[] = {Interpolation::kNearest,  Interpolation::kNearestExact,
                                      Interpolation::kBilinear, Interpolation::kBicubic,
                                      Interpolation::kBox,      Interpolation::kHamming,
                                      Interpolation::kLanczos};

struct Extent {
  std::int64_t height, width;
};
constexpr Extent kSizes[] = {{1, 1}, {1, 7}, {7, 1}, {2, 3}, {16, 16}, {37, 23}, {5, 64}};

TensorSpec image_of(const Extent& extent, std::int64_t channels) {
  return {DType::kU8, {extent.height, extent.width, channels}};
}

Data noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Data data(size);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
  return data;
}

Data resampled(const TensorSpec& in_spec, const Data& in, const Region& box, const Resample& how,
               const TensorSpec& out_spec) {
  Data out(out_spec.bytes(), 77);
  resample(TensorView(in_spec, in.data()), box, how, TensorSpan(out_spec, out.data()));
  return out;
}

// Calls check with every filter, channel count, version and pair of sizes.
template <class Check>
void for_each_resize(const Check& check) {
  for (const Interpolation filter : kFilters)
    for (const std::int64_t pillow : {kOldestPillow, kNewestPillow})
      for (const std::int64_t channels : {1, 3})
        for (const Extent& in : kSizes)
          for (const Extent& out : kSizes)
            check(Resample{filter, pillow}, image_of(in, channels), image_of(out, channels));
}

TEST(Resample, KeepsAConstantImageConstant) {
  for_each_resize([](const Resample& how, const TensorSpec& in, const TensorSpec& out) {
    for (const int value : {0, 1, 128, 255})
      ASSERT_THAT(
          resampled(in, Data(in.bytes(), static_cast<std::uint8_t>(value)), whole(in), how, out),
          Each(value))
          << to_string(in) << " to " << to_string(out);
  });
}

TEST(Resample, ToTheSameSizeIsACopy) {
  for (const Interpolation filter : kFilters)
    for (const Extent& size : kSizes) {
      const TensorSpec spec = image_of(size, 3);
      const Data in = noise(spec.bytes(), 1);
      EXPECT_EQ(resampled(spec, in, whole(spec), {filter, kNewestPillow}, spec), in);
    }
}

TEST(Resample, OfABoxIsThatOfTheCroppedImage) {
  std::mt19937 random(3);
  const TensorSpec spec = image_of({20, 24}, 3);
  const Data in = noise(spec.bytes(), 2);
  for (const Interpolation filter : kFilters)
    for (const Extent& size : kSizes) {
      const Region box{static_cast<std::int64_t>(random() % 8),
                       static_cast<std::int64_t>(random() % 8),
                       static_cast<std::int64_t>(1 + random() % 12),
                       static_cast<std::int64_t>(1 + random() % 16)};
      Data crop;
      for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
        const auto row = in.begin() + (y * 24 + box.left) * 3;
        crop.insert(crop.end(), row, row + box.width * 3);
      }
      const TensorSpec cropped = image_of({box.height, box.width}, 3);
      const Resample how{filter, kNewestPillow};
      EXPECT_EQ(resampled(spec, in, box, how, image_of(size, 3)),
                resampled(cropped, crop, whole(cropped), how, image_of(size, 3)));
    }
}

// With nothing but resample_needs() of the input, in memory of exactly that size.
TEST(Resample, APartIsThatPartOfTheWhole) {
  std::mt19937 random(5);
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  for_each_resize([&](const Resample& how, const TensorSpec& in_spec, const TensorSpec& out_spec) {
    const Data in = noise(in_spec.bytes(), 9);
    const Data full = resampled(in_spec, in, whole(in_spec), how, out_spec);
    const std::int64_t channels = in_spec.shape[2];
    const std::int64_t top = upto(out_spec.shape[0] - 1), left = upto(out_spec.shape[1] - 1);
    const Region part{top, left, 1 + upto(out_spec.shape[0] - top - 1),
                      1 + upto(out_spec.shape[1] - left - 1)};
    const Region needs =
        resample_needs(whole(in_spec), out_spec.shape[0], out_spec.shape[1], how, part);
    ASSERT_TRUE(whole(in_spec).contains(needs));
    Data present;
    for (std::int64_t y = needs.top; y < needs.top + needs.height; ++y) {
      const auto row = in.begin() + (y * in_spec.shape[1] + needs.left) * channels;
      present.insert(present.end(), row, row + needs.width * channels);
    }
    present.shrink_to_fit();
    Data made(static_cast<std::size_t>(part.height * part.width * channels));
    resample(TensorView(in_spec, present.data(), needs, needs.width * channels), whole(in_spec),
             how, TensorSpan(out_spec, made.data(), part, part.width * channels));
    Data expected;
    for (std::int64_t y = part.top; y < part.top + part.height; ++y) {
      const auto row = full.begin() + (y * out_spec.shape[1] + part.left) * channels;
      expected.insert(expected.end(), row, row + part.width * channels);
    }
    ASSERT_EQ(made, expected) << to_string(in_spec) << " to " << to_string(out_spec) << ", filter "
                              << static_cast<int>(how.interpolation);
  });
}

TEST(ResampleNeeds, IsSmallForASmallPart) {
  const Region box{0, 0, 1000, 1000};
  const Region needs =
      resample_needs(box, 500, 500, {Interpolation::kBilinear, 13}, {100, 200, 1, 1});
  EXPECT_LE(needs.height, 5);
  EXPECT_LE(needs.width, 5);
  EXPECT_TRUE(needs.contains({200, 400, 2, 2}));
}

TEST(RequirePillow, KnowsTwo) {
  require_pillow("resize", 12);
  require_pillow("resize", 13);
  for (const std::int64_t other : {0, 11, 14, -13})
    EXPECT_THAT(
        [&] { require_pillow("resize", other); },
        ThrowsMessage<Error>(StrEq("resize: pillow must be 13, or 12 for the pixels of Pillow "
                                   "up to 12, got " +
                                   std::to_string(other))));
}

}  // namespace
}  // namespace cutwater::image
