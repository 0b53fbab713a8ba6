// SPDX-License-Identifier: Apache-2.0
// Tells image formats apart by their first bytes and hands them to their codec; names what it
// cannot read.
#include "ops/image/codec.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "ops/image/codec_bmp.h"
#include "ops/image/codec_common.h"
#include "ops/image/codec_gif.h"
#include "ops/image/codec_jpeg.h"
#include "ops/image/codec_png.h"
#include "ops/image/codec_webp.h"

namespace cutwater::image {
namespace {

using std::string_view_literals::operator""sv;

std::optional<Format> format_of(Bytes file) {
  if (starts_with(file, "\xFF\xD8\xFF"sv)) return Format::kJpeg;
  if (starts_with(file, "\x89PNG\r\n\x1A\n"sv)) return Format::kPng;
  if (starts_with(file, "GIF87a"sv) || starts_with(file, "GIF89a"sv)) return Format::kGif;
  if (starts_with(file, "BM"sv)) return Format::kBmp;
  if (starts_with(file, "RIFF"sv) && file.size() >= 16 &&
      starts_with(file.subspan(8), "WEBPVP8"sv)) {
    return Format::kWebp;
  }
  return std::nullopt;
}

// What else turns up in data sets: images that we do not read, and things that are no images.
struct Foreign {
  std::size_t at;
  std::string_view bytes, name;
};
constexpr std::array kForeign = {
    Foreign{0, "II*\0"sv, "TIFF"},
    Foreign{0, "MM\0*"sv, "TIFF"},
    Foreign{0, "II+\0"sv, "TIFF"},
    Foreign{0, "MM\0+"sv, "TIFF"},
    Foreign{4, "ftypavif"sv, "AVIF"},
    Foreign{4, "ftypavis"sv, "AVIF"},
    Foreign{4, "ftyphei"sv, "HEIC"},
    Foreign{4, "ftyphev"sv, "HEIC"},
    Foreign{4, "ftypmif1"sv, "HEIF"},
    Foreign{4, "ftypmsf1"sv, "HEIF"},
    Foreign{4, "ftyp"sv, "MP4 video"},
    Foreign{0, "\0\0\0\x0CjP  "sv, "JPEG 2000"},
    Foreign{0, "\xFF\x4F\xFF\x51"sv, "JPEG 2000"},
    Foreign{0, "\0\0\0\x0CJXL "sv, "JPEG XL"},
    Foreign{0, "\xFF\x0A"sv, "JPEG XL"},
    Foreign{0, "P1"sv, "PBM"},
    Foreign{0, "P2"sv, "PGM"},
    Foreign{0, "P3"sv, "PPM"},
    Foreign{0, "P4"sv, "PBM"},
    Foreign{0, "P5"sv, "PGM"},
    Foreign{0, "P6"sv, "PPM"},
    Foreign{0, "P7"sv, "PAM"},
    Foreign{0, "\0\0\1\0"sv, "ICO"},
    Foreign{0, "\0\0\2\0"sv, "CUR"},
    Foreign{0, "8BPS"sv, "PSD"},
    Foreign{0, "qoif"sv, "QOI"},
    Foreign{0, "DDS "sv, "DDS"},
    Foreign{0, "\x76\x2F\x31\x01"sv, "OpenEXR"},
    Foreign{0, "#?"sv, "Radiance HDR"},
    Foreign{0, "%PDF"sv, "PDF"},
    Foreign{0, "%!PS"sv, "PostScript"},
    Foreign{0, "<svg"sv, "SVG"},
    Foreign{0, "<?xml"sv, "XML or SVG"},
    Foreign{0, "<!DOCTYPE"sv, "HTML"},
    Foreign{0, "<!doctype"sv, "HTML"},
    Foreign{0, "<html"sv, "HTML"},
    Foreign{0, "\x1F\x8B"sv, "gzip"},
    Foreign{0, "PK\3\4"sv, "ZIP"},
};

[[noreturn]] void refuse_unknown(Bytes file) {
  if (file.empty()) refuse("the file is empty");
  for (const Foreign& foreign : kForeign) {
    if (file.size() >= foreign.at && starts_with(file.subspan(foreign.at), foreign.bytes)) {
      refuse(std::string(foreign.name) + " is not supported; convert to PNG or JPEG");
    }
  }
  constexpr std::size_t kShown = 8;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const std::uint8_t byte : file.first(std::min(kShown, file.size()))) {
    if (!hex.empty()) hex += ' ';
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  refuse("not a JPEG, PNG, WebP, BMP or GIF image; the " + std::to_string(file.size()) +
         " bytes begin with " + hex);
}

}  // namespace

std::string_view name_of(Format format) {
  switch (format) {
    case Format::kJpeg: return "JPEG";
    case Format::kPng: return "PNG";
    case Format::kWebp: return "WebP";
    case Format::kBmp: return "BMP";
    case Format::kGif: return "GIF";
  }
  return "?";
}

Header read_header(Bytes file, const Limits& limits) {
  if (static_cast<std::int64_t>(file.size()) > limits.max_bytes) {
    refuse("the file has " + std::to_string(file.size()) + " bytes, above the limit of " +
           std::to_string(limits.max_bytes) + "; raise max_bytes if it is trusted");
  }
  const std::optional<Format> format = format_of(file);
  if (!format) refuse_unknown(file);
  switch (*format) {
    case Format::kJpeg: return read_jpeg_header(file, limits);
    case Format::kPng: return read_png_header(file, limits);
    case Format::kWebp: return read_webp_header(file, limits);
    case Format::kBmp: return read_bmp_header(file, limits);
    case Format::kGif: return read_gif_header(file, limits);
  }
  throw Error(Code::kInternal, "unknown image format");
}

void decode_rgb(Bytes file, const Header& header, const Limits& limits, const TensorSpan& out) {
  switch (header.format) {
    case Format::kJpeg: return decode_jpeg(file, header, limits, out);
    case Format::kPng: return decode_png(file, header, out);
    case Format::kWebp: return decode_webp(file, header, out);
    case Format::kBmp: return decode_bmp(file, out);
    case Format::kGif: return decode_gif(file, out);
  }
}

}  // namespace cutwater::image
