// SPDX-License-Identifier: Apache-2.0
// See codec_png_chunks.h. Chunks that do not matter for pixels are read as well: Pillow refuses
// files for their errors, and text that inflates hugely is an attack.
#include "ops/image/codec_png_chunks.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>
#include <string>

namespace cutwater::image {
namespace {

constexpr std::size_t kMaxText = 1 << 20;  // one inflated chunk; Pillow's MAX_TEXT_CHUNK
constexpr std::size_t kMaxAllText = 64 * kMaxText;
constexpr int kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6;

bool is_name(Bytes bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  });
}

std::size_t find_zero(Bytes data) {
  return static_cast<std::size_t>(std::ranges::find(data, 0) - data.begin());
}

// UTF-8 characters that begin in `data`.
std::size_t characters(Bytes data) {
  return static_cast<std::size_t>(
      std::ranges::count_if(data, [](std::uint8_t c) { return (c & 0xC0) != 0x80; }));
}

struct Inflated {
  std::size_t bytes = 0, characters = 0;
  bool valid = false;
};

// Inflates text only to see how much it is. Refuses more than kMaxText; broken data are not valid.
Inflated inflate_text(Bytes data) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw std::bad_alloc();
  stream.next_in = const_cast<Bytef*>(data.data());
  stream.avail_in = static_cast<uInt>(data.size());
  Inflated result;
  std::array<std::uint8_t, 16384> buffer;
  int status = Z_OK;
  while (status == Z_OK && result.bytes < kMaxText) {
    stream.next_out = buffer.data();
    stream.avail_out = static_cast<uInt>(std::min(buffer.size(), kMaxText - result.bytes));
    const std::size_t room = stream.avail_out;
    status = inflate(&stream, Z_SYNC_FLUSH);
    const std::size_t got = room - stream.avail_out;
    result.bytes += got;
    result.characters += characters(Bytes(buffer.data(), got));
    if (stream.avail_out != 0 && stream.avail_in == 0) break;
  }
  const bool more = status != Z_STREAM_END && stream.avail_in > 0;
  inflateEnd(&stream);
  result.valid = status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END;
  if (result.valid && more) {
    refuse("PNG text chunk inflates to more than " + std::to_string(kMaxText) + " bytes");
  }
  return result;
}

void require(Bytes data, std::size_t size, std::string_view name) {
  if (data.size() < size) {
    refuse("PNG " + std::string(name) + " chunk is " + std::to_string(data.size()) +
           " bytes long, less than " + std::to_string(size));
  }
}

}  // namespace

PngChunks::PngChunks(Bytes file) : file_(file) {
  while (true) {
    const std::optional<Chunk> chunk = next_chunk();
    if (!chunk) refuse("PNG is damaged: no chunk begins at byte " + std::to_string(at_));
    if (chunk->name == "IEND") refuse("PNG has no image data");
    if (chunk->name == "IDAT" && has_format()) {
      begin_data(chunk->size);
      return;
    }
    if (chunk->name == "fdAT") {
      if (!has_format()) refuse("PNG image data come before the header");
      take_sequence_number(*chunk);
      begin_data(chunk->size - 4);
      return;
    }
    const Bytes data = take(chunk->size);
    handle(*chunk, data);
    check_crc(*chunk, data);
  }
}

Palette PngChunks::palette() const {
  if (gray_levels_ > 0) return Palette::gray(gray_levels_);
  Palette palette;
  if (color_ != kPalette) return palette;
  if (!palette_) {
    if (single_transparent_) refuse("PNG has a transparent colour but no palette");
    return palette;
  }
  const std::size_t colors = palette_->size() / 3;
  if (colors > 256) refuse("PNG palette has " + std::to_string(colors) + " colours, above 256");
  for (std::size_t i = 0; i < colors; ++i) {
    palette.set(i, (*palette_)[3 * i], (*palette_)[3 * i + 1], (*palette_)[3 * i + 2]);
  }
  return palette;
}

