// SPDX-License-Identifier: Apache-2.0
// For tests: JPEGs of every layout that libjpeg-turbo writes, and what it reads from them.
#pragma once

#include <cstdio>  // jpeglib.h needs it first
// clang-format off
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "ops/image/encoded_image.h"

namespace cutwater::image {

using Data = std::vector<std::uint8_t>;

// How a file says what its components are.
enum class Colors { kGray, kYcc, kRgbByAdobe, kRgbByNames, kCmyk };

struct JpegLayout {
  const char* name;
  Colors colors;
  std::array<int, 3> h, v;  // sampling factors
};

// All that our own decoder claims: the usual ones, and those that the standard allows besides.
inline constexpr JpegLayout kLayouts[] = {
    {"gray", Colors::kGray, {1, 1, 1}, {1, 1, 1}},
    {"gray, factors 2x2", Colors::kGray, {2, 1, 1}, {2, 1, 1}},
    {"gray, factors 4x2", Colors::kGray, {4, 1, 1}, {2, 1, 1}},
    {"4:4:4", Colors::kYcc, {1, 1, 1}, {1, 1, 1}},
    {"4:2:2", Colors::kYcc, {2, 1, 1}, {1, 1, 1}},
    {"4:2:0", Colors::kYcc, {2, 1, 1}, {2, 1, 1}},
    {"4:4:0", Colors::kYcc, {1, 1, 1}, {2, 1, 1}},
    {"4:1:1", Colors::kYcc, {4, 1, 1}, {1, 1, 1}},
    {"4x2", Colors::kYcc, {4, 1, 1}, {2, 1, 1}},
    {"2x4", Colors::kYcc, {2, 1, 1}, {4, 1, 1}},
    {"1x4", Colors::kYcc, {1, 1, 1}, {4, 1, 1}},
    {"3x1", Colors::kYcc, {3, 1, 1}, {1, 1, 1}},
    {"1x3", Colors::kYcc, {1, 1, 1}, {3, 1, 1}},
    {"4:4:4 in MCUs of two blocks", Colors::kYcc, {2, 2, 2}, {1, 1, 1}},
    {"4:4:4 in MCUs two blocks high", Colors::kYcc, {1, 1, 1}, {2, 2, 2}},
    {"chroma twice as wide", Colors::kYcc, {1, 2, 2}, {1, 1, 1}},
    {"chroma twice as high", Colors::kYcc, {1, 1, 1}, {1, 2, 2}},
    {"chroma twice as wide and high", Colors::kYcc, {1, 2, 2}, {1, 2, 2}},
    {"all different", Colors::kYcc, {4, 2, 1}, {1, 1, 1}},
    {"Cb wide, Cr high", Colors::kYcc, {1, 2, 1}, {1, 1, 2}},
    {"Cb and Cr halved in turn", Colors::kYcc, {2, 1, 2}, {2, 2, 1}},
    {"RGB by Adobe's marker", Colors::kRgbByAdobe, {1, 1, 1}, {1, 1, 1}},
    {"RGB by names", Colors::kRgbByNames, {1, 1, 1}, {1, 1, 1}},
    {"RGB, red and blue halved", Colors::kRgbByNames, {1, 2, 1}, {1, 2, 1}},
};

struct Picture {
  int width = 1, height = 1;
  JpegLayout layout = kLayouts[0];
  int quality = 90;
  int restart_interval = 0;             // MCUs
  bool wide_quantizers = false;         // 16 bits where they need them
  bool optimized = false, odd = false;  // Huffman codes of its own, or any at all
  bool progressive = false, arithmetic = false;
  bool third_table = false;  // the last component has codes of its own
  int contrast = 60;         // of the noise

