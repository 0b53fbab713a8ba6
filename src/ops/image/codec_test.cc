// SPDX-License-Identifier: Apache-2.0
// The codecs, on files that the tests make themselves. That real files give Pillow's pixels is
// checked in Python, against Pillow.
#include "ops/image/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <webp/encode.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/error.h"

namespace cutwater::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Data = std::vector<std::uint8_t>;
using std::string_view_literals::operator""sv;

Data bytes(std::string_view text) { return {text.begin(), text.end()}; }

Data operator+(Data left, const Data& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Data le(std::uint32_t value, int size) {
  Data out;
  for (int i = 0; i < size; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  return out;
}

Data be32(std::uint32_t value) {
  const Data out = le(value, 4);
  return {out.rbegin(), out.rend()};
}

Data decode(const Data& file, const Region& region, const Limits& limits = {}) {
  const Header header = read_header(file, limits);
  Data pixels(static_cast<std::size_t>(region.height * region.width * 3));
  const TensorSpec spec{DType::kU8, {header.height, header.width, 3}};
  decode_rgb(file, header, limits, TensorSpan(spec, pixels.data(), region, region.width * 3));
  return pixels;
}

Data decode(const Data& file, const Limits& limits = {}) {
  const Header header = read_header(file, limits);
  return decode(file, {0, 0, header.height, header.width}, limits);
}

// The reason why a file is refused; empty where it is not.
std::string refusal(const Data& file, const Limits& limits = {}) {
  try {
    decode(file, limits);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kBadSample);
    return error.failure().reason;
  }
}

Data part_of(const Data& image, std::int64_t width, const Region& region) {
  Data out;
  for (std::int64_t y = region.top; y < region.top + region.height; ++y) {
    const auto row = image.begin() + (y * width + region.left) * 3;
    out.insert(out.end(), row, row + region.width * 3);
  }
  return out;
}

Data noise(std::int64_t size) {
  std::mt19937 random(7);
  Data out(static_cast<std::size_t>(size));
  for (std::uint8_t& value : out) value = static_cast<std::uint8_t>(random());
  return out;
}

struct JpegOptions {
  int width = 50, height = 40, components = 3;
  int h = 1, v = 1;  // of the first component
  bool progressive = false, arithmetic = false;
  unsigned restart = 0;
};

Data make_jpeg(const JpegOptions& options, const Data& pixels) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &buffer, &size);
  info.image_width = static_cast<JDIMENSION>(options.width);
  info.image_height = static_cast<JDIMENSION>(options.height);
  info.input_components = options.components;
  info.in_color_space = options.components == 1   ? JCS_GRAYSCALE
                        : options.components == 3 ? JCS_RGB
                                                  : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 90, TRUE);
  info.comp_info[0].h_samp_factor = options.h;
  info.comp_info[0].v_samp_factor = options.v;
  if (options.progressive) jpeg_simple_progression(&info);
  info.arith_code = options.arithmetic ? TRUE : FALSE;
  info.restart_interval = options.restart;
  jpeg_start_compress(&info, TRUE);
  const auto row_bytes = static_cast<std::size_t>(options.width * options.components);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<JSAMPROW>(pixels.data() + info.next_scanline * row_bytes);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Data out(buffer, buffer + size);
  std::free(buffer);
  return out;
}

Data make_jpeg(const JpegOptions& options = {}) {
  return make_jpeg(options, noise(options.width * options.height * options.components));
}

Data chunk(std::string_view name, const Data& data) {
  const Data body = bytes(name) + data;
  return be32(static_cast<std::uint32_t>(data.size())) + body +
         be32(static_cast<std::uint32_t>(crc32_z(0, body.data(), body.size())));
}

Data deflated(const Data& data) {
  uLongf size = compressBound(data.size());
  Data out(size);
  compress(out.data(), &size, data.data(), data.size());
  out.resize(size);
  return out;
}

const Data kPngMagic = bytes("\x89PNG\r\n\x1a\n"sv);

Data ihdr(std::uint32_t width, std::uint32_t height, std::uint8_t depth, std::uint8_t color,
          std::uint8_t interlace = 0) {
  return kPngMagic +
         chunk("IHDR", be32(width) + be32(height) + Data{depth, color, 0, 0, interlace});
}

Data make_png(const Data& head, const Data& rows, const Data& between = {}) {
  return head + between + chunk("IDAT", deflated(rows)) + chunk("IEND", {});
}

const Data kExif = bytes("II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"sv);

Data make_bmp(std::uint32_t width, std::uint32_t height, std::uint32_t bits,
              std::uint32_t compression, const Data& rest, std::uint32_t offset = 54) {
  return bytes("BM") + Data(8) + le(offset, 4) + le(40, 4) + le(width, 4) + le(height, 4) +
         le(1, 2) + le(bits, 2) + le(compression, 4) + Data(20) + rest;
}

