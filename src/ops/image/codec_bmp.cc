// SPDX-License-Identifier: Apache-2.0
// BMP: headers of Windows and OS/2, uncompressed rows, masks, RLE4 and RLE8, as far as Pillow reads
// them.
#include "ops/image/codec_bmp.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ops/image/codec_common.h"

namespace cutwater::image {
namespace {

using Kind = PixelLayout::Kind;

constexpr std::size_t kFileHeader = 14;
constexpr std::uint32_t kRaw = 0, kRle8 = 1, kRle4 = 2, kMasks = 3;

struct BmpImage {
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t compression = kRaw;
  PixelLayout layout;
  Palette palette;
  std::int64_t stride = 0;  // bytes from row to row in the file
  std::size_t data_at = 0;

  bool is_rle() const { return compression == kRle8 || compression == kRle4; }
};

class BmpParser {
 public:
  explicit BmpParser(Bytes file) : file_(file) {}

  BmpImage parse() {
    std::size_t data_at = le32(take(kFileHeader), 10);
    const std::size_t size = le32(take(4), 0);
    const std::size_t colors_stated = read_info(size);
    const std::size_t colors =
        colors_stated != 0 ? colors_stated : std::size_t{1} << std::min(bits_, 63U);
    set_layout();
    if (data_at == kFileHeader + size && bits_ <= 8) data_at += entry_size_ * colors;
    if (bits_ <= 8) read_palette(colors);
    image_.stride = ((image_.width * bits_ + 31) >> 3) & ~std::int64_t{3};
    image_.data_at = data_at != 0 ? data_at : at_;
    return image_;
  }

 private:
  Bytes take(std::size_t size) {
    if (size > file_.size() - at_) refuse("BMP data end in the header");
    at_ += size;
    return file_.subspan(at_ - size, size);
  }

  // Reads the header that states the size; returns the number of colours it states.
  std::size_t read_info(std::size_t size) {
    constexpr std::array<std::size_t, 6> kWindows = {40, 52, 56, 64, 108, 124};
    if (size == 12) {
      const Bytes info = take(size - 4);
      image_.width = le16(info, 0);
      image_.height = le16(info, 2);
      bits_ = le16(info, 6);
      entry_size_ = 3;
      return 0;
    }
    if (std::ranges::find(kWindows, size) == kWindows.end()) {
      refuse("BMP header of " + std::to_string(size) + " bytes is not supported");
    }
    const Bytes info = take(size - 4);
    image_.width = le32(info, 0);
    image_.top_down = info[7] == 0xFF;
    image_.height = le32(info, 4);
    if (image_.top_down) image_.height = (std::int64_t{1} << 32) - image_.height;
    bits_ = le16(info, 10);
    image_.compression = le32(info, 12);
    if (image_.compression == kMasks) {
      const Bytes masks = size >= 52 ? info.subspan(36) : take(12);
      for (std::size_t i = 0; i < (size >= 56 ? 4U : 3U); ++i) masks_[i] = le32(masks, 4 * i);
    }
    return le32(info, 28);
  }

  void set_layout() {
    switch (bits_) {
      case 1:
      case 4:
      case 8: image_.layout = {Kind::kIndexed, bits_, {}}; break;
      case 16: image_.layout = {Kind::k555, 16, {}}; break;
      case 24:
      case 32: image_.layout = {Kind::kBytes, bits_, {2, 1, 0}}; break;
      default: refuse("BMP of " + std::to_string(bits_) + " bits per pixel is not supported");
    }
    if (image_.compression > kMasks) {
      refuse("BMP compression " + std::to_string(image_.compression) + " is not supported");
    }
    if (image_.compression == kMasks) set_masks();
    if (image_.is_rle() && bits_ > 8) {
      refuse("BMP has run-length compression with " + std::to_string(bits_) + " bits per pixel");
    }
  }