  Region whole() const { return {0, 0, height, width}; }
  friend std::ostream& operator<<(std::ostream& out, const Picture& p) {
    return out << p.width << "x" << p.height << " " << p.layout.name << " quality " << p.quality
               << " restarts " << p.restart_interval << " wide " << p.wide_quantizers << " codes "
               << p.optimized << p.odd;
  }
};

inline int below(std::mt19937& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// Codes of random lengths for these symbols. The one of all ones stays free.
inline void make_odd_codes(JHUFF_TBL& table, std::vector<int> symbols, std::mt19937& random) {
  std::shuffle(symbols.begin(), symbols.end(), random);
  std::fill(std::begin(table.bits), std::end(table.bits), UINT8{0});
  int room = (1 << 16) - 1, left = static_cast<int>(symbols.size());
  for (; left > 0; --left) {
    int length = 1 + below(random, 16);
    while (room - (1 << (16 - length)) < left - 1) ++length;
    room -= 1 << (16 - length);
    ++table.bits[length];
  }
  std::copy(symbols.begin(), symbols.end(), table.huffval);
  table.sent_table = FALSE;
}

inline void use_odd_codes(jpeg_compress_struct& info, std::mt19937& random) {
  std::vector<int> dc, ac = {0x00, 0xF0};
  for (int size = 0; size <= 11; ++size) dc.push_back(size);
  for (int run = 0; run < 16; ++run)
    for (int size = 1; size <= 10; ++size) ac.push_back(run << 4 | size);
  for (int i = 0; i < 2; ++i) {
    if (info.dc_huff_tbl_ptrs[i] != nullptr) make_odd_codes(*info.dc_huff_tbl_ptrs[i], dc, random);
    if (info.ac_huff_tbl_ptrs[i] != nullptr) make_odd_codes(*info.ac_huff_tbl_ptrs[i], ac, random);
  }
}

inline int channels_of(const Picture& picture) {
  const Colors colors = picture.layout.colors;
  return colors == Colors::kGray ? 1 : colors == Colors::kCmyk ? 4 : 3;
}

// `random` is for the codes of odd ones.
inline Data encode(const Picture& picture, Data pixels, std::mt19937& random) {
  const Colors colors = picture.layout.colors;
  const int channels = channels_of(picture);
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};  // it does not like wide quantizers
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, picture.quality, picture.wide_quantizers ? FALSE : TRUE);
  if (colors == Colors::kRgbByAdobe || colors == Colors::kRgbByNames) {
    jpeg_set_colorspace(&info, JCS_RGB);
    if (colors == Colors::kRgbByNames) info.write_Adobe_marker = FALSE;
    if (colors == Colors::kRgbByAdobe)
      for (int c = 0; c < 3; ++c) info.comp_info[c].component_id = c + 1;
  }
  for (std::size_t c = 0; c < std::min<std::size_t>(static_cast<std::size_t>(channels), 3); ++c) {
    info.comp_info[c].h_samp_factor = picture.layout.h[c];
    info.comp_info[c].v_samp_factor = picture.layout.v[c];
  }
  info.restart_interval = static_cast<unsigned>(picture.restart_interval);
  info.optimize_coding = picture.optimized ? TRUE : FALSE;
  if (picture.odd) use_odd_codes(info, random);
  if (picture.third_table) {
    info.dc_huff_tbl_ptrs[2] = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&info));
    info.ac_huff_tbl_ptrs[2] = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&info));
    *info.dc_huff_tbl_ptrs[2] = *info.dc_huff_tbl_ptrs[0];
    *info.ac_huff_tbl_ptrs[2] = *info.ac_huff_tbl_ptrs[0];
    info.comp_info[2].dc_tbl_no = info.comp_info[2].ac_tbl_no = 2;
  }
  if (picture.progressive) jpeg_simple_progression(&info);
  info.arith_code = picture.arithmetic ? TRUE : FALSE;
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < picture.height; ++y) {
    JSAMPROW row = pixels.data() + static_cast<std::size_t>(y * picture.width * channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Data file(bytes, bytes + size);
  std::free(bytes);
  return file;
}

// Noise over a gradient: all coefficients occur.
inline Data encode(const Picture& picture, std::mt19937& random) {
  Data pixels(static_cast<std::size_t>(picture.width * picture.height * channels_of(picture)));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(
        picture.contrast < 256 ? i / 3 + random() % static_cast<unsigned>(picture.contrast)
                               : random() % 2 * 255);
  return encode(picture, std::move(pixels), random);
}

// The file with one more segment at its begin.
inline Data with_segment(const Data& file, std::uint8_t marker, const Data& content) {
  const std::size_t size = content.size() + 2;
  Data segment = content;
  segment.insert(segment.begin(), {0xFF, marker, static_cast<std::uint8_t>(size >> 8),
                                   static_cast<std::uint8_t>(size)});
  Data longer = file;
  longer.insert(longer.begin() + 2, segment.begin(), segment.end());
  return longer;
}

// EXIF data with nothing but an orientation.
inline Data with_orientation(const Data& file, int orientation) {
  return with_segment(
      file, 0xE1,
      {'E', 'x', 'i', 'f',  0,    0, 'M', 'M', 0, 42, 0, 0, 0,
       8,   0,   1,   0x01, 0x12, 0, 3,   0,   0, 0,  1, 0, static_cast<std::uint8_t>(orientation),
       0,   0,   0,   0,    0,    0});
}

// What libjpeg-turbo makes of a file whose data are complete, damaged or not.
inline Data reference(const Data& file) {
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

// A stored file, an excerpt, or a coefficient form.
inline EncodedImage encoded_image(const Data& bytes, const DecodeOptions& options = {}) {
  const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(bytes.size())}};
  return {TensorView(stored, bytes.data()), Encoding::kFileOrForm, options.limits(), options.exif};
}

inline Data ours(const Data& file, const Region& region, Hint* hint = nullptr,
                 const DecodeOptions& options = {}) {
  const EncodedImage image = encoded_image(file, options);
  Data pixels(static_cast<std::size_t>(region.height * region.width * 3));
  image.decode(TensorSpan(image.upright(), pixels.data(), region, region.width * 3), hint);
  return pixels;
}

inline Data part(const Data& pixels, std::int64_t width, const Region& region) {
  Data cut;
  for (std::int64_t y = region.top; y < region.top + region.height; ++y) {
    const auto row = pixels.begin() + (y * width + region.left) * 3;
    cut.insert(cut.end(), row, row + region.width * 3);
  }
  return cut;
}

inline Region random_region(const Picture& picture, std::mt19937& random) {
  const int top = below(random, picture.height), left = below(random, picture.width);
  return {top, left, 1 + below(random, picture.height - top),
          1 + below(random, picture.width - left)};
}

// Of any layout, size, code, quality and restart interval.
inline Picture random_picture(std::mt19937& random) {
  Picture picture;
  const int most = below(random, 3) == 0 ? 20 : 100;
  picture.width = 1 + below(random, most);
  picture.height = 1 + below(random, most);
  picture.layout = kLayouts[below(random, static_cast<int>(std::size(kLayouts)))];
  constexpr int kQualities[] = {1, 30, 75, 90, 98, 100};
  picture.quality = kQualities[below(random, 6)];
  picture.wide_quantizers = below(random, 2) == 0;
  constexpr int kIntervals[] = {0, 0, 0, 1, 2, 7, 65535};
  picture.restart_interval = kIntervals[below(random, 7)];
  picture.optimized = below(random, 3) == 0;
  picture.odd = !picture.optimized && below(random, 2) == 0;
  picture.contrast = below(random, 8) == 0 ? 256 : 1 + below(random, 120);
  return picture;
}

}  // namespace cutwater::image
