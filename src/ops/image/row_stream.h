// SPDX-License-Identifier: Apache-2.0
// An image on its way, row by row, its channels apart: what a decoder gives, what resizing takes
// and gives, and what is written into a batch. No whole image exists in between.
#pragma once

#include <array>
#include <cstdint>

namespace cutwater::image {

// One row: plane[c][x] is channel c of pixel x. The planes of a gray image may be one and the same.
// kRowSlack bytes behind the last pixel of a plane may be read (their values mean nothing).
struct PlanarRow {
  std::array<const std::uint8_t*, 3> plane{};
};
inline constexpr std::int64_t kRowSlack = 64;

// Gives the rows of one region of an image, from top to bottom, each once.
class RowReader {
 public:
  virtual ~RowReader() = default;
  // The next row; valid until the next call. May throw Error.
  virtual PlanarRow next() = 0;
};

// Takes the rows of one region of an image, from top to bottom, each once.
class RowWriter {
 public:
  virtual ~RowWriter() = default;
  virtual void put(const PlanarRow& row) = 0;
};

}  // namespace cutwater::image
