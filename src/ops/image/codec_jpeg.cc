// SPDX-License-Identifier: Apache-2.0
// JPEG pixels by libjpeg-turbo, for what our own decoder leaves to it (jpeg_baseline.h). Pillow
// feeds libjpeg in blocks and lets it suspend; whether a damaged file is refused depends on that,
// so the same is done here. A scan that is closed by the end marker is decoded only where its
// pixels are asked for.
#include "ops/image/codec_jpeg.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "ops/image/codec_common.h"
#include "ops/image/codec_jpeg_decompressor.h"

namespace cutwater::image {
namespace {

constexpr std::uint8_t kRst0 = 0xD0, kRst7 = 0xD7, kEoi = 0xD9, kSos = 0xDA;

// Steps over the data of a scan to its next marker that is neither stuffing nor a restart; calls
// on_restart for each restart marker. Returns the offset of the marker's code, or the size.
template <class OnRestart>
std::size_t skip_scan(Bytes file, std::size_t at, OnRestart on_restart) {
  while (at < file.size()) {
    const void* found = std::memchr(file.data() + at, 0xFF, file.size() - at);
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - file.data());
    while (at < file.size() && file[at] == 0xFF) ++at;
    if (at == file.size()) break;
    if (file[at] >= kRst0 && file[at] <= kRst7) {
      on_restart(file[at] - kRst0);
    } else if (file[at] != 0) {
      return at;
    }
    ++at;
  }
  return file.size();
}

// Whether the scan's data are closed by the end marker with nothing else within them. libjpeg then
// never runs out of data and never fails: a damaged code only warns. So such a file is accepted
// whatever part of it is decoded. Not so with fill bytes in the data: what libjpeg makes of those
// depends on where the blocks that it is fed begin.
bool closed_scan(Bytes file, std::size_t at, bool has_restarts) {
  int expected = 0;
  bool in_sequence = true;
  const std::size_t end = skip_scan(file, at, [&](int number) {
    in_sequence = in_sequence && has_restarts && number == expected;
    expected = (expected + 1) % 8;
  });
  if (!in_sequence || end == file.size() || file[end] != kEoi) return false;
  constexpr std::array<std::uint8_t, 2> kFill = {0xFF, 0xFF};
  const Bytes data = file.subspan(at, end - at);
  return std::search(data.begin(), data.end(), kFill.begin(), kFill.end()) == data.end();
}

// Adobe's inverted CMYK to RGB with Pillow's rounding. `in` and `out` may not overlap.
void cmyk_to_rgb(const std::uint8_t* in, std::int64_t count, std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i, in += 4, out += 3) {
    const int white = in[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - in[c]) * white + 128;
      out[c] = static_cast<std::uint8_t>(std::max(0, white - ((product >> 8) + product) / 256));
    }
  }
}

class JpegDecoder {
 public:
  JpegDecoder(Bytes file, const Header& header, const JpegFrame& frame, const TensorSpan& out)
      : file_(file), header_(header), frame_(frame), out_(out), jpeg_(file), info_(jpeg_.info()) {}

  void run() {
    jpeg_.call([&] { read_header(); });
    const bool closed = frame_.single_scan() && !info_.arith_code &&
                        closed_scan(file_, frame_.scan_at, info_.restart_interval != 0);
    jpeg_.call([&] { start(); });
    if (closed) jpeg_.widen_fully();
    const Region& region = out_.present();
    if (closed && region.width > 0) jpeg_.call([&] { crop(); });
    row_.resize(std::size_t{info_.output_width} *
                static_cast<std::size_t>(info_.output_components));
    jpeg_.call([&] { closed ? read_part() : read_all(); });
  }

 private:
  void read_header() {
    jpeg_.read_header();
    if (info_.image_width != header_.width || info_.image_height != header_.height ||
        info_.num_components != frame_.components) {
      refuse("JPEG has headers that contradict each other");
    }
  }

  // Of a file with several scans this reads all.
  void start() {
    info_.out_color_space = frame_.components == 4 ? JCS_CMYK : JCS_RGB;
    while (!jpeg_start_decompress(&info_)) {
      if (!jpeg_.widen()) refuse("JPEG data end early: the last scan is not complete");
    }
  }

  // Narrows decoding to the columns asked for. Upsampling looks at the neighbours of a pixel, and
  // libjpeg takes the edge of what it decodes for the edge of the image, hence the margin: wide
  // enough, too, that no component gets so narrow that libjpeg would repeat its samples instead.
  void crop() {
    const Region& region = out_.present();
    const std::int64_t margin = info_.max_h_samp_factor > 1 ? info_.max_h_samp_factor : 0;
    const std::int64_t left = std::max<std::int64_t>(0, region.left - margin);
    const std::int64_t right = std::min(header_.width, region.left + region.width + margin);
    if (left == 0 && right == header_.width) return;
    auto first = static_cast<JDIMENSION>(left);
    auto count = static_cast<JDIMENSION>(right - left);
    jpeg_crop_scanline(&info_, &first, &count);
    first_column_ = first;
  }

  void read_part() {
    const Region& region = out_.present();
    if (region.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(region.top));
    for (std::int64_t y = region.top; y < region.top + region.height; ++y) read_row(y);
  }

  void read_all() {
    for (std::int64_t y = 0; y < header_.height; ++y) read_row(y);
    // Errors in what follows the pixels refuse the file; its ending there does not.
    jpeg_finish_decompress(&info_);
  }

  void read_row(std::int64_t y) {
    const Region& region = out_.present();
    const bool wanted = y >= region.top && y < region.top + region.height;
    const bool direct = wanted && info_.output_components == 3 && first_column_ == region.left &&
                        info_.output_width == region.width;
    JSAMPROW row = direct ? out_.pixel(y, region.left) : row_.data();
    while (jpeg_read_scanlines(&info_, &row, 1) != 1) {
      if (!jpeg_.widen()) {
        refuse("JPEG data end early: row " + std::to_string(y) + " of " +
               std::to_string(header_.height));
      }
    }
    if (!wanted || direct) return;
    const std::uint8_t* pixels =
        row_.data() + (region.left - first_column_) * info_.output_components;
    if (info_.output_components == 4) {
      cmyk_to_rgb(pixels, region.width, out_.pixel(y, region.left));
    } else if (region.width > 0) {
      std::memcpy(out_.pixel(y, region.left), pixels, static_cast<std::size_t>(region.width) * 3);
    }
  }

  Bytes file_;
  const Header& header_;
  const JpegFrame& frame_;
  const TensorSpan& out_;
  Decompressor jpeg_;
  jpeg_decompress_struct& info_;
  std::int64_t first_column_ = 0;  // of what libjpeg puts out
  std::vector<std::uint8_t> row_;
};

}  // namespace

void check_scans(Bytes file, std::size_t at, std::int64_t limit) {
  std::int64_t scans = 1;
  while (scans <= limit) {
    at = skip_scan(file, at, [](int) {});
    if (at + 3 > file.size() || file[at] == kEoi) return;
    if (file[at] == kSos) ++scans;
    at += 1 + std::max<std::size_t>(2, be16(file, at + 1));
  }
  refuse("JPEG has more than " + std::to_string(limit) +
         " scans; raise max_scans if the file is trusted");
}

void decode_jpeg(Bytes file, const Header& header, const Limits& limits, const TensorSpan& out) {
  const JpegFrame frame = read_jpeg_frame(file);
  if (!frame.single_scan()) check_scans(file, frame.scan_at, limits.max_scans);
  JpegDecoder(file, header, frame, out).run();
}

}  // namespace cutwater::image