Bytes PngChunks::next_data() {
  constexpr std::size_t kBlock = 65536;  // Pillow's
  while (data_left_ == 0) {
    at_ = std::min(file_.size(), at_ + 4);  // a checksum that nobody checks
    const std::optional<Chunk> chunk = next_chunk();
    if (!chunk || (chunk->name != "IDAT" && chunk->name != "DDAT" && chunk->name != "fdAT")) {
      refuse("PNG image data end early, at byte " + std::to_string(at_));
    }
    data_left_ = chunk->size;
    if (chunk->name == "fdAT") {
      take_sequence_number(*chunk);
      data_left_ -= 4;
    }
  }
  const std::size_t size = std::min({data_left_, kBlock, file_.size() - at_});
  if (size == 0) refuse("PNG image data end early: the file is cut short");
  data_left_ -= size;
  return take(size);
}

void PngChunks::finish() {
  at_ = std::min(file_.size(), at_ + data_left_);
  while (true) {
    at_ = std::min(file_.size(), at_ + 4);
    const std::optional<Chunk> chunk = next_chunk();
    if (!chunk || chunk->name == "IEND") return;
    if (chunk->name == "fcTL" && is_animated()) return;
    if (chunk->name == "fdAT") {
      take_sequence_number(*chunk);
      take(chunk->size - 4);
    } else {
      handle(*chunk, take(chunk->size));
    }
  }
}

std::optional<PngChunks::Chunk> PngChunks::next_chunk() {
  if (file_.size() - at_ < 8 || !is_name(file_.subspan(at_ + 4, 4))) return std::nullopt;
  const Chunk chunk{{reinterpret_cast<const char*>(file_.data()) + at_ + 4, 4}, be32(file_, at_)};
  at_ += 8;
  return chunk;
}

Bytes PngChunks::take(std::size_t size) {
  if (size > file_.size() - at_) {
    refuse("PNG is cut short: a chunk at byte " + std::to_string(at_) + " states " +
           std::to_string(size) + " bytes, " + std::to_string(file_.size() - at_) + " are left");
  }
  at_ += size;
  return file_.subspan(at_ - size, size);
}

bool PngChunks::is_animated() const { return frames_ + (default_image_ ? 1 : 0) > 1; }

void PngChunks::begin_data(std::size_t size) {
  data_left_ = size;
  if (has_frame_) return;
  default_image_ = frames_ > 0;
  frame_ = {0, 0, height_, width_};
}

void PngChunks::take_sequence_number(const Chunk& chunk) {
  if (chunk.size < 4) refuse("PNG fdAT chunk is cut short");
  const std::int64_t number = be32(take(4), 0);
  if (!last_ || *last_ != number - 1) refuse("PNG animation frames are out of sequence");
  last_ = number;
}

void PngChunks::check_crc(const Chunk& chunk, Bytes data) {
  const uLong start = crc32(0, reinterpret_cast<const Bytef*>(chunk.name.data()), 4);
  const uLong crc = crc32_z(start, data.data(), data.size());
  if (be32(take(4), 0) != crc) {
    refuse("PNG is damaged: wrong checksum of the " + std::string(chunk.name) + " chunk");
  }
}

void PngChunks::handle(const Chunk& chunk, Bytes data) {
  const std::string_view name = chunk.name;
  if (name == "IHDR") return read_ihdr(data);
  if (name == "PLTE") {
    if (color_ == kPalette) palette_ = data;
  } else if (name == "tRNS") {
    read_trns(data);
  } else if (name == "iCCP") {
    read_profile(data);
  } else if (name == "tEXt") {
    read_text(data);
  } else if (name == "zTXt") {
    read_compressed_text(data);
  } else if (name == "iTXt") {
    read_international_text(data);
  } else if (name == "acTL") {
    read_animation(data);
  } else if (name == "fcTL") {
    read_frame(data);
  } else if (name == "gAMA") {
    require(data, 4, name);
  } else if (name == "cHRM") {
    require(data, 32, name);
  } else if (name == "sRGB") {
    require(data, 1, name);
  } else if (name == "pHYs") {
    require(data, 9, name);
  }
}

