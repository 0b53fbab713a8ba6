// SPDX-License-Identifier: Apache-2.0
// The coefficient form: its pixels are those of the file, and a damaged one is refused or gives
// pixels, nothing else.
#include "ops/image/coefficients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>

#include "cutwater/error.h"
#include "ops/image/jpeg_baseline.h"
#include "ops/image/test_jpeg.h"
#include "ops/image/test_simd_levels.h"

namespace cutwater::image {
namespace {

// What the op entropy gives.
Data form_of(const Data& file) {
  const auto pool = BufferPool::create(std::size_t{1} << 30);
  const Tensor form = encoded_image(file).entropy_decoded(*pool);
  const TensorView bytes = form.view();
  return {bytes.bytes(), bytes.bytes() + bytes.spec().bytes()};
}

template <class T>
T field(const Data& form, std::size_t at) {
  T value;
  std::memcpy(&value, form.data() + at, sizeof value);
  return value;
}

// The pixels, or none where it is refused. Anything but Error(kBadSample) is passed on.
std::optional<Data> decoded(const Data& form) {
  DecodeOptions small;
  small.max_pixels = 1 << 16;
  try {
    const TensorSpec spec = encoded_image(form, small).upright();
    return ours(form, {0, 0, spec.shape[0], spec.shape[1]}, nullptr, small);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kBadSample) << error.what();
    return std::nullopt;
  }
}

TEST(CoefficientForm, GivesThePixelsOfTheFileRegionByRegion) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const Picture picture = random_picture(random);
    SCOPED_TRACE(testing::Message() << i << ": " << picture);
    const Data file = encode(picture, random), whole = reference(file), form = form_of(file);
    ASSERT_TRUE(is_coefficient_form(form));
    ASSERT_EQ(ours(form, picture.whole()), whole);
    for (int k = 0; k < 4; ++k) {
      const Region region = random_region(picture, random);
      ASSERT_EQ(ours(form, region), part(whole, picture.width, region));
    }
  }
}

TEST(CoefficientForm, EverySimdLevelMakesAndReadsTheSame) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    const Picture picture = random_picture(random);
    const Data file = encode(picture, random), whole = reference(file), form = form_of(file);
    const Region region = random_region(picture, random);
    for_each_simd_level([&] {
      EXPECT_EQ(form_of(file), form) << picture;
      EXPECT_EQ(ours(form, picture.whole()), whole) << picture;
      EXPECT_EQ(ours(form, region), part(whole, picture.width, region)) << picture;
    });
  }
}

// COEFFICIENTS.md, read by hand.
TEST(CoefficientForm, HasTheFieldsThatItsDocumentTells) {
  std::mt19937 random(3);
  for (const JpegLayout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    const Picture picture{.width = 61, .height = 43, .layout = layout};
    const Data form = form_of(encode(picture, random));
    const bool gray = layout.colors == Colors::kGray;
    EXPECT_EQ(field<std::uint32_t>(form, 8), form.size());
    EXPECT_EQ(field<std::uint16_t>(form, 12), 61);
    EXPECT_EQ(field<std::uint16_t>(form, 14), 43);
    EXPECT_EQ(form[16], gray ? 0 : layout.colors == Colors::kYcc ? 1 : 2);
    EXPECT_EQ(form[17], 1);
    std::size_t rows = 0;
    const int most = gray ? 1 : *std::max_element(layout.v.begin(), layout.v.end());
    for (std::size_t c = 0; c < (gray ? 1 : 3); ++c) {
      EXPECT_EQ(form[18 + c], gray ? 0x11 : layout.h[c] << 4 | layout.v[c]);
      rows += static_cast<std::size_t>((43 + 8 * most - 1) / (8 * most) * (gray ? 1 : layout.v[c]));
    }
    EXPECT_THAT(Data(form.begin() + 21, form.begin() + 24), testing::Each(0));
    const std::size_t table = 24 + 128 * (gray ? 1 : 3);
    EXPECT_EQ(field<std::uint32_t>(form, table), table + 4 * rows + 4) << "the first row of blocks";
    EXPECT_EQ(field<std::uint32_t>(form, table + 4 * rows), 0U);
    EXPECT_THAT(Data(form.end() - 64, form.end()), testing::Each(0));
  }
}

