// SPDX-License-Identifier: Apache-2.0
// The markers of a JPEG file up to its first scan: size, sampling, EXIF orientation. No libjpeg
// object is made, so this costs about a microsecond.
#include <algorithm>
#include <string>

#include "ops/image/codec_common.h"
#include "ops/image/codec_jpeg.h"

namespace cutwater::image {
namespace {

constexpr std::uint8_t kDht = 0xC4, kJpg = 0xC8, kDac = 0xCC, kRst0 = 0xD0, kEoi = 0xD9,
                       kSos = 0xDA, kDqt = 0xDB, kDhp = 0xDE, kApp0 = 0xE0, kApp1 = 0xE1,
                       kApp2 = 0xE2, kApp13 = 0xED, kApp14 = 0xEE, kJpg0 = 0xF0, kJpg13 = 0xFD;

bool stands_alone(std::uint8_t marker) {
  return marker == kJpg || (marker >= kRst0 && marker <= kEoi) ||
         (marker >= kJpg0 && marker <= kJpg13);
}

bool starts_frame(std::uint8_t marker) {
  return marker == kDhp ||
         (marker >= 0xC0 && marker <= 0xCF && marker != kDht && marker != kJpg && marker != kDac);
}

std::string hex(std::uint8_t byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {kDigits[byte >> 4], kDigits[byte & 15]};
}

// Pillow fails on these; libjpeg would not look at them.
void check_application_data(std::uint8_t marker, Bytes data) {
  const bool jfif = marker == kApp0 && starts_with(data, "JFIF");
  const bool adobe = marker == kApp14 && starts_with(data, "Adobe");
  if ((jfif || adobe) && data.size() < 7) {
    refuse("JPEG marker FF" + hex(marker) + " is " + std::to_string(data.size()) +
           " bytes long, too short for what it claims to be");
  }
  constexpr std::string_view kPhotoshop("Photoshop 3.0\0", 14);
  if (marker != kApp13 || !starts_with(data, kPhotoshop)) return;
  std::size_t at = kPhotoshop.size();
  while (at <= data.size() && starts_with(data.subspan(at), "8BIM")) {
    at += 4;
    if (at + 2 > data.size()) return;
    at += 2;
    if (at == data.size()) refuse("JPEG Photoshop data end inside a resource");
    at += 1 + std::size_t{data[at]};
    at += at & 1;
    if (at + 4 > data.size()) return;
    at += 4 + std::size_t{be32(data, at)};
    at += at & 1;
  }
}

void read_frame(std::uint8_t marker, Bytes data, JpegFrame& frame) {
  if (data.size() < 6 || data.size() % 3 != 0) {
    refuse("JPEG frame header is " + std::to_string(data.size()) + " bytes long");
  }
  if (data[0] != 8) {
    refuse("JPEG has " + std::to_string(data[0]) + " bits per sample; only 8 are supported");
  }
  const int components = data[5];
  if (components != 1 && components != 3 && components != 4) {
    refuse("JPEG has " + std::to_string(components) + " components; only 1, 3 and 4 are supported");
  }
  frame.height = be16(data, 1);
  frame.width = be16(data, 3);
  frame.components = components;
  frame.progressive = marker == 0xC2 || marker == 0xC6 || marker == 0xCA || marker == 0xCE;
  for (std::size_t i = 0; i < frame.sampling.size() && 6 + 3 * i < data.size(); ++i) {
    const std::uint8_t factors = data[7 + 3 * i];
    frame.sampling[i] = {factors >> 4, factors & 15};
  }
}

void check_quantization(Bytes data) {
  while (!data.empty()) {
    const std::size_t size = data[0] < 16 ? 65 : 129;
    if (data.size() < size) refuse("JPEG quantization table is cut short");
    data = data.subspan(size);
  }
}

// The first chunk, in byte order, of an ICC profile must be long enough to hold its number.
class IccCheck {
 public:
  void add(Bytes data) {
    if (!starts_with(data, std::string_view("ICC_PROFILE\0", 12))) return;
    if (first_.empty() || std::ranges::lexicographical_compare(data, first_)) first_ = data;
  }
  void at_frame() {
    if (!first_.empty() && first_.size() < 14) refuse("JPEG colour profile chunk is cut short");
    first_ = {};
  }

