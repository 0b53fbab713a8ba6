// SPDX-License-Identifier: Apache-2.0
// Huffman codes of a baseline JPEG scan, as tables that decode two coefficients per look-up.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace cutwater::image {

// The bits of a scan without its stuffing, most significant first. Reading past the end gives
// zeros.
class BitReader {
 public:
  static constexpr std::size_t kPadding = 64;  // readable zero bytes that must follow the data

  // REQUIRES: kPadding zero bytes lie behind `data`.
  explicit BitReader(std::span<const std::uint8_t> data)
      : begin_(data.data()),
        next_(data.data()),
        last_(data.data() + data.size() + kPadding - sizeof(std::uint64_t)),
        end_bits_(static_cast<std::int64_t>(data.size()) * 8) {}

  // At least 56 bits can be looked at and taken until the next refill.
  void refill() {
    std::uint64_t word;
    std::memcpy(&word, next_, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    bits_ |= word >> count_;
    next_ += (63 - count_) >> 3;
    if (next_ > last_) next_ = last_;  // far beyond the end: overrun() says so
    count_ |= 56;
  }
  std::uint64_t peek(int n) const { return bits_ >> (64 - n); }  // REQUIRES: 1 <= n
  void take(int n) {
    bits_ <<= n;
    count_ -= n;
  }
  // Undoes the last take(n), partly or whole.
  void give_back(int n) {
    const std::int64_t at = position() - n;
    next_ = begin_ + at / 8;
    bits_ = 0;
    count_ = 0;
    refill();
    take(static_cast<int>(at % 8));
  }
  // More was taken than there is.
  bool overrun() const { return position() > end_bits_; }

 private:
  std::int64_t position() const { return (next_ - begin_) * 8 - count_; }  // bits taken so far

  std::uint64_t bits_ = 0;  // the next bits, from the top; valid: count_
  int count_ = 0;
  const std::uint8_t* begin_;
  const std::uint8_t* next_;
  const std::uint8_t* last_;
  std::int64_t end_bits_;
};

// A number of `size` bits as JPEG writes it: the upper half is positive, the lower half negative.
inline int extended(std::uint64_t bits, int size) {
  const int value = static_cast<int>(bits);
  return size > 0 && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

// One code table. What the tables below cannot hold is found bit by bit.
class HuffmanCodes {
 public:
  struct Symbol {
    std::uint8_t length = 0;  // of the code; 0: there is no such code
    std::uint8_t value = 0;
  };

  // counts[i]: codes of i + 1 bits; values in code order. False: not a code that JPEG allows.
  bool build(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> values);

  // The symbol at the front of the next 16 bits.
  Symbol find(std::uint64_t next16) const {
    const Symbol near = table_[next16 >> (16 - kTableBits)];
    return near.length != 0 ? near : find_long(next16);
  }

  static constexpr int kTableBits = 9;

 private:
  Symbol find_long(std::uint64_t next16) const;

  std::array<Symbol, 1 << kTableBits> table_{};
  std::array<std::int32_t, 18> first_code_{}, first_value_{}, code_count_{};  // per length
  std::array<std::uint8_t, 256> values_{};
};

// AC coefficients, two per look-up where their codes and bits fit.
class AcTable {
 public:
  static constexpr int kBits = 10;
  static constexpr int kEndOfBlock = 128;  // an advance beyond any coefficient

  struct Entry {
    std::uint8_t total_bits = 0;  // 0: decode one symbol the long way
    std::uint8_t first_bits = 0;
    std::uint8_t first_advance = 0;  // coefficients to go on, this one included
    std::uint8_t total_advance = 0;
    std::int16_t first_value = 0, second_value = 0;
  };

  bool build(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> values);

  const Entry& look_up(const BitReader& reader) const { return entries_[reader.peek(kBits)]; }
  const HuffmanCodes& codes() const { return codes_; }

  // How far a symbol (run and size) moves on.
  static int advance(std::uint8_t symbol) {
    const int run = symbol >> 4, size = symbol & 15;
    if (size == 0 && run != 15) return kEndOfBlock;
    return run + 1;
  }

 private:
  HuffmanCodes codes_;
  std::array<Entry, 1 << kBits> entries_{};
};

}  // namespace cutwater::image