// A 1x1 frame of pixel value 1 at (1, 0) of a 3x1 image with colours a, b, c, d; "background" is
// made transparent.
Data make_gif(std::uint8_t background) {
  return bytes("GIF89a\x03\0\x01\0\x81\0\0"sv) + bytes("aaabbbcccddd") +
         bytes("!\xF9\x04\x01\0\0"sv) + Data{background, 0} +
         bytes(",\x01\0\0\0\x01\0\x01\0\0\x02\x02\x4C\x01\0;"sv);
}

TEST(Codec, NamesWhatItCannotRead) {
  EXPECT_EQ(refusal({}), "the file is empty");
  EXPECT_THAT(refusal(bytes("II*\0........"sv)), HasSubstr("TIFF is not supported"));
  EXPECT_THAT(refusal(bytes("\0\0\0\x1C"
                            "ftypavif"sv)),
              HasSubstr("AVIF"));
  EXPECT_THAT(refusal(bytes("P6\n2 2\n"sv)), HasSubstr("PPM"));
  EXPECT_THAT(refusal(bytes("<html>404</html>")), HasSubstr("HTML"));
  EXPECT_THAT(refusal(Data{1, 2, 0xAB}), HasSubstr("3 bytes begin with 01 02 ab"));
}

TEST(Codec, ChecksLimitsFromTheHeader) {
  const Data huge = ihdr(60000, 60000, 8, 2);
  EXPECT_THAT(refusal(huge), HasSubstr("60000x60000"));
  EXPECT_THAT(refusal(ihdr(0, 5, 8, 2)), HasSubstr("empty image"));
  EXPECT_THAT(refusal(make_jpeg(), {.max_pixels = 1999}), HasSubstr("limit of 1999"));
  EXPECT_EQ(refusal(make_jpeg(), {.max_pixels = 2000}), "");
  EXPECT_THAT(refusal(make_jpeg(), {.max_bytes = 100}), HasSubstr("max_bytes"));
}

TEST(Codec, ReportsExifOrientation) {
  EXPECT_EQ(read_header(make_jpeg(), {}).exif_orientation, 1);
  Data jpeg = make_jpeg();
  const Data app1 = bytes(
                        "\xFF\xE1\0\x22"
                        "Exif\0\0"sv) +
                    kExif;
  jpeg.insert(jpeg.begin() + 2, app1.begin(), app1.end());
  EXPECT_EQ(read_header(jpeg, {}).exif_orientation, 6);
  const Data png = make_png(ihdr(1, 1, 8, 0), {0, 9}, chunk("eXIf", kExif));
  EXPECT_EQ(read_header(png, {}).exif_orientation, 6);
}

class JpegRegion : public ::testing::TestWithParam<JpegOptions> {};

TEST_P(JpegRegion, HasThePixelsOfTheWhole) {
  const Data file = make_jpeg(GetParam());
  const Data whole = decode(file);
  for (const Region& region : {Region{0, 0, 1, 1},
                               {39, 49, 1, 1},
                               {0, 0, 40, 7},
                               {0, 31, 40, 19},
                               {17, 0, 5, 50},
                               {15, 15, 2, 2},
                               {16, 16, 8, 8},
                               {7, 33, 26, 1},
                               {1, 1, 38, 48}}) {
    EXPECT_EQ(decode(file, region), part_of(whole, 50, region)) << region.top << ' ' << region.left;
  }
}

INSTANTIATE_TEST_SUITE_P(Samplings, JpegRegion,
                         ::testing::Values(JpegOptions{}, JpegOptions{.h = 2},
                                           JpegOptions{.h = 2, .v = 2}, JpegOptions{.v = 2},
                                           JpegOptions{.h = 4}, JpegOptions{.components = 1},
                                           JpegOptions{.components = 4},
                                           JpegOptions{.h = 2, .v = 2, .restart = 2},
                                           JpegOptions{.h = 2, .v = 2, .progressive = true},
                                           JpegOptions{.h = 2, .arithmetic = true}));

TEST(Jpeg, ConvertsCmykAsPillow) {
  // Inverted, as Adobe stores it. 8x8 of one colour survives compression.
  Data pixels;
  for (int i = 0; i < 64; ++i) pixels = pixels + Data{200, 100, 0, 128};
  const Data out = decode(make_jpeg({.width = 8, .height = 8, .components = 4}, pixels));
  EXPECT_NEAR(out[0], 100, 2);
  EXPECT_NEAR(out[1], 50, 2);
  EXPECT_NEAR(out[2], 0, 2);
}