  void set_masks() {
    struct Known {
      std::uint32_t bits;
      std::array<std::uint32_t, 4> masks;
      PixelLayout layout;
    };
    static constexpr std::array<Known, 11> kKnown = {{
        {32, {0xFF0000, 0xFF00, 0xFF, 0}, {Kind::kBytes, 32, {2, 1, 0}}},
        {32, {0xFF000000, 0xFF0000, 0xFF00, 0}, {Kind::kBytes, 32, {3, 2, 1}}},
        {32, {0xFF000000, 0xFF00, 0xFF, 0}, {Kind::kBytes, 32, {3, 1, 0}}},
        {32, {0xFF000000, 0xFF0000, 0xFF00, 0xFF}, {Kind::kBytes, 32, {3, 2, 1}}},
        {32, {0xFF, 0xFF00, 0xFF0000, 0xFF000000}, {Kind::kBytes, 32, {0, 1, 2}}},
        {32, {0xFF0000, 0xFF00, 0xFF, 0xFF000000}, {Kind::kBytes, 32, {2, 1, 0}}},
        {32, {0xFF000000, 0xFF00, 0xFF, 0xFF0000}, {Kind::kBytes, 32, {3, 1, 0}}},
        {32, {0, 0, 0, 0}, {Kind::kBytes, 32, {2, 1, 0}}},
        {24, {0xFF0000, 0xFF00, 0xFF, 0}, {Kind::kBytes, 24, {2, 1, 0}}},
        {16, {0xF800, 0x7E0, 0x1F, 0}, {Kind::k565, 16, {}}},
        {16, {0x7C00, 0x3E0, 0x1F, 0}, {Kind::k555, 16, {}}},
    }};
    if (bits_ != 32) masks_[3] = 0;  // only looked at where there is room for alpha
    for (const Known& known : kKnown) {
      if (known.bits == bits_ && known.masks == masks_) {
        image_.layout = known.layout;
        return;
      }
    }
    refuse("BMP has colour masks that are not supported");
  }

  void read_palette(std::size_t colors) {
    if (colors > 65536) {
      refuse("BMP palette of " + std::to_string(colors) + " colours is not supported");
    }
    const Bytes data = take(std::min(entry_size_ * colors, file_.size() - at_));
    // A palette that is just the gray scale is dropped, and the pixels are then read as gray of one
    // bit (up to two colours) or eight, whatever the header says. Odd, but that is what Pillow
    // does.
    bool is_gray = true;
    for (std::size_t i = 0; i < colors; ++i) {
      const auto gray = static_cast<std::uint8_t>(colors == 2 && i == 1 ? 255 : i);
      const Bytes entry = data.subspan(std::min(i * entry_size_, data.size()));
      is_gray =
          is_gray && entry.size() >= 3 && entry[0] == gray && entry[1] == gray && entry[2] == gray;
    }
    if (is_gray && colors <= 2) {
      image_.layout.bits = 1;
      image_.palette = Palette::gray(2);
      for (std::size_t i = 2; i < 256; ++i) image_.palette.set(i, 255, 255, 255);
    } else if (is_gray) {
      image_.layout.bits = 8;
      image_.palette = Palette::gray(256);
    } else {
      const std::size_t entries = data.size() / entry_size_;
      if (entries > 256) {
        refuse("BMP palette has " + std::to_string(entries) + " colours, above 256");
      }
      for (std::size_t i = 0; i < entries; ++i) {
        const Bytes bgr = data.subspan(i * entry_size_, 3);
        image_.palette.set(i, bgr[2], bgr[1], bgr[0]);
      }
    }
  }

  Bytes file_;
  std::size_t at_ = 0;
  BmpImage image_;
  std::uint32_t bits_ = 0;
  std::size_t entry_size_ = 4;  // of the palette
  std::array<std::uint32_t, 4> masks_{};
};

// The pixel values of a run-length compressed image, one byte each. All rows must be there.
class RleReader {
 public:
  RleReader(Bytes file, const BmpImage& image)
      : file_(file),
        rle4_(image.compression == kRle4),
        at_(std::min(image.data_at, file.size())),
        width_(static_cast<std::size_t>(image.width)),
        total_(width_ * static_cast<std::size_t>(image.height)) {}

