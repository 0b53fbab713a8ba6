// SPDX-License-Identifier: Apache-2.0
#include "jpeg_reference.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs cstdio first.
#include <jpeglib.h>

namespace cutwater::fuzz {
namespace {

enum class Outcome { kWantsMore, kDone, kRefused };

// A decoder that is given one block after another. libjpeg's errors jump out of feed(), so nothing
// with a destructor lives there.
class Decoder {
 public:
  Decoder(const JpegClaims& claims, std::uint8_t* rows) : claims_(claims), rows_(rows) {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) { std::longjmp(of(info).jump_, 1); };
    errors_.output_message = [](j_common_ptr) {};
    jpeg_create_decompress(&info_);
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = [](j_decompress_ptr) {};
    source_.fill_input_buffer = [](j_decompress_ptr) -> boolean { return FALSE; };
    source_.skip_input_data = [](j_decompress_ptr info, long count) {
      of(reinterpret_cast<j_common_ptr>(info)).skip(count);
    };
    source_.resync_to_restart = jpeg_resync_to_restart;
    info_.src = &source_;
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Takes what it can of the bytes; unused() of them must come again, with more behind them.
  Outcome feed(const std::uint8_t* bytes, std::size_t count) {
    if (setjmp(jump_) != 0) return Outcome::kRefused;
    source_.next_input_byte = bytes;
    source_.bytes_in_buffer = count;
    if (to_skip_ > 0) skip(to_skip_);
    if (to_skip_ > 0) return Outcome::kWantsMore;

    if (stage_ == Stage::kHeader) {
      int status;
      do status = jpeg_read_header(&info_, FALSE);
      while (status == JPEG_HEADER_TABLES_ONLY);
      if (status == JPEG_SUSPENDED) return Outcome::kWantsMore;
      if (info_.image_width != claims_.width || info_.image_height != claims_.height ||
          info_.num_components != claims_.components)
        return Outcome::kRefused;
      info_.out_color_space = claims_.components == 1   ? JCS_GRAYSCALE
                              : claims_.components == 3 ? JCS_RGB
                                                        : JCS_CMYK;
      stage_ = Stage::kStart;
    }
    if (stage_ == Stage::kStart) {
      if (!jpeg_start_decompress(&info_)) return Outcome::kWantsMore;
      stage_ = Stage::kRows;
    }
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = rows_ + std::size_t{info_.output_scanline} * info_.output_width *
                                 static_cast<std::size_t>(info_.output_components);
      if (jpeg_read_scanlines(&info_, &row, 1) != 1) return Outcome::kWantsMore;
    }
    jpeg_finish_decompress(&info_);  // may want more, too: Pillow does not mind then
    return Outcome::kDone;
  }
  std::size_t unused() const { return source_.bytes_in_buffer; }

 private:
  enum class Stage { kHeader, kStart, kRows };

  static Decoder& of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

  void skip(long count) {
    const long here = std::min(count, static_cast<long>(source_.bytes_in_buffer));
    source_.next_input_byte += here;
    source_.bytes_in_buffer -= static_cast<std::size_t>(here);
    to_skip_ = count - here;
  }

  const JpegClaims claims_;
  std::uint8_t* const rows_;
  Stage stage_ = Stage::kHeader;
  long to_skip_ = 0;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  std::jmp_buf jump_{};
};

std::uint8_t to_byte(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

// a * b / 255, rounded as Pillow rounds.
int times_255th(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Of stored (inverted) CMYK, gray or RGB.
Pixels to_rgb(const Pixels& rows, std::size_t components) {
  Pixels rgb;
  rgb.reserve(rows.size() / components * 3);
  for (std::size_t at = 0; at < rows.size(); at += components) {
    for (std::size_t c = 0; c < 3; ++c) {
      if (components == 4) {
        const int ink = 255 - rows[at + c], paper = rows[at + 3];
        rgb.push_back(to_byte(paper - times_255th(ink, paper)));
      } else {
        rgb.push_back(rows[at + (components == 3 ? c : 0)]);
      }
    }
  }
  return rgb;
}

}  // namespace

std::optional<Pixels> decode_as_pillow(Input file, const JpegClaims& claims) {
  constexpr std::size_t kBlock = 65536;
  const auto components = static_cast<std::size_t>(claims.components);
  Pixels rows(static_cast<std::size_t>(claims.width * claims.height) * components);
  Decoder decoder(claims, rows.data());
  std::size_t begin = 0, end = 0;
  while (true) {
    if (end == file.size()) return std::nullopt;  // truncated
    end = std::min(file.size(), end + kBlock);
    const Outcome outcome = decoder.feed(file.data() + begin, end - begin);
    if (outcome == Outcome::kRefused) return std::nullopt;
    if (outcome == Outcome::kDone) return to_rgb(rows, components);
    begin = end - decoder.unused();
  }
}

}  // namespace cutwater::fuzz