TEST(Jpeg, RefusesCutFilesWhateverPartIsAskedFor) {
  Data file = make_jpeg();
  file.resize(file.size() / 2);
  EXPECT_THAT(refusal(file), HasSubstr("JPEG data end early: row"));
  EXPECT_THROW(decode(file, {0, 0, 1, 1}), Error);
  file.resize(40);
  EXPECT_THAT(refusal(file), HasSubstr("header"));
}

TEST(Jpeg, AcceptsDamagedCodes) {
  Data file = make_jpeg();
  file[file.size() / 2] = 0x55;
  const Data whole = decode(file);
  EXPECT_EQ(decode(file, {20, 20, 9, 9}), part_of(whole, 50, {20, 20, 9, 9}));
}

TEST(Jpeg, RefusesOtherBitDepthsAndTooManyScans) {
  Data file = make_jpeg();
  for (std::size_t i = 0; i + 4 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == 0xC0) {
      file[i + 4] = 12;
      break;
    }
  }
  EXPECT_THAT(refusal(file), HasSubstr("12 bits"));
  EXPECT_THAT(refusal(make_jpeg({.progressive = true}), {.max_scans = 3}), HasSubstr("max_scans"));
}

TEST(Jpeg, CountsCoefficientsOfProgressiveFilesAsScratch) {
  EXPECT_LT(read_header(make_jpeg({.width = 800, .height = 800}), {}).scratch_bytes,
            800 * 800 * 3 * 2);
  const Data progressive = make_jpeg({.width = 800, .height = 800, .progressive = true});
  EXPECT_GT(read_header(progressive, {}).scratch_bytes, 800 * 800 * 3 * 2);
}

TEST(Png, ReadsEveryKindOfPixel) {
  EXPECT_THAT(decode(make_png(ihdr(1, 1, 8, 2), {0, 1, 2, 3})), ElementsAre(1, 2, 3));
  EXPECT_THAT(decode(make_png(ihdr(1, 1, 8, 6), {0, 1, 2, 3, 4})), ElementsAre(1, 2, 3));
  EXPECT_THAT(decode(make_png(ihdr(1, 1, 16, 2), {0, 1, 9, 2, 9, 3, 9})), ElementsAre(1, 2, 3));
  EXPECT_THAT(decode(make_png(ihdr(1, 1, 8, 4), {0, 7, 9})), ElementsAre(7, 7, 7));
  EXPECT_THAT(decode(make_png(ihdr(2, 1, 1, 0), {0, 0x40})), ElementsAre(0, 0, 0, 255, 255, 255));
  EXPECT_THAT(decode(make_png(ihdr(2, 1, 4, 0), {0, 0x2F})),
              ElementsAre(34, 34, 34, 255, 255, 255));
  // Gray of 16 bits is clipped, not scaled.
  EXPECT_THAT(decode(make_png(ihdr(2, 1, 16, 0), {0, 0, 200, 1, 0})),
              ElementsAre(200, 200, 200, 255, 255, 255));
  // Colours beyond the palette are black.
  EXPECT_THAT(decode(make_png(ihdr(2, 1, 8, 3), {0, 0, 9}, chunk("PLTE", {1, 2, 3}))),
              ElementsAre(1, 2, 3, 0, 0, 0));
}

TEST(Png, UndoesFiltersAndInterlacing) {
  EXPECT_THAT(decode(make_png(ihdr(2, 2, 8, 0), {1, 5, 5, 4, 1, 1})),
              ElementsAre(5, 5, 5, 10, 10, 10, 6, 6, 6, 11, 11, 11));
  const Data interlaced = make_png(ihdr(2, 2, 8, 0, 1), {0, 1, 0, 2, 0, 3, 4});
  EXPECT_THAT(decode(interlaced), ElementsAre(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4));
  EXPECT_THAT(decode(interlaced, {1, 1, 1, 1}), ElementsAre(4, 4, 4));
  EXPECT_THAT(refusal(make_png(ihdr(1, 1, 8, 0), {9, 1})), HasSubstr("filter 9"));
}

TEST(Png, TreatsDamageAsPillowDoes) {
  const Data good = make_png(ihdr(1, 2, 8, 0), {0, 5, 0, 6});
  Data wrong_header_crc = good;
  wrong_header_crc[29] ^= 1;
  EXPECT_THAT(refusal(wrong_header_crc), HasSubstr("checksum of the IHDR"));
  Data wrong_data_crc = good;
  wrong_data_crc[good.size() - 13] ^= 1;
  EXPECT_EQ(refusal(wrong_data_crc), "");
  EXPECT_THAT(refusal(Data(good.begin(), good.begin() + 44)), HasSubstr("end early"));
  // A stream that ends after a whole row leaves the rest black.
  EXPECT_THAT(decode(make_png(ihdr(1, 2, 8, 0), {0, 5})), ElementsAre(5, 5, 5, 0, 0, 0));
  EXPECT_THAT(refusal(make_png(ihdr(2, 2, 8, 0), {0, 5})), HasSubstr("end early"));
}