TEST(CoefficientForm, KeepsTheOrientation) {
  std::mt19937 random(4);
  const Picture picture{.width = 37, .height = 21, .layout = kLayouts[5]};
  const Data upright = encode(picture, random);
  DecodeOptions turning;
  turning.exif = true;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Data file = with_orientation(upright, orientation), form = form_of(file);
    ASSERT_TRUE(is_coefficient_form(form));
    EXPECT_EQ(form[17], orientation);
    const TensorSpec spec = encoded_image(form, turning).upright();
    EXPECT_EQ(spec.shape[0], orientation > 4 ? 37 : 21);
    const Region whole{0, 0, spec.shape[0], spec.shape[1]}, some{3, 2, 15, 17};
    EXPECT_EQ(ours(form, whole, nullptr, turning), ours(file, whole, nullptr, turning));
    EXPECT_EQ(ours(form, some, nullptr, turning), ours(file, some, nullptr, turning));
    EXPECT_EQ(ours(form, picture.whole()), ours(file, picture.whole())) << "as stored";
  }
}

TEST(CoefficientForm, OtherFilesStandAtTheCutAsTheyAre) {
  std::mt19937 random(5);
  Picture picture{.width = 37, .height = 21, .layout = kLayouts[5]};
  const Data sound = encode(picture, random);
  picture.progressive = true;
  const Data progressive = encode(picture, random);
  EXPECT_EQ(form_of(progressive), progressive);
  const Data cut_short(sound.begin(), sound.end() - 2);  // libjpeg forgives a missing end
  EXPECT_EQ(form_of(cut_short), cut_short);
  const Data bmp = {'B', 'M', 58, 0, 0, 0, 0, 0, 0,  0, 54, 0, 0, 0, 40, 0, 0, 0, 1, 0,
                    0,   0,   1,  0, 0, 0, 1, 0, 24, 0, 0,  0, 0, 0, 4,  0, 0, 0, 0, 0,
                    0,   0,   0,  0, 0, 0, 0, 0, 0,  0, 0,  0, 0, 0, 7,  8, 9, 0};
  EXPECT_EQ(form_of(bmp), bmp);
  EXPECT_EQ(ours(bmp, {0, 0, 1, 1}), (Data{9, 8, 7}));
  const Data form = form_of(sound);
  EXPECT_EQ(form_of(form), form) << "a form is one already";
}

TEST(CoefficientForm, EveryTruncationIsRefused) {
  std::mt19937 random(6);
  for (const JpegLayout& layout : kLayouts) {
    const Data form = form_of(encode({.width = 19, .height = 17, .layout = layout}, random));
    for (std::size_t size = 8; size < form.size(); ++size) {
      Data shorter(form.begin(), form.begin() + static_cast<std::ptrdiff_t>(size));
      EXPECT_EQ(decoded(shorter), std::nullopt) << size;
      // With its size field repaired, all but the tail's own end must still be missed or harmless.
      if (size < 12) continue;
      const auto claimed = static_cast<std::uint32_t>(size);
      std::memcpy(shorter.data() + 8, &claimed, sizeof claimed);
      decoded(shorter);
    }
  }
}

// Every byte of a small form, with some other values; and several at once.
TEST(CoefficientForm, DamageGivesARefusalOrPixels) {
  std::mt19937 random(7);
  for (const std::size_t which : {0U, 3U, 5U, 20U}) {
    const Data sound =
        form_of(encode({.width = 9, .height = 10, .layout = kLayouts[which]}, random));
    for (std::size_t at = 0; at < sound.size(); ++at)
      for (const int change : {0x01, 0x80, 0x7F, 0xFF, 1 + below(random, 255)}) {
        Data form = sound;
        form[at] = static_cast<std::uint8_t>(form[at] ^ change);
        if (at >= 8) decoded(form);  // else it is no form at all
      }
    for (int i = 0; i < 2000; ++i) {
      Data form = sound;
      for (int flips = 2 + below(random, 6); flips > 0; --flips)
        form[12 + random() % (form.size() - 12)] = static_cast<std::uint8_t>(random());
      decoded(form);
    }
  }
}

}  // namespace
}  // namespace cutwater::image