 private:
  Bytes first_;
};

// Upper bounds of what libjpeg-turbo allocates, from its own formulas.
std::int64_t scratch_bytes(const JpegFrame& frame) {
  constexpr std::int64_t kTables = 256 << 10;  // Huffman, range and colour tables, pool slack
  std::int64_t max_h = 1, max_v = 1;
  for (int i = 0; i < frame.components; ++i) {
    max_h = std::max(max_h, frame.sampling[static_cast<std::size_t>(i)].h);
    max_v = std::max(max_v, frame.sampling[static_cast<std::size_t>(i)].v);
  }
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t mcus_across = up(frame.width, 8 * max_h);
  const std::int64_t mcus_down = up(frame.height, 8 * max_v);
  // Ten row groups per component for the upsampler's context, one more after it, two rows of ours.
  std::int64_t bytes = kTables + mcus_across * 8 * max_h * frame.components * (max_v * 12 + 2);
  // Our own decoder keeps the planes of the region and the coefficients of a row of MCUs.
  if (frame.single_scan())
    return bytes + frame.components * (mcus_across * 8 * max_h + 128) *
                       (mcus_down * 8 * max_v + 2 * 80 * max_v);
  bytes += frame.width * frame.height * 3;  // the pixels, before their rows are read
  for (int i = 0; i < frame.components; ++i) {
    const JpegFrame::Component& c = frame.sampling[static_cast<std::size_t>(i)];
    bytes += mcus_across * c.h * mcus_down * c.v * 64 * 2;
  }
  return bytes;
}

}  // namespace

JpegFrame read_jpeg_frame(Bytes file) {
  JpegFrame frame;
  IccCheck icc;
  bool exif_seen = false;
  std::size_t at = 2;  // after FF D8
  while (at + 1 < file.size()) {
    const std::uint8_t marker = file[at + 1];
    if (file[at] != 0xFF || marker == 0xFF) {  // junk or padding
      ++at;
      continue;
    }
    if (marker == 0 || stands_alone(marker)) {
      at += 2;
      continue;
    }
    if (marker < 0xC0) refuse("JPEG has the unknown marker FF" + hex(marker) + " in its header");
    if (at + 4 > file.size()) break;
    const std::size_t stated = be16(file, at + 2);
    const std::size_t size = stated < 2 ? 0 : stated - 2;
    at += 4;
    if (size > file.size() - at) break;
    const Bytes data = file.subspan(at, size);
    at += size;

    if (starts_frame(marker)) {
      read_frame(marker, data, frame);
      icc.at_frame();
    } else if (marker == kDqt) {
      check_quantization(data);
    } else if (marker == kApp1 && !exif_seen &&
               starts_with(data, std::string_view("Exif\0\0", 6))) {
      frame.exif_orientation = exif_orientation(data);
      exif_seen = true;
    } else if (marker == kApp2) {
      icc.add(data);
    } else if (marker == kSos) {
      if (frame.components == 0) refuse("JPEG scan begins before any frame header");
      frame.scan_components = data.empty() ? 0 : data[0];
      frame.scan_at = at;
      return frame;
    } else {
      check_application_data(marker, data);
    }
  }
  refuse("JPEG data end in the header, before any image data");
}

Header read_jpeg_header(Bytes file, const Limits& limits) {
  const JpegFrame frame = read_jpeg_frame(file);
  check_size(Format::kJpeg, frame.width, frame.height, limits);
  return {.format = Format::kJpeg,
          .height = frame.height,
          .width = frame.width,
          .exif_orientation = frame.exif_orientation,
          .scratch_bytes = scratch_bytes(frame)};
}

}  // namespace cutwater::image