TEST(Png, RefusesTextThatInflatesHugely) {
  const Data text = bytes("key\0\0"sv) + deflated(Data(2 << 20));
  const Data file = make_png(ihdr(1, 1, 8, 0), {0, 5}, chunk("zTXt", text));
  EXPECT_THAT(refusal(file), HasSubstr("inflates to more than"));
}

TEST(Gif, PlacesTheFirstFrame) {
  EXPECT_EQ(decode(make_gif(2)), bytes("cccbbbccc"));
  EXPECT_EQ(decode(make_gif(0), {0, 1, 1, 2}), bytes("bbbaaa"));
  Data cut = make_gif(2);
  cut.resize(cut.size() - 4);
  EXPECT_THAT(refusal(cut), HasSubstr("GIF image data end early"));
  EXPECT_THAT(refusal(bytes("GIF89a\xFF\xFF\xFF\xFF\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02"sv)),
              HasSubstr("65535x65535"));
}

TEST(Bmp, ReadsRowsFromEitherEnd) {
  const Data rows = Data{1, 2, 3, 0, 4, 5, 6, 0};
  EXPECT_THAT(decode(make_bmp(1, 2, 24, 0, rows)), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(decode(make_bmp(1, 0xFFFFFFFE, 24, 0, rows)), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(refusal(make_bmp(1, 3, 24, 0, rows)), HasSubstr("8 of 11 bytes"));
  EXPECT_THAT(decode(make_bmp(1, 1, 16, 0, le(0x7C01, 4))), ElementsAre(255, 0, 8));
  const Data masks = le(0xF800, 4) + le(0x7E0, 4) + le(0x1F, 4);
  EXPECT_THAT(decode(make_bmp(1, 1, 16, 3, masks + le(0x07E0, 4), 66)), ElementsAre(0, 255, 0));
}

TEST(Bmp, ReadsRunLengths) {
  Data palette;
  for (std::uint32_t i = 0; i < 256; ++i) palette = palette + le(255 - i, 4);  // blue only
  const Data runs = {2, 10, 0, 3, 11, 12, 13, 0, 0, 1};
  EXPECT_THAT(decode(make_bmp(5, 1, 8, 1, palette + runs, 54 + 1024)),
              ElementsAre(0, 0, 245, 0, 0, 245, 0, 0, 244, 0, 0, 243, 0, 0, 242));
  EXPECT_THAT(refusal(make_bmp(9, 1, 8, 1, palette + runs, 54 + 1024)), HasSubstr("end early"));
}

Data make_webp(int width, int height, const Data& rgb) {
  std::uint8_t* buffer = nullptr;
  const std::size_t size = WebPEncodeLosslessRGB(rgb.data(), width, height, width * 3, &buffer);
  Data out(buffer, buffer + size);
  WebPFree(buffer);
  return out;
}

TEST(Webp, ReadsLosslessPixels) {
  const Data pixels = noise(9 * 7 * 3);
  Data file = make_webp(9, 7, pixels);
  EXPECT_EQ(decode(file), pixels);
  EXPECT_EQ(decode(file, {2, 3, 4, 5}), part_of(pixels, 9, {2, 3, 4, 5}));
  file.resize(file.size() - 3);
  EXPECT_THAT(refusal(file), HasSubstr("WebP is damaged or cut short"));
}

// Whatever the bytes, a file is either refused with a reason or decoded, alike for any region.
TEST(Codec, SurvivesDamage) {
  const std::vector<Data> files = {
      make_jpeg({.h = 2, .v = 2, .restart = 3}), make_jpeg({.progressive = true}),
      make_png(ihdr(8, 8, 8, 0, 1), noise(200)), make_gif(2),
      make_bmp(2, 2, 24, 0, noise(16)),          make_webp(9, 7, noise(9 * 7 * 3)),
  };
  const Limits limits{.max_pixels = 1 << 20};
  std::mt19937 random(1);
  for (const Data& file : files) {
    for (int i = 0; i < 300; ++i) {
      Data damaged = file;
      const std::size_t end = i % 2 == 0 ? file.size() : std::min<std::size_t>(64, file.size());
      const std::size_t at = random() % end;
      damaged[at] = static_cast<std::uint8_t>(random());
      if (i % 5 == 0) damaged.resize(at);
      const std::string reason = refusal(damaged, limits);
      if (reason.empty()) {
        EXPECT_NO_THROW(decode(damaged, {0, 0, 1, 1}, limits));
      }
    }
  }
}

}  // namespace
}  // namespace cutwater::image
