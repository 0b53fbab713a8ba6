// SPDX-License-Identifier: Apache-2.0
// The chunks of a PNG file, read and refused as Pillow does. Private to codec_png.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/image/codec_common.h"

namespace cutwater::image {

class PngChunks {
 public:
  // Reads up to the first image data.
  explicit PngChunks(Bytes file);

  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  bool interlaced() const { return interlaced_; }
  // Where the image data belong: all of the image, or the frame that an animation puts first.
  const Region& frame() const { return frame_; }
  const PixelLayout& layout() const { return layout_; }
  Palette palette() const;

  // The next piece of the image data. Refuses the file when there is none.
  Bytes next_data();
  // After the pixels are complete: reads what follows the image data, which may refuse the file.
  void finish();

 private:
  struct Chunk {
    std::string_view name;
    std::size_t size = 0;  // as stated; the file may end before
  };

  std::optional<Chunk> next_chunk();  // nothing where no chunk can begin
  Bytes take(std::size_t size);       // refuses when the file ends before
  bool has_format() const { return color_ >= 0; }
  bool is_animated() const;
  void begin_data(std::size_t size);
  void take_sequence_number(const Chunk& chunk);

  void check_crc(const Chunk& chunk, Bytes data);
  void handle(const Chunk& chunk, Bytes data);
  void read_ihdr(Bytes data);
  void read_trns(Bytes data);
  void read_profile(Bytes data);
  void read_text(Bytes data);
  void read_compressed_text(Bytes data);
  void read_international_text(Bytes data);
  void read_animation(Bytes data);
  void read_frame(Bytes data);
  void count_text(std::size_t characters);

  Bytes file_;
  std::size_t at_ = 8;
  std::size_t data_left_ = 0;  // of the data chunk at hand

  std::int64_t width_ = 0, height_ = 0;
  int color_ = -1;  // IHDR's colour type; -1 until a supported IHDR was seen
  PixelLayout layout_;
  int gray_levels_ = 0;  // of a gray image of at most 8 bits; otherwise 0
  bool interlaced_ = false;
  std::optional<Bytes> palette_;
  bool single_transparent_ = false;
  Region frame_;
  bool has_frame_ = false;
  bool default_image_ = false;
  std::int64_t frames_ = 0;           // as acTL says; 0 where it is not an animation
  std::optional<std::int64_t> last_;  // sequence number of the animation
  std::size_t text_memory_ = 0;
};

}  // namespace cutwater::image
