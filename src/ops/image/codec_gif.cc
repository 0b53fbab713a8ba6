// SPDX-License-Identifier: Apache-2.0
// GIF: the blocks up to the first frame, then LZW codes to rows.
#include "ops/image/codec_gif.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ops/image/codec_common.h"

namespace cutwater::image {
namespace {

constexpr std::size_t kMaxCodeBits = 12, kTableSize = 1 << kMaxCodeBits;

struct GifFrame {
  std::int64_t width = 0, height = 0;  // of the image, enlarged where the frame exceeds it
  Region place;                        // of the frame in it
  bool interlaced = false;
  std::size_t code_bits = 0;
  std::size_t data_at = 0;
  std::size_t background = 0;  // pixel value around the frame
  Palette palette = Palette::gray(256);
};

// Reads forward; whatever is asked for beyond the end refuses the file.
class GifParser {
 public:
  explicit GifParser(Bytes file) : file_(file) {}

  GifFrame parse() {
    const Bytes screen = take(13);
    frame_.width = le16(screen, 6);
    frame_.height = le16(screen, 8);
    if (has_palette(screen[10])) set_palette(screen[10]);
    while (true) {
      switch (take(1)[0]) {
        case ';': refuse("GIF has no image");
        case '!': read_extension(); break;
        case ',': read_frame(); return frame_;
        default:  // junk between blocks
          break;
      }
    }
  }

 private:
  Bytes take(std::size_t size) {
    if (size > file_.size() - at_) refuse("GIF data end before the first image");
    at_ += size;
    return file_.subspan(at_ - size, size);
  }

  // A block of an extension; empty at its end.
  Bytes take_block() { return take(take(1)[0]); }

  // Pillow looks for the end of an extension (other than a comment) from its second block on, even
  // where the first was the end already.
  void read_extension() {
    constexpr std::uint8_t kGraphicControl = 0xF9, kComment = 0xFE, kApplication = 0xFF;
    const std::uint8_t kind = take(1)[0];
    Bytes block = take_block();
    if (kind == kGraphicControl && !block.empty()) {
      const bool transparent = (block[0] & 1) != 0;
      if (block.size() < (transparent ? 4U : 3U)) refuse("GIF graphic control is cut short");
      if (transparent) frame_.background = block[3];
    }
    if (kind == kApplication && starts_with(block, "NETSCAPE2.0")) take_block();
    if (kind != kComment) block = take_block();
    while (!block.empty()) block = take_block();
  }

  void read_frame() {
    const Bytes data = take(9);
    frame_.place = {le16(data, 2), le16(data, 0), le16(data, 6), le16(data, 4)};
    frame_.width = std::max(frame_.width, frame_.place.left + frame_.place.width);
    frame_.height = std::max(frame_.height, frame_.place.top + frame_.place.height);
    frame_.interlaced = (data[8] & 0x40) != 0;
    if (has_palette(data[8])) set_palette(data[8]);
    frame_.code_bits = take(1)[0];
    frame_.data_at = at_;
  }

  static bool has_palette(std::uint8_t flags) { return (flags & 0x80) != 0; }

  void set_palette(std::uint8_t flags) {
    const std::size_t colors = std::size_t{2} << (flags & 7);
    const Bytes data = take(3 * colors);
    bool is_gray = true;
    Palette palette;
    for (std::size_t i = 0; i < colors; ++i) {
      const Bytes rgb = data.subspan(3 * i, 3);
      is_gray = is_gray && std::ranges::all_of(rgb, [i](std::uint8_t c) { return c == i; });
      palette.set(i, rgb[0], rgb[1], rgb[2]);
    }
    // Pillow drops a palette whose colours are their own indices, also for values beyond its end.
    frame_.palette = is_gray ? Palette::gray(256) : palette;
  }

  Bytes file_;
  std::size_t at_ = 0;
  GifFrame frame_;
};

// The codes in the data blocks. Pillow gives its decoder the file in pieces of 64 KiB and only
// begins a block that is there in full.
class CodeReader {
 public:
  CodeReader(Bytes file, std::size_t at) : file_(file), at_(at), seen_(at) { widen(); }

  std::size_t next(std::size_t bits) {
    while (bit_count_ < bits) {
      if (block_left_ == 0) {
        while (at_ == seen_ || at_ + 1 + file_[at_] > seen_) widen();
        block_left_ = file_[at_++];
        continue;
      }
      buffer_ |= std::size_t{file_[at_++]} << bit_count_;
      bit_count_ += 8;
      --block_left_;
    }
    const std::size_t code = buffer_ & ((std::size_t{1} << bits) - 1);
    buffer_ >>= bits;
    bit_count_ -= bits;
    return code;
  }

  // The end code came before the frame was full: Pillow goes on with the next piece, if any.
  void widen() {
    constexpr std::size_t kBlock = 65536;
    if (seen_ == file_.size()) refuse("GIF image data end early");
    seen_ = std::min(file_.size(), seen_ + kBlock);
  }

