// SPDX-License-Identifier: Apache-2.0
// Our own JPEG decoder beside libjpeg-turbo: the same pixels for every layout, size and region, and
// for damaged scans as well.
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <jpeglib.h>

#include <cstdio>  // jpeglib.h needs it first
#include <random>
#include <vector>

#include "cutwater/error.h"
#include "ops/image/encoded_image.h"
#include "ops/image/jpeg_huffman.h"

namespace cutwater::image {
namespace {

using Data = std::vector<std::uint8_t>;

struct Picture {
  int width, height, components;
  int h = 1, v = 1;  // sampling of the first component; the others have 1 x 1
  int quality = 90;
};

// Noise over a gradient: all coefficients occur.
Data encode(const Picture& picture, std::mt19937& random) {
  Data pixels(static_cast<std::size_t>(picture.width * picture.height * picture.components));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i / 3 + random() % 60);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.components;
  info.in_color_space = picture.components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, picture.quality, TRUE);
  info.comp_info[0].h_samp_factor = picture.h;
  info.comp_info[0].v_samp_factor = picture.v;
  info.optimize_coding = random() % 2 == 0 ? TRUE : FALSE;
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < picture.height; ++y) {
    JSAMPROW row = pixels.data() + static_cast<std::size_t>(y * picture.width * picture.components);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Data file(bytes, bytes + size);
  std::free(bytes);
  return file;
}

// What libjpeg-turbo makes of a file whose data are complete, damaged or not.
Data reference(const Data& file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  Data pixels(std::size_t{info.output_width} * info.output_height * 3);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + std::size_t{info.output_scanline} * info.output_width * 3;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_destroy_decompress(&info);
  return pixels;
}

Data ours(const Data& file, const Region& region) {
  const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(file.size())}};
  const EncodedImage image(TensorView(stored, file.data()), Encoding::kFile, {}, false);
  Data pixels(static_cast<std::size_t>(region.height * region.width * 3));
  image.decode(TensorSpan(image.upright(), pixels.data(), region, region.width * 3), nullptr);
  return pixels;
}

Data part(const Data& pixels, std::int64_t width, const Region& region) {
  Data cut;
  for (std::int64_t y = region.top; y < region.top + region.height; ++y) {
    const auto row = pixels.begin() + (y * width + region.left) * 3;
    cut.insert(cut.end(), row, row + region.width * 3);
  }
  return cut;
}

Region random_region(const Picture& picture, std::mt19937& random) {
  const auto top = static_cast<std::int64_t>(random() % static_cast<unsigned>(picture.height));
  const auto left = static_cast<std::int64_t>(random() % static_cast<unsigned>(picture.width));
  return {top, left,
          1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(picture.height - top)),
          1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(picture.width - left))};
}

Picture random_picture(std::mt19937& random) {
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  return {1 + below(70), 1 + below(70), random() % 5 == 0 ? 1 : 3,
          1 + below(2),  1 + below(2),  below(2) == 0 ? 30 + below(60) : 98};
}

TEST(BaselineJpeg, IsLibjpegsToTheBitForEveryLayoutAndRegion) {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const Picture picture = random_picture(random);
    const Data file = encode(picture, random), whole = reference(file);
    ASSERT_EQ(ours(file, {0, 0, picture.height, picture.width}), whole);
    for (int k = 0; k < 6; ++k) {
      const Region region = random_region(picture, random);
      ASSERT_EQ(ours(file, region), part(whole, picture.width, region))
          << picture.width << "x" << picture.height << " sampling " << picture.h << "x" << picture.v
          << " region " << region.top << " " << region.left << " " << region.height << " "
          << region.width;
    }
  }
}

TEST(BaselineJpeg, EverySimdLevelGivesTheSamePixels) {
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) {
    const Picture picture = random_picture(random);
    const Data file = encode(picture, random), whole = reference(file);
    for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
      hwy::SetSupportedTargetsForTest(left & -left);
      EXPECT_EQ(ours(file, {0, 0, picture.height, picture.width}), whole)
          << hwy::TargetName(left & -left);
    }
    hwy::SetSupportedTargetsForTest(0);
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
      std::uint8_t& byte = file[scan + random() % (file.size() - 2 - scan)];
      if (byte != 0xFF && byte != 0) byte ^= static_cast<std::uint8_t>(1 << random() % 8);
      if (byte == 0xFF) byte = 0xFE;  // no new markers: those are another test's
    }
    const Data whole = reference(file);
    ASSERT_EQ(ours(file, {0, 0, picture.height, picture.width}), whole) << i;
    const Region region = random_region(picture, random);
    ASSERT_EQ(ours(file, region), part(whole, picture.width, region)) << i;
  }
}

// Every table number in the headers, set to every value: ours must not look where there is no
// table.
TEST(BaselineJpeg, TableNumbersOfAFileAreNotTrusted) {
  std::mt19937 random(4);
  const Picture picture{20, 20, 3};
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
          const Data got = ours(file, {0, 0, picture.height, picture.width});
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
