// SPDX-License-Identifier: Apache-2.0
// Our own JPEG decoder beside libjpeg-turbo: the same pixels for every layout, size and region, and
// for damaged scans as well.
#include "ops/image/jpeg_baseline.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "cutwater/error.h"
#include "ops/image/jpeg_huffman.h"
#include "ops/image/test_jpeg.h"
#include "ops/image/test_simd_levels.h"

namespace cutwater::image {
namespace {

TEST(BaselineJpeg, IsLibjpegsToTheBitForEveryLayoutAndRegion) {
  std::mt19937 random(1);
  for (int i = 0; i < 900; ++i) {
    const Picture picture = random_picture(random);
    SCOPED_TRACE(testing::Message() << i << ": " << picture);
    const Data file = encode(picture, random), whole = reference(file);
    ASSERT_EQ(ours(file, picture.whole()), whole);
    for (int k = 0; k < 4; ++k) {
      const Region region = random_region(picture, random);
      ASSERT_EQ(ours(file, region), part(whole, picture.width, region))
          << region.top << " " << region.left << " " << region.height << " " << region.width;
    }
  }
}

// Not libjpeg's by way of leaving the file to libjpeg.
TEST(BaselineJpeg, IsOursForEveryBaselineLayout) {
  std::mt19937 random(5);
  JpegPlanes planes;
  std::vector<std::uint8_t> form;
  for (const JpegLayout& layout : kLayouts)
    for (int i = 0; i < 12; ++i) {
      Picture picture = random_picture(random);
      picture.layout = layout;
      const Data file = encode(picture, random);
      EXPECT_TRUE(decode_baseline(file, picture.whole(), nullptr, planes)) << picture;
      EXPECT_TRUE(decode_baseline(file, random_region(picture, random), nullptr, planes))
          << picture;
      EXPECT_TRUE(baseline_coefficients(file, 1, form)) << picture;
    }
}

TEST(BaselineJpeg, LeavesEverythingElseToLibjpeg) {
  std::mt19937 random(6);
  JpegPlanes planes;
  std::vector<std::uint8_t> form;
  const auto is_ours = [&](const Data& file) {
    const bool decoded = decode_baseline(file, {0, 0, 33, 47}, nullptr, planes);
    EXPECT_EQ(baseline_coefficients(file, 1, form), decoded);
    return decoded;
  };
  Picture picture{.width = 47, .height = 33, .layout = kLayouts[5]};
  const Data sound = encode(picture, random);
  EXPECT_TRUE(is_ours(sound));

  Picture progressive = picture, arithmetic = picture, cmyk = picture;
  progressive.progressive = true;
  arithmetic.arithmetic = true;
  cmyk.layout.colors = Colors::kCmyk;
  for (const Picture& other : {progressive, arithmetic}) {
    const Data file = encode(other, random);
    EXPECT_FALSE(is_ours(file));
    EXPECT_EQ(ours(file, picture.whole()), reference(file));
  }
  EXPECT_FALSE(is_ours(encode(cmyk, random)));

  Data deep = sound;
  const std::array<std::uint8_t, 2> frame = {0xFF, 0xC0};
  const auto at = std::search(deep.begin(), deep.end(), frame.begin(), frame.end());
  ASSERT_NE(at, deep.end());
  at[4] = 12;  // bits per sample
  EXPECT_FALSE(is_ours(deep));

  for (std::size_t size = 0; size < sound.size(); ++size)
    EXPECT_FALSE(is_ours(Data(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(size))))
        << "cut short at " << size;
}

TEST(BaselineJpeg, EverySimdLevelGivesTheSamePixels) {
  std::mt19937 random(2);
  for (int i = 0; i < 120; ++i) {
    const Picture picture = random_picture(random);
    SCOPED_TRACE(testing::Message() << i << ": " << picture);
    const Data file = encode(picture, random), whole = reference(file);
    const Region region = random_region(picture, random);
    for_each_simd_level([&] {
      EXPECT_EQ(ours(file, picture.whole()), whole);
      EXPECT_EQ(ours(file, region), part(whole, picture.width, region));
    });
  }
}

// Files that are not ours for some small thing are cropped by libjpeg itself.
TEST(BaselineJpeg, LibjpegsOwnRegionsArePartsOfTheWhole) {
  std::mt19937 random(7);
  for (int i = 0; i < 1500; ++i) {
    const Picture picture = random_picture(random);
    const Data file = encode(picture, random), whole = reference(file);
    const Header header = read_header(file, {});
    for (int k = 0; k < 3; ++k) {
      const Region region = random_region(picture, random);
      Data pixels(static_cast<std::size_t>(region.height * region.width * 3));
      const TensorSpec spec{DType::kU8, {header.height, header.width, 3}, Layout::kPixels};
      decode_rgb(file, header, {}, TensorSpan(spec, pixels.data(), region, region.width * 3));
      ASSERT_EQ(pixels, part(whole, picture.width, region))
          << i << ": " << picture << " at " << region.top << " " << region.left << " "
          << region.height << " " << region.width;
    }
  }
}

// Bits flipped in the scan, its end marker intact: libjpeg warns and goes on, so we give its
// pixels.
TEST(BaselineJpeg, DamagedScansGiveLibjpegsPixels) {
  std::mt19937 random(3);
  for (int i = 0; i < 1500; ++i) {
    const Picture picture = random_picture(random);
    Data file = encode(picture, random);
    std::size_t scan = 0;
    for (std::size_t at = 2; file[at + 1] != 0xDA; at += 2 + (file[at + 2] << 8 | file[at + 3]))
      scan = at + 2 + (file[at + 2] << 8 | file[at + 3]);
    scan += 2 + (file[scan + 2] << 8 | file[scan + 3]);
    if (scan + 4 >= file.size()) continue;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      const std::size_t at = scan + random() % (file.size() - 2 - scan);
      std::uint8_t& byte = file[at];
      // Restarts may come in another order; new markers are another test's.
      const bool restart = at > scan && file[at - 1] == 0xFF && byte != 0;
      if (byte != 0xFF && byte != 0)
        byte ^= static_cast<std::uint8_t>(1 << random() % (restart ? 3 : 8));
      if (byte == 0xFF) byte = 0xFE;
    }
    const Data whole = reference(file);
    ASSERT_EQ(ours(file, picture.whole()), whole) << i;
    const Region region = random_region(picture, random);
    ASSERT_EQ(ours(file, region), part(whole, picture.width, region)) << i;
  }
}

// Every table number in the headers, set to every value: ours must not look where there is no
// table.
TEST(BaselineJpeg, TableNumbersOfAFileAreNotTrusted) {
  std::mt19937 random(4);
  const Picture picture{.width = 20, .height = 20, .layout = kLayouts[3]};
  const Data sound = encode(picture, random), pixels = reference(sound);
  int refused = 0;
  for (std::size_t at = 2; at + 4 < sound.size(); at += 2 + (sound[at + 2] << 8 | sound[at + 3])) {
    const std::uint8_t marker = sound[at + 1];
    std::vector<std::size_t> numbers;  // quantizers in the frame header, codes in the scan header
    for (std::size_t c = 0; c < 3; ++c) {
      if (marker == 0xC0) numbers.push_back(at + 12 + 3 * c);
      if (marker == 0xDA) numbers.push_back(at + 6 + 2 * c);
    }
    for (const std::size_t place : numbers)
      for (int value = 0; value < 256; ++value) {
        Data file = sound;
        file[place] = static_cast<std::uint8_t>(value);
        try {
          const Data got = ours(file, picture.whole());
          if (value == sound[place]) {
            EXPECT_EQ(got, pixels);
          }
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Code::kBadSample);
          ++refused;
        }
      }
    if (marker == 0xDA) break;
  }
  EXPECT_GT(refused, 6 * 200);
}

