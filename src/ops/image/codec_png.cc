// SPDX-License-Identifier: Apache-2.0
// PNG rows: inflate, undo the filter, write what is asked for.
#include "ops/image/codec_png.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ops/image/codec_png_chunks.h"

namespace cutwater::image {
namespace {

// One pass of an interlaced image (Adam7): which pixels it has.
struct Pass {
  std::int64_t left, top, step_x, step_y;
};
constexpr std::array<Pass, 7> kAdam7 = {{{0, 0, 8, 8},
                                         {4, 0, 8, 8},
                                         {0, 4, 4, 8},
                                         {2, 0, 4, 4},
                                         {0, 2, 2, 4},
                                         {1, 0, 2, 2},
                                         {0, 1, 1, 2}}};
constexpr std::array<Pass, 1> kNoInterlace = {{{0, 0, 1, 1}}};

std::uint8_t paeth(int left, int up, int up_left) {
  const int by_left = std::abs(up - up_left), by_up = std::abs(left - up_left);
  const int by_up_left = std::abs(left + up - 2 * up_left);
  if (by_left <= by_up && by_left <= by_up_left) return static_cast<std::uint8_t>(left);
  return static_cast<std::uint8_t>(by_up <= by_up_left ? up : up_left);
}

// Undoes the filter of a row of `size` bytes, given the row above. `pixel` is the distance to the
// pixel on the left in bytes, at least 1.
void unfilter(int filter, std::uint8_t* row, const std::uint8_t* above, std::size_t size,
              std::size_t pixel) {
  const auto add = [row](std::size_t i, int value) {
    row[i] = static_cast<std::uint8_t>(row[i] + value);
  };
  const std::size_t edge = std::min(pixel, size);
  switch (filter) {
    case 0: return;
    case 1:
      for (std::size_t i = edge; i < size; ++i) add(i, row[i - pixel]);
      return;
    case 2:
      for (std::size_t i = 0; i < size; ++i) add(i, above[i]);
      return;
    case 3:
      for (std::size_t i = 0; i < edge; ++i) add(i, above[i] / 2);
      for (std::size_t i = edge; i < size; ++i) add(i, (row[i - pixel] + above[i]) / 2);
      return;
    case 4:
      for (std::size_t i = 0; i < edge; ++i) add(i, above[i]);
      for (std::size_t i = edge; i < size; ++i) {
        add(i, paeth(row[i - pixel], above[i], above[i - pixel]));
      }
      return;
    default: refuse("PNG is damaged: unknown row filter " + std::to_string(filter));
  }
}

// Fills rows with inflated bytes, pulling data as needed.
class Inflater {
 public:
  explicit Inflater(PngChunks& chunks) : chunks_(chunks) {
    if (inflateInit(&stream_) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Returns whether more rows may follow: not when the stream ends with this row. Bytes are asked
  // for row by row because the checksum at the end of the stream is only looked at, as in Pillow,
  // where it comes within the data at hand.
  bool read(std::uint8_t* row, std::size_t size) {
    stream_.next_out = row;
    stream_.avail_out = static_cast<uInt>(size);
    while (true) {
      if (stream_.avail_in == 0 || ended_) {
        const Bytes data = chunks_.next_data();
        stream_.next_in = const_cast<Bytef*>(data.data());
        stream_.avail_in = static_cast<uInt>(data.size());
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status < 0 || status == Z_NEED_DICT) {
        refuse(std::string("PNG image data are damaged: ") +
               (stream_.msg != nullptr ? stream_.msg : zError(status)));
      }
      ended_ = status == Z_STREAM_END;
      if (stream_.avail_out == 0) return !ended_;
    }
  }

 private:
  PngChunks& chunks_;
  z_stream stream_{};
  bool ended_ = false;
};

void decode_rows(PngChunks& chunks, const PatchWriter& writer) {
  const Region& frame = chunks.frame();
  const PixelLayout& layout = chunks.layout();
  const auto pixel = static_cast<std::size_t>((layout.bits + 7) / 8);
  const auto row_size = static_cast<std::size_t>(layout.row_bytes(frame.width)) + 1;
  std::vector<std::uint8_t> row(row_size), above(row_size);  // the first byte names the filter
  Inflater inflater(chunks);
  const std::span<const Pass> passes =
      chunks.interlaced() ? std::span<const Pass>(kAdam7) : std::span<const Pass>(kNoInterlace);
  for (const Pass& pass : passes) {
    const std::int64_t width = (frame.width - pass.left + pass.step_x - 1) / pass.step_x;
    if (width <= 0) continue;
    const auto size = static_cast<std::size_t>(layout.row_bytes(width));
    std::fill(above.begin(), above.end(), std::uint8_t{0});
    for (std::int64_t y = pass.top; y < frame.height; y += pass.step_y) {
      const bool more = inflater.read(row.data(), size + 1);
      unfilter(row[0], row.data() + 1, above.data() + 1, size, pixel);
      if (chunks.interlaced()) {  // a frame's place is not looked at, as in Pillow
        writer.write_sparse(row.data() + 1, y, pass.left, pass.step_x, width);
      } else {
        writer.write(row.data() + 1, frame.top + y, frame.left, width);
      }
      if (!more) return;  // the rest stays black
      std::swap(row, above);
    }
  }
}

// The first eXIf chunk, before or after the image data.
int find_orientation(Bytes file) {
  std::size_t at = 8;
  while (file.size() - at >= 8) {
    const std::size_t size = be32(file, at);
    const Bytes rest = file.subspan(at + 8);
    if (starts_with(file.subspan(at + 4), "IEND") || size > rest.size()) break;
    if (starts_with(file.subspan(at + 4), "eXIf")) return exif_orientation(rest.first(size));
    at = std::min(file.size(), at + 12 + size);
  }
  return 1;
}

}  // namespace

Header read_png_header(Bytes file, const Limits& limits) {
  constexpr std::int64_t kInflate = 128 << 10;  // zlib's window and tables, text buffer
  constexpr std::int64_t kMaxPixelBytes = 8;
  constexpr std::size_t kSizeEnd = 8 + 8 + 8;
  std::int64_t width = 0, height = 0;
  if (file.size() >= kSizeEnd && starts_with(file.subspan(12), "IHDR")) {
    width = be32(file, 16);
    height = be32(file, 20);
  } else {
    const PngChunks chunks(file);
    width = chunks.width();
    height = chunks.height();
  }
  check_size(Format::kPng, width, height, limits);
  return {.format = Format::kPng,
          .height = height,
          .width = width,
          .exif_orientation = find_orientation(file),
          .scratch_bytes = kInflate + 2 * (width * kMaxPixelBytes + 1)};
}

void decode_png(Bytes file, const Header& header, const TensorSpan& out) {
  PngChunks chunks(file);
  if (chunks.width() != header.width || chunks.height() != header.height) {
    refuse("PNG has headers that contradict each other");
  }
  const Region& frame = chunks.frame();
  if (frame.width == 0 || frame.height == 0) refuse("PNG animation has an empty first frame");
  const Palette palette = chunks.palette();
  const PatchWriter writer(out, chunks.layout(), palette);
  writer.fill();
  decode_rows(chunks, writer);
  chunks.finish();
}

}  // namespace cutwater::image