 private:
  Bytes file_;
  std::size_t at_, seen_;
  std::size_t block_left_ = 0;
  std::size_t buffer_ = 0, bit_count_ = 0;
};

// Collects pixel values to rows, in the order of an interlaced frame if it is one.
class RowSink {
 public:
  RowSink(const GifFrame& frame, const PatchWriter& writer)
      : place_(frame.place),
        interlaced_(frame.interlaced),
        writer_(writer),
        row_(static_cast<std::size_t>(frame.place.width)),
        step_(frame.interlaced ? 8 : 1) {}

  // False when the frame is full.
  bool add(std::uint8_t value) {
    row_[x_++] = value;
    if (x_ < row_.size()) return true;
    x_ = 0;
    writer_.write(row_.data(), place_.top + y_, place_.left, place_.width);
    y_ += step_;
    while (y_ >= place_.height) {
      if (!interlaced_ || pass_ == 3) return false;
      ++pass_;
      y_ = 8 >> pass_;
      step_ = pass_ == 1 ? 8 : 16 >> pass_;
    }
    return true;
  }

 private:
  const Region place_;
  const bool interlaced_;
  const PatchWriter& writer_;
  std::vector<std::uint8_t> row_;
  std::size_t x_ = 0;
  std::int64_t y_ = 0, step_;
  int pass_ = 0;
};

class LzwDecoder {
 public:
  LzwDecoder(std::size_t code_bits, CodeReader codes) : codes_(codes), root_bits_(code_bits) {
    clear_ = std::size_t{1} << code_bits;
    reset();
  }

  void decode(RowSink& sink) {
    while (true) {
      const std::size_t code = codes_.next(bits_);
      if (code == clear_) {
        reset();
      } else if (code == clear_ + 1) {
        codes_.widen();
      } else if (!emit(code, sink)) {
        return;
      }
    }
  }

 private:
  void reset() {
    next_ = clear_ + 2;
    bits_ = root_bits_ + 1;
    last_code_.reset();
  }

  // Writes what the code stands for and learns the next one. False when the frame is full.
  bool emit(std::size_t code, RowSink& sink) {
    if (!last_code_) {
      if (code > clear_) broken(code);
      last_code_ = code;
      last_value_ = static_cast<std::uint8_t>(code);
      return sink.add(last_value_);
    }
    if (code > next_) broken(code);
    std::array<std::uint8_t, kTableSize> string;  // filled from its end
    std::size_t begin = string.size();
    const auto prepend = [&](std::uint8_t value) {
      if (begin == 0) broken(code);
      string[--begin] = value;
    };
    std::size_t rest = code;
    if (code == next_) {
      prepend(last_value_);
      rest = *last_code_;
    }
    while (rest >= clear_) {
      if (rest >= kTableSize) broken(code);
      prepend(values_[rest]);
      rest = links_[rest];
    }
    last_value_ = static_cast<std::uint8_t>(rest);
    learn();
    last_code_ = code;
    if (!sink.add(last_value_)) return false;
    for (std::size_t i = begin; i < string.size(); ++i) {
      if (!sink.add(string[i])) return false;
    }
    return true;
  }

  void learn() {
    if (next_ >= kTableSize) return;
    values_[next_] = last_value_;
    links_[next_] = static_cast<std::uint16_t>(*last_code_);
    if (next_ == (std::size_t{1} << bits_) - 1 && bits_ < kMaxCodeBits) ++bits_;
    ++next_;
  }

  [[noreturn]] void broken(std::size_t code) const {
    refuse("GIF image data are damaged: code " + std::to_string(code) + ", the table has " +
           std::to_string(next_));
  }

  CodeReader codes_;
  std::size_t root_bits_, clear_ = 0, next_ = 0, bits_ = 0;
  std::optional<std::size_t> last_code_;  // since the table was cleared
  std::uint8_t last_value_ = 0;           // the first value of what it stands for
  std::array<std::uint8_t, kTableSize> values_{};
  std::array<std::uint16_t, kTableSize> links_{};
};

}  // namespace

Header read_gif_header(Bytes file, const Limits& limits) {
  const GifFrame frame = GifParser(file).parse();
  check_size(Format::kGif, frame.width, frame.height, limits);
  return {.format = Format::kGif,
          .height = frame.height,
          .width = frame.width,
          .exif_orientation = 1,
          .scratch_bytes = frame.place.width + 64};
}

void decode_gif(Bytes file, const TensorSpan& out) {
  const GifFrame frame = GifParser(file).parse();
  if (frame.place.width == 0 || frame.place.height == 0) refuse("GIF has an empty first frame");
  if (frame.code_bits > kMaxCodeBits) {
    refuse("GIF has codes of " + std::to_string(frame.code_bits) + " bits, above 12");
  }
  const PixelLayout layout{PixelLayout::Kind::kIndexed, 8, {}};
  const PatchWriter writer(out, layout, frame.palette);
  writer.fill(frame.background);
  RowSink sink(frame, writer);
  LzwDecoder(frame.code_bits, CodeReader(file, frame.data_at)).decode(sink);
}

}  // namespace cutwater::image
