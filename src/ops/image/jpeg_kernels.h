// SPDX-License-Identifier: Apache-2.0
// The arithmetic of JPEG decoding as SIMD, chosen at run time; to the bit that of libjpeg-turbo's
// own SIMD (slow integer DCT, fancy upsampling), out-of-range input included.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cutwater::image {

// Coefficients in memory: blocks stand in groups of four, and a group holds row 0 of its four
// blocks, then row 1 of them…: one vector, or half of one, is a row of neighbouring blocks.
inline constexpr std::int64_t kGroupBlocks = 4, kGroupValues = kGroupBlocks * 64;
inline std::int64_t groups_of(std::int64_t blocks) {
  return (blocks + kGroupBlocks - 1) / kGroupBlocks;
}
// Where block `x` of a row of groups begins; coefficient n (in natural order) is group_place(n) on.
inline std::int64_t block_place(std::int64_t x) {
  return x / kGroupBlocks * kGroupValues + x % kGroupBlocks * 8;
}
constexpr std::int64_t group_place(std::int64_t n) { return n / 8 * 8 * kGroupBlocks + n % 8; }

// Inverse DCT of `groups` groups to an 8-row strip of a plane. Writes all four blocks of the last
// group. kClear sets the coefficients to zero on the way.
enum class After : bool { kKeep, kClear };
void inverse_dct(std::int16_t* coefficients, const std::int16_t* quantizer, std::int64_t groups,
                 After after, std::uint8_t* out, std::int64_t row_bytes);

// Blocks as the coefficient form has them: per block a mask of the coefficients that are not zero
// (bit 0: their values take two bytes), its DC coefficient, and the values. Masks and DCs may be
// read for whole groups, values 64 bytes beyond the last one used. Returns where the values end.
const std::uint8_t* expand_blocks(const std::uint8_t* masks, const std::uint8_t* dcs,
                                  const std::uint8_t* values, std::int64_t blocks,
                                  std::int16_t* coefficients);
// Bytes of the values of so many blocks, by their masks.
std::size_t value_bytes(const std::uint8_t* masks, std::int64_t blocks);
// The way back: masks and DCs of so many blocks, and their values, of which kMostValueBytes are
// written beyond what is there before each block. Returns where the values end.
inline constexpr std::int64_t kMostValueBytes = 128;  // of a block
std::uint8_t* pack_blocks(const std::int16_t* coefficients, std::int64_t blocks,
                          std::uint8_t* masks, std::uint8_t* dcs, std::uint8_t* values);

// One row of YCbCr to red, green and blue. May write up to kVectorSlack bytes more than `count`.
inline constexpr std::int64_t kVectorSlack = 64;
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::int64_t count, std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue);

// Twice as wide: output pixels 2i and 2i + 1 are near to in[i]; in[-1] and in[count] are read. All
// three may read and write up to kVectorSlack bytes more.
void upsample_2x1(const std::uint8_t* in, std::int64_t count, std::uint8_t* out);
// Twice as wide and high: `far` is the row on the other side of the output row.
void upsample_2x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count,
                  std::uint8_t* out);
// Twice as high only: bias 1 for the upper of the two rows, 2 for the lower.
void upsample_1x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count, int bias,
                  std::uint8_t* out);

// Copies entropy-coded data up to the first marker, without the zero that is stuffed behind each
// FF. `out` has room for size + kVectorSlack bytes.
struct Unstuffed {
  std::size_t read;  // offset of the marker's FF, or the size
  std::size_t written;
};
Unstuffed unstuff(const std::uint8_t* data, std::size_t size, std::uint8_t* out);

}  // namespace cutwater::image
