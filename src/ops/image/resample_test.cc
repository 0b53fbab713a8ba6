// SPDX-License-Identifier: Apache-2.0
// Properties of every filter, and a plain rendering of Pillow's arithmetic beside every SIMD level.
// That the pixels are Pillow's is checked in Python, against Pillow.
#include "ops/image/resample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "cutwater/error.h"
#include "ops/image/row_adapters.h"
#include "ops/image/test_simd_levels.h"

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

// ---- a plain rendering, in whole images and without SIMD

double reference_weight(Interpolation filter, double x) {
  const double distance = std::abs(x);
  const auto sinc = [](double y) {
    return y == 0 ? 1.0 : std::sin(y * std::numbers::pi) / (y * std::numbers::pi);
  };
  switch (filter) {
    case Interpolation::kBox: return x > -0.5 && x <= 0.5 ? 1 : 0;
    case Interpolation::kHamming: {
      const double turn = distance * std::numbers::pi;
      return distance >= 1 ? 0 : sinc(distance) * (0.54 + 0.46 * std::cos(turn));
    }
    case Interpolation::kBicubic:
      if (distance < 1) return (1.5 * distance - 2.5) * distance * distance + 1;
      return distance < 2 ? (((distance - 5) * distance + 8) * distance - 4) * -0.5 : 0;
    case Interpolation::kLanczos: return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
    default: return distance < 1 ? 1 - distance : 0;
  }
}

struct Plane {
  std::int64_t height, width;
  Data data;
};

Plane reference_pass(const Plane& plane, Interpolation filter, std::int64_t out, bool along_rows) {
  const std::int64_t in = along_rows ? plane.width : plane.height;
  const std::int64_t lines = along_rows ? plane.height : plane.width;
  if (in == out) return plane;
  Plane made{along_rows ? lines : out, along_rows ? out : lines, {}};
  made.data.resize(static_cast<std::size_t>(made.height * made.width));
  const auto at = [&](const Plane& p, std::int64_t line, std::int64_t i) {
    return static_cast<std::size_t>(along_rows ? line * p.width + i : i * p.width + line);
  };
  const double reach = filter == Interpolation::kBox       ? 0.5
                       : filter == Interpolation::kBicubic ? 2
                       : filter == Interpolation::kLanczos ? 3
                                                           : 1;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double widen = std::max(scale, 1.0), support = reach * widen;
  for (std::int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
    const auto high = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), in);
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t t = low; t < high; ++t) {
      weights.push_back(
          reference_weight(filter, (static_cast<double>(t) - center + 0.5) * (1.0 / widen)));
      total += weights.back();
    }
    for (std::int64_t line = 0; line < lines; ++line) {
      std::int64_t sum = 1 << 21;
      for (std::int64_t t = low; t < high; ++t) {
        const double share = weights[static_cast<std::size_t>(t - low)] / total;
        sum += std::int64_t{plane.data[at(plane, line, t)]} *
               static_cast<std::int64_t>(share * (1 << 22) + (share < 0 ? -0.5 : 0.5));
      }
      made.data[at(made, line, i)] =
          static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> 22, 0, 255));
    }
  }
  return made;
}

