// SPDX-License-Identifier: Apache-2.0
// Some MCUs of a JPEG between two files: entropy-decoded just as far as another Huffman code needs,
// which leaves every coefficient what it is.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ops/image/jpeg_geometry.h"
#include "ops/image/jpeg_planes.h"

namespace cutwater::image {

// The symbols of a baseline scan in order, with the bits that follow each, and how often each
// occurs. A thread keeps one and uses it again.
class JpegSymbols {
 public:
  // Codes of the first component, and of the others: two tables for DC, two for AC. A symbol is
  // known by its table and its value.
  static constexpr std::size_t kTables = 4, kTableValues = 256;
  static std::size_t dc_table(std::size_t component) { return component == 0 ? 0 : 1; }
  static std::size_t ac_table(std::size_t component) { return component == 0 ? 2 : 3; }
  // What pictures of 8 bits can have, and the bits of a symbol say.
  static constexpr unsigned kLargestDc = 11, kLargestAc = 10;

  struct Symbol {
    std::uint32_t word;
    std::size_t code() const { return word & (kTables * kTableValues - 1); }
    std::uint32_t bits() const { return word >> kCodeBits; }
  };

  void clear();
  void give_up_large();  // what a huge image took is not kept for ever

  std::span<const Symbol> all() const { return {symbols_.data(), used_}; }
  std::span<const std::uint32_t, kTableValues> counts(std::size_t table) const {
    return std::span(counts_).subspan(table * kTableValues).first<kTableValues>();
  }

  // Room for so many blocks. False: there are too many symbols to be held.
  [[nodiscard]] bool make_room(std::size_t blocks) {
    return used_ + blocks * 64 <= symbols_.size() || grow(blocks);
  }

  // A block's DC coefficient. False: too far from the one before it. REQUIRES: room.
  [[nodiscard]] bool put_dc(std::size_t component, int value) {
    const int difference = value - last_dc_[component];
    last_dc_[component] = value;
    const unsigned size = size_of_number(difference);
    put(dc_table(component), size, number_bits(difference, size));
    return size <= kLargestDc;
  }
  // A symbol of AC codes, run and size, and as many bits. REQUIRES: room.
  void put_ac(std::size_t component, unsigned symbol, std::uint32_t bits) {
    put(ac_table(component), symbol, bits);
  }
  // All AC coefficients of a block in natural order. False: one is too large. REQUIRES: room.
  [[nodiscard]] bool put_block_ac(std::size_t component, const std::int16_t* block);

 private:
  static constexpr unsigned kCodeBits = 10;
  static_assert(kTables * kTableValues == 1 << kCodeBits);

  static unsigned size_of_number(int value) {
    return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(std::abs(value))));
  }
  // As JPEG writes it: negative numbers are in the lower half.
  static std::uint32_t number_bits(int value, unsigned size) {
    return static_cast<std::uint32_t>(value >= 0 ? value : value + (1 << size) - 1);
  }

  void put(std::size_t table, unsigned value, std::uint32_t bits) {
    const auto code = static_cast<std::uint32_t>(table * kTableValues + value);
    ++counts_[code];
    symbols_[used_++] = {bits << kCodeBits | code};
  }
  bool grow(std::size_t blocks);

  std::vector<Symbol> symbols_;
  std::size_t used_ = 0;
  std::array<std::uint32_t, kTables * kTableValues> counts_{};
  std::array<int, 3> last_dc_{};
};

// Some MCUs of an image.
struct JpegPart {
  JpegGeometry image;
  std::array<Quantizer, 3> quantizers{};
  McuWindow mcus;
  JpegSymbols symbols;
};

// Appends a baseline JPEG of just this part, with the shortest codes that Huffman has for it.
// False: it would be `limit` bytes or more, and what was appended means nothing.
bool write_baseline(const JpegPart& part, std::size_t limit, std::vector<std::uint8_t>& out);

}  // namespace cutwater::image
