// SPDX-License-Identifier: Apache-2.0
// What the codecs share: refusing a file, reading numbers out of it, and writing pixels into the
// part of the image that is asked for. Private to src/ops/image/codec*.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "cutwater/error.h"
#include "ops/image/codec.h"

namespace cutwater::image {

[[noreturn]] inline void refuse(std::string reason) {
  throw Error(Code::kBadSample, std::move(reason));
}

// Refuses sizes that are empty or above limits.max_pixels. Call it before memory is asked for.
void check_size(Format format, std::int64_t width, std::int64_t height, const Limits& limits);

// The orientation (1..8) that EXIF data state, with or without the leading "Exif\0\0"; 1 where they
// are damaged or state none.
int exif_orientation(Bytes exif);

inline bool starts_with(Bytes data, std::string_view prefix) {
  return data.size() >= prefix.size() &&
         std::memcmp(data.data(), prefix.data(), prefix.size()) == 0;
}

// Numbers at data[at]. REQUIRES: they lie within data.
inline std::uint32_t le16(Bytes data, std::size_t at) {
  return data[at] | std::uint32_t{data[at + 1]} << 8;
}
inline std::uint32_t le32(Bytes data, std::size_t at) {
  return le16(data, at) | le16(data, at + 2) << 16;
}
inline std::uint32_t be16(Bytes data, std::size_t at) {
  return data[at + 1] | std::uint32_t{data[at]} << 8;
}
inline std::uint32_t be32(Bytes data, std::size_t at) {
  return be16(data, at + 2) | be16(data, at) << 16;
}

// The colours that pixel values stand for. What a file's own palette leaves out is black.
class Palette {
 public:
  // Values 0..levels-1 spread evenly from black to white. REQUIRES: levels >= 2.
  static Palette gray(int levels);

  void set(std::size_t value, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    colors_[value] = {r, g, b};
  }
  void put(std::size_t value, std::uint8_t* out) const {
    std::memcpy(out, colors_[value].data(), 3);
  }

 private:
  std::array<std::array<std::uint8_t, 3>, 256> colors_{};
};

// How a row of pixels lies in memory. The one place that turns file pixels into RGB.
struct PixelLayout {
  enum class Kind : std::uint8_t {
    kIndexed,  // `bits` (1, 2, 4, 8) per pixel, most significant first, each a value of a palette
    kBytes,    // `bits` (a multiple of 8) per pixel, red, green, blue at these bytes of it
    kGray16,   // big-endian; all above 255 is white, as Pillow has it
    k555,      // little-endian 16 bits, blue lowest
    k565,
  };
  Kind kind = Kind::kBytes;
  std::int64_t bits = 24;
  std::array<std::uint8_t, 3> rgb_at{0, 1, 2};

  std::int64_t row_bytes(std::int64_t width) const { return (width * bits + 7) / 8; }
};

// Writes RGB of pixels [first, first + count) of `row`, each `out_step` bytes after the one before.
void unpack(const PixelLayout& layout, const Palette& palette, const std::uint8_t* row,
            std::int64_t first, std::int64_t count, std::uint8_t* out, std::int64_t out_step = 3);

// A rectangle of rows placed at (left, top) of the image is written where out.present() has it.
class PatchWriter {
 public:
  PatchWriter(const TensorSpan& out, const PixelLayout& layout, const Palette& palette)
      : out_(out), layout_(layout), palette_(palette) {}

  // Sets all that is present to one colour, that of pixel value 0 unless given.
  void fill(std::size_t value = 0) const;
  // `row` holds `width` pixels, the first at column `left` of image row `y`.
  void write(const std::uint8_t* row, std::int64_t y, std::int64_t left, std::int64_t width) const;
  // As above for every `step`th column: an interlaced row.
  void write_sparse(const std::uint8_t* row, std::int64_t y, std::int64_t left, std::int64_t step,
                    std::int64_t count) const;

 private:
  const TensorSpan& out_;
  const PixelLayout& layout_;
  const Palette& palette_;
};

}  // namespace cutwater::image