  std::vector<std::uint8_t> read() {
    while (values_.size() < total_ && at_ + 2 <= file_.size()) {
      const std::uint8_t count = file_[at_], value = file_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        add_run(count, value);
      } else if (value == 0) {  // end of the line
        add_zeros((width_ - values_.size() % width_) % width_);
        x_ = 0;
      } else if (value == 1) {  // end of the image
        break;
      } else if (value == 2) {  // move
        if (at_ + 2 > file_.size()) break;
        add_zeros(std::min(total_ - values_.size(), file_[at_] + file_[at_ + 1] * width_));
        at_ += 2;
        x_ = values_.size() % width_;
      } else if (!add_literals(value)) {
        break;
      }
    }
    if (values_.size() < total_) {
      refuse("BMP image data end early: row " + std::to_string(values_.size() / width_) + " of " +
             std::to_string(total_ / width_));
    }
    return std::move(values_);
  }

 private:
  void add_zeros(std::size_t count) { values_.resize(values_.size() + count); }

  void add_run(std::size_t count, std::uint8_t value) {
    count = std::min(count, width_ - std::min(x_, width_));  // what exceeds the row is dropped
    for (std::size_t i = 0; i < count; ++i) {
      values_.push_back(static_cast<std::uint8_t>(!rle4_       ? value
                                                  : i % 2 == 0 ? value >> 4
                                                               : value & 15));
    }
    x_ += count;
  }

  // False when the image is complete or the file ends.
  bool add_literals(std::size_t stated) {
    const std::size_t count = std::min(total_ - values_.size(), stated);
    const std::size_t wanted = rle4_ ? (count + 1) / 2 : count;
    const std::size_t size = std::min(wanted, file_.size() - at_);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint8_t byte = file_[at_ + i];
      values_.push_back(rle4_ ? static_cast<std::uint8_t>(byte >> 4) : byte);
      if (rle4_ && 2 * i + 1 < count) values_.push_back(byte & 15);
    }
    at_ += size;
    if (size < wanted || values_.size() == total_) return false;
    x_ += stated;
    at_ = std::min(file_.size(), at_ + at_ % 2);
    return true;
  }

  Bytes file_;
  const bool rle4_;
  std::size_t at_;
  const std::size_t width_, total_;
  std::size_t x_ = 0;
  std::vector<std::uint8_t> values_;
};

void write_rows(const BmpImage& image, const std::uint8_t* rows, std::int64_t stride,
                const PatchWriter& writer) {
  for (std::int64_t i = 0; i < image.height; ++i) {
    writer.write(rows + i * stride, image.top_down ? i : image.height - 1 - i, 0, image.width);
  }
}

}  // namespace

Header read_bmp_header(Bytes file, const Limits& limits) {
  const BmpImage image = BmpParser(file).parse();
  check_size(Format::kBmp, image.width, image.height, limits);
  // A vector that grows may hold twice what it needs, and once more while it grows.
  return {.format = Format::kBmp,
          .height = image.height,
          .width = image.width,
          .exif_orientation = 1,
          .scratch_bytes = image.is_rle() ? image.width * image.height * 3 + 1024 : 0};
}

void decode_bmp(Bytes file, const TensorSpan& out) {
  BmpImage image = BmpParser(file).parse();
  if (image.is_rle()) {
    const std::vector<std::uint8_t> values = RleReader(file, image).read();
    image.layout.bits = 8;
    write_rows(image, values.data(), image.width, PatchWriter(out, image.layout, image.palette));
    return;
  }
  const std::int64_t row_bytes = image.layout.row_bytes(image.width);
  if (row_bytes > image.stride) refuse("BMP rows of gray are too short for 8 bits per pixel");
  const std::int64_t needed = image.stride * (image.height - 1) + row_bytes;
  const auto size = static_cast<std::int64_t>(file.size() - std::min(image.data_at, file.size()));
  if (size < needed) {
    refuse("BMP image data end early: " + std::to_string(size) + " of " + std::to_string(needed) +
           " bytes are there");
  }
  write_rows(image, file.data() + image.data_at, image.stride,
             PatchWriter(out, image.layout, image.palette));
}

}  // namespace cutwater::image
