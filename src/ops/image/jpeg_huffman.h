// SPDX-License-Identifier: Apache-2.0
// Huffman codes of a baseline JPEG scan, as tables that decode two coefficients per look-up.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace cutwater::image {

// The bits of a scan without its stuffing, most significant first.
class BitReader {
 public:
  // Readable zero bytes that must follow the data: more than one MCU can take.
  static constexpr std::size_t kPadding = 4096;

  BitReader() = default;
  // REQUIRES: kPadding zero bytes lie behind the data; what is read of them is less than that.
  BitReader(const std::uint8_t* data, std::int64_t at_bit) : begin_(data) { seek(at_bit); }

  // At least 56 bits can be looked at and taken until the next refill.
  void refill() {
    std::uint64_t word;
    std::memcpy(&word, next_, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    bits_ |= word >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  // The next bits, from the top.
  std::uint64_t bits() const { return bits_; }
  void take(unsigned n) {  // only the lowest six bits of n count
    bits_ <<= n & 63;
    count_ -= static_cast<int>(n & 63);
  }
  std::int64_t position() const { return (next_ - begin_) * 8 - count_; }  // bits taken so far
  void seek(std::int64_t at_bit) {
    next_ = begin_ + at_bit / 8;
    bits_ = 0;
    count_ = 0;
    refill();
    take(static_cast<unsigned>(at_bit % 8));
  }

 private:
  std::uint64_t bits_ = 0;
  int count_ = 0;  // of the bits that are valid
  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* next_ = nullptr;
};

// The number in the top `size` bits as JPEG writes it: the upper half is positive, the lower half
// negative. Without a branch: which half it is, is anyone's guess.
inline int extended(std::uint64_t bits, unsigned size) {
  const auto value = static_cast<std::uint32_t>((bits >> 1) >> (63 - size));
  const auto lower = static_cast<std::uint32_t>(~(static_cast<std::int64_t>(bits) >> 63));
  return static_cast<int>(value + (((lower << size) + 1) & lower));
}
// The other way round: how many bits a number takes, and those bits.
inline unsigned size_of_number(int value) {
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(std::abs(value))));
}
inline std::uint32_t number_bits(int value, unsigned size) {
  return static_cast<std::uint32_t>(value >= 0 ? value : value + (1 << size) - 1);
}

// One code table. What its look-up table cannot hold is found length by length.
class HuffmanCodes {
 public:
  struct Symbol {
    std::uint8_t length = 0;  // of the code; 0: there is no such code
    std::uint8_t value = 0;
  };

  // counts[i]: codes of i + 1 bits; values in code order. False: not a code that JPEG allows.
  bool build(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> values);

  // The symbol at the top of the bits.
  Symbol find(std::uint64_t bits) const {
    const Symbol near = table_[bits >> (64 - kTableBits)];
    return near.length != 0 ? near : find_long(bits);
  }

  static constexpr int kTableBits = 9;

  // Calls visit(first, symbol) for each code of at most `bits` bits, in order: those `bits` bits
  // that begin with the code are first, first + 1… (2 to the power of bits - length of them).
  template <class Visit>
  void for_each(unsigned bits, Visit visit) const {
    std::size_t first = 0;
    for (unsigned length = 1; length <= bits; ++length)
      for (std::int32_t i = 0; i < code_count_[length]; ++i) {
        const std::int64_t at = std::int64_t{first_value_[length]} + i;
        visit(first,
              Symbol{static_cast<std::uint8_t>(length), values_[static_cast<std::size_t>(at)]});
        first += std::size_t{1} << (bits - length);
      }
  }

 private:
  Symbol find_long(std::uint64_t bits) const;

  std::array<Symbol, 1 << kTableBits> table_{};
  std::array<std::int32_t, 18> first_code_{}, first_value_{}, code_count_{};  // per length
  std::array<std::uint8_t, 256> values_{};
};

// How far the symbols at the top of the bits go, two at once where they fit: for blocks that are
// only stepped over.
class SkipTable {
 public:
  static constexpr unsigned kBits = 11;

  void build(const HuffmanCodes& codes);

  struct Entry {
    std::uint8_t bits = 0;
    // Coefficients to go on; kEndOfBlock more if the last symbol ends the block. What is unknown
    // goes nowhere near either.
    std::uint8_t advance = 255;
  };
  Entry look_up(std::uint64_t bits) const { return entries_[bits >> (64 - kBits)]; }

 private:
  std::array<Entry, 1 << kBits> entries_;
};

// AC coefficients, two per look-up where their codes and bits fit.
class AcTable {
 public:
  static constexpr unsigned kBits = 10;
  static constexpr unsigned kEndOfBlock = 128;  // an advance beyond any coefficient

  // Packed into one word, so that a look-up is one load. Zero: decode one symbol the long way.
  class Entry {
   public:
    Entry() = default;
    Entry(unsigned total_bits, unsigned first_bits, unsigned first_advance, unsigned total_advance,
          int first_value, int second_value)
        : word_(total_bits | first_advance << 8 | total_advance << 16 |
                static_cast<std::uint64_t>(first_bits) << 24 |
                static_cast<std::uint64_t>(static_cast<std::uint16_t>(first_value)) << 32 |
                static_cast<std::uint64_t>(static_cast<std::uint16_t>(second_value)) << 48) {}
    bool known() const { return word_ != 0; }
    // In the lowest six bits: what BitReader::take looks at.
    unsigned total_bits() const { return static_cast<unsigned>(word_); }
    unsigned first_bits() const { return static_cast<unsigned>(word_ >> 24) & 63; }
    // Coefficients to go on, this one included.
    unsigned first_advance() const { return static_cast<unsigned>(word_ >> 8) & 255; }
    unsigned total_advance() const { return static_cast<unsigned>(word_ >> 16) & 255; }
    bool has_second() const { return total_advance() != first_advance(); }
    std::int16_t first_value() const { return static_cast<std::int16_t>(word_ >> 32); }
    std::int16_t second_value() const { return static_cast<std::int16_t>(word_ >> 48); }

   private:
    std::uint64_t word_ = 0;
  };

  bool build(std::span<const std::uint8_t, 16> counts, std::span<const std::uint8_t> values);

  // Where the top of the bits is looked up, and what is there.
  static std::size_t place_of(std::uint64_t bits) { return bits >> (64 - kBits); }
  Entry at(std::size_t place) const { return entries_[place]; }
  Entry look_up(std::uint64_t bits) const { return at(place_of(bits)); }
  const HuffmanCodes& codes() const { return codes_; }
  // Made when it is first asked for: not every decode has blocks to step over.
  const SkipTable& skips() {
    if (!skips_built_) skips_.build(codes_);
    skips_built_ = true;
    return skips_;
  }

  // How far a symbol (run and size) moves on.
  static unsigned advance(std::uint8_t symbol) {
    const unsigned run = symbol >> 4, size = symbol & 15;
    if (size == 0 && run != 15) return kEndOfBlock;
    return run + 1;
  }

 private:
  HuffmanCodes codes_;
  std::array<Entry, 1 << kBits> entries_{};
  SkipTable skips_;
  bool skips_built_ = false;
};

}  // namespace cutwater::image