void PngChunks::read_ihdr(Bytes data) {
  require(data, 13, "IHDR");
  width_ = be32(data, 0);
  height_ = be32(data, 4);
  if (data[12] != 0) interlaced_ = true;
  if (data[11] != 0) refuse("PNG has the unknown filter method " + std::to_string(data[11]));
  const int depth = data[8], color = data[9];
  const bool any_depth = depth == 1 || depth == 2 || depth == 4 || depth == 8;
  const bool deep = depth == 8 || depth == 16;
  using Kind = PixelLayout::Kind;
  if (color == kGray && depth == 16) {
    layout_ = {Kind::kGray16, 16, {}};
  } else if ((color == kGray || color == kPalette) && any_depth) {
    layout_ = {Kind::kIndexed, depth, {}};
  } else if ((color == kRgb || color == kGrayAlpha || color == kRgba) && deep) {
    const int channels = color == kRgb ? 3 : color == kRgba ? 4 : 2;
    const auto next = static_cast<std::uint8_t>(color == kGrayAlpha ? 0 : depth / 8);
    layout_ = {Kind::kBytes, channels * depth, {0, next, static_cast<std::uint8_t>(2 * next)}};
  } else {
    return;  // refused for want of a format, unless another header follows
  }
  color_ = color;
  gray_levels_ = color == kGray && any_depth ? 1 << depth : 0;
}

void PngChunks::read_trns(Bytes data) {
  if (color_ == kGray) require(data, 2, "tRNS");
  if (color_ == kRgb) require(data, 6, "tRNS");
  const auto opaque = std::ranges::count(data, 0xFF), transparent = std::ranges::count(data, 0);
  single_transparent_ =
      transparent == 1 && opaque + transparent == static_cast<std::ptrdiff_t>(data.size());
}

void PngChunks::read_profile(Bytes data) {
  const std::size_t name = find_zero(data);
  const std::size_t method = name == data.size() ? 0 : name + 1;
  if (method >= data.size()) refuse("PNG iCCP chunk is cut short");
  if (data[method] != 0) refuse("PNG iCCP chunk has an unknown compression method");
  inflate_text(data.subspan(method + 1));
}

void PngChunks::read_text(Bytes data) {
  const std::size_t key = find_zero(data);
  if (key > 0 && key < data.size()) count_text(data.size() - key - 1);
}

void PngChunks::read_compressed_text(Bytes data) {
  const std::size_t key = find_zero(data);
  if (key + 1 >= data.size()) return;
  if (data[key + 1] != 0) refuse("PNG zTXt chunk has an unknown compression method");
  const Inflated text = inflate_text(data.subspan(key + 2));
  if (key > 0 && text.valid) count_text(text.bytes);
}

void PngChunks::read_international_text(Bytes data) {
  const std::size_t key = find_zero(data);
  if (key + 3 > data.size()) return;
  const bool compressed = data[key + 1] != 0;
  const std::uint8_t method = data[key + 2];
  Bytes rest = data.subspan(key + 3);
  for (int i = 0; i < 2; ++i) {  // language, translated keyword
    const std::size_t end = find_zero(rest);
    if (end == rest.size()) return;
    rest = rest.subspan(end + 1);
  }
  if (!compressed) {
    count_text(characters(rest));
  } else if (method == 0) {
    const Inflated text = inflate_text(rest);
    if (text.valid) count_text(text.characters);
  }
}

void PngChunks::read_animation(Bytes data) {
  require(data, 8, "acTL");
  const std::int64_t frames = be32(data, 0);
  if (frames_ > 0) {  // a second one: not an animation after all
    frames_ = 0;
  } else if (frames <= 0x80000000) {
    frames_ = frames;
  }
}

void PngChunks::read_frame(Bytes data) {
  require(data, 26, "fcTL");
  const std::int64_t number = be32(data, 0);
  if (number != (last_ ? *last_ + 1 : 0)) refuse("PNG animation frames are out of sequence");
  last_ = number;
  frame_ = {be32(data, 16), be32(data, 12), be32(data, 8), be32(data, 4)};
  has_frame_ = true;
  if (!Region{0, 0, height_, width_}.contains(frame_)) {
    refuse("PNG animation has a frame outside the image");
  }
}

void PngChunks::count_text(std::size_t characters) {
  text_memory_ += characters;
  if (text_memory_ > kMaxAllText) {
    refuse("PNG text chunks inflate to more than " + std::to_string(kMaxAllText) + " bytes");
  }
}

}  // namespace cutwater::image