// Row by row, out of memory of exactly the size that is needed, on every level.
TEST(ResampleRows, GivesTheReferenceOnEveryLevel) {
  std::mt19937 random(7);
  const auto from_to = [&](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  for (int round = 0; round < 400; ++round) {
    // Small and large, also large to small, and now and then an axis that stays as it is.
    const std::int64_t channels = round % 3 == 0 ? 1 : 3;
    const TensorSpec in_spec{DType::kU8,
                             {from_to(1, 90), from_to(1, round % 5 == 0 ? 900 : 90), channels}};
    const std::int64_t box_height = from_to(1, in_spec.shape[0]),
                       box_width = from_to(1, in_spec.shape[1]);
    Resizing resizing;
    resizing.box = {from_to(0, in_spec.shape[0] - box_height),
                    from_to(0, in_spec.shape[1] - box_width), box_height, box_width};
    resizing.height = round % 7 == 0 ? box_height : from_to(1, 100);
    resizing.width = round % 11 == 0 ? box_width : from_to(1, 100);
    resizing.how = {kFilters[2 + random() % 5], from_to(kOldestPillow, kNewestPillow)};
    resizing.mirrored = random() % 2 == 0;
    resizing.make.top = from_to(0, resizing.height - 1);
    resizing.make.left = from_to(0, resizing.width - 1);
    resizing.make.height = from_to(1, resizing.height - resizing.make.top);
    resizing.make.width = from_to(1, resizing.width - resizing.make.left);

    const Data in = noise(in_spec.bytes(), static_cast<unsigned>(round));
    std::vector<Plane> expected;
    for (std::int64_t c = 0; c < channels; ++c) {
      Plane plane{box_height, box_width, {}};
      for (std::int64_t y = 0; y < box_height; ++y)
        for (std::int64_t x = 0; x < box_width; ++x)
          plane.data.push_back(in[static_cast<std::size_t>(
              ((resizing.box.top + y) * in_spec.shape[1] + resizing.box.left + x) * channels + c)]);
      const bool rows_first = resizing.how.pillow == 13 && box_height > resizing.height &&
                              box_height - resizing.height > 2 * (box_width - resizing.width);
      for (const bool along_rows : {!rows_first, rows_first})
        plane = reference_pass(plane, resizing.how.interpolation,
                               along_rows ? resizing.width : resizing.height, along_rows);
      if (resizing.mirrored)
        for (std::int64_t y = 0; y < plane.height; ++y)
          std::reverse(plane.data.begin() + y * plane.width,
                       plane.data.begin() + (y + 1) * plane.width);
      expected.push_back(plane);
    }

    const Region needs = resample_needs(resizing);
    ASSERT_TRUE(resizing.box.contains(needs));
    Data present;
    for (std::int64_t y = needs.top; y < needs.top + needs.height; ++y) {
      const auto row = in.begin() + (y * in_spec.shape[1] + needs.left) * channels;
      present.insert(present.end(), row, row + needs.width * channels);
    }
    present.shrink_to_fit();
    const TensorView view(in_spec, present.data(), needs, needs.width * channels);
    const Region& make = resizing.make;
    const TensorSpec out_spec = image_of({resizing.height, resizing.width}, channels);
    for_each_simd_level([&] {
      Data made(static_cast<std::size_t>(make.height * make.width * channels));
      PixelReader reader(view, needs);
      PixelWriter writer(TensorSpan(out_spec, made.data(), make, make.width * channels));
      resample_rows(resizing, channels, reader, writer);
      std::size_t i = 0;
      for (std::int64_t y = make.top; y < make.top + make.height; ++y)
        for (std::int64_t x = make.left; x < make.left + make.width; ++x)
          for (std::int64_t c = 0; c < channels; ++c, ++i)
            ASSERT_EQ(made[i], expected[static_cast<std::size_t>(c)]
                                   .data[static_cast<std::size_t>(y * resizing.width + x)])
                << "round " << round << ": " << box_height << " x " << box_width << " to "
                << resizing.height << " x " << resizing.width << " at " << y << ", " << x
                << " channel " << c << ", filter " << static_cast<int>(resizing.how.interpolation);
    });
  }
}

TEST(ResampleRows, MirrorsTheNearestPixelsToo) {
  const TensorSpec in_spec = image_of({9, 13}, 3), out_spec = image_of({5, 7}, 3);
  const Data in = noise(in_spec.bytes(), 1);
  const Resample how{Interpolation::kNearest, 13};
  const Data plain = resampled(in_spec, in, whole(in_spec), how, out_spec);
  Data mirrored(out_spec.bytes());
  PixelReader reader(TensorView(in_spec, in.data()), whole(in_spec));
  PixelWriter writer(TensorSpan(out_spec, mirrored.data()));
  resample_rows({whole(in_spec), 5, 7, how, whole(out_spec), true}, 3, reader, writer);
  for (std::size_t y = 0; y < 5; ++y)
    for (std::size_t x = 0; x < 7; ++x)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(mirrored[(y * 7 + x) * 3 + c], plain[(y * 7 + 6 - x) * 3 + c]);
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