TEST(HuffmanCodes, RefusesTablesThatAreNoCode) {
  HuffmanCodes codes;
  const std::array<std::uint8_t, 16> crowded = {2}, fine = {1, 1}, cut_short = {0, 3};
  const Data values = {1, 2};
  EXPECT_FALSE(codes.build(crowded, values)) << "the code of all ones is reserved";
  EXPECT_FALSE(codes.build(cut_short, values)) << "more codes than values";
  EXPECT_TRUE(codes.build(fine, values));
  EXPECT_EQ(codes.find(0b0111ULL << 60).value, 1);
  EXPECT_EQ(codes.find(0b1011ULL << 60).value, 2);
  EXPECT_EQ(codes.find(0b1111ULL << 60).length, 0);
}

TEST(BitReader, TakesAndSeeks) {
  Data bytes(2 + BitReader::kPadding, 0);
  bytes[0] = 0b1010'0101;
  bytes[1] = 0b1100'0000;
  BitReader reader(bytes.data(), 0);
  reader.refill();
  EXPECT_EQ(reader.bits() >> 60, 0b1010U);
  reader.take(6);
  EXPECT_EQ(reader.position(), 6);
  EXPECT_EQ(reader.bits() >> 60, 0b0111U);
  reader.seek(3);
  EXPECT_EQ(reader.position(), 3);
  EXPECT_EQ(reader.bits() >> 59, 0b00101U);
  reader.refill();
  reader.take(30);
  EXPECT_EQ(reader.position(), 33) << "zeros behind the end can be taken, too";
}

TEST(Extended, IsTheNumberThatJpegMeans) {
  for (unsigned size = 0; size <= 11; ++size)
    for (int bits = 0; bits < 1 << size; ++bits) {
      const int expected = size > 0 && bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
      const std::uint64_t top =
          size == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(bits) << (64 - size);
      ASSERT_EQ(extended(top, size), expected) << size << " " << bits;
    }
}

}  // namespace
}  // namespace cutwater::image
