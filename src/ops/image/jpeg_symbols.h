// SPDX-License-Identifier: Apache-2.0
// Some MCUs of a JPEG between two files: entropy-decoded just as far as another Huffman code needs,
// which leaves every coefficient what it is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/image/jpeg_geometry.h"
#include "ops/image/jpeg_huffman.h"
#include "ops/image/jpeg_planes.h"

namespace cutwater::image {

// The symbols of a baseline scan in order, with the bits that follow each, and how often each
// occurs. A thread keeps one and uses it again.
//
// AC symbols that the scan's own table finds by one look-up (jpeg_huffman.h) stay together: they
// are kept as the place of that look-up, and written as one.
class JpegSymbols {
 public:
  // Codes of the first component, and of the others: two tables for DC, two for AC.
  static constexpr std::size_t kTables = 4, kTableValues = 256;
  static std::size_t dc_table(std::size_t component) { return component == 0 ? 0 : 1; }
  static std::size_t ac_table(std::size_t component) { return component == 0 ? 2 : 3; }
  // Bits of a coefficient: what pictures of 8 bits can have.
  static constexpr unsigned kLargestDc = 11, kLargestAc = 10;

  // A symbol and its bits, or a look-up.
  class Item {
   public:
    Item() = default;
    Item(std::size_t kind, std::uint32_t bits)
        : word_(bits << kKindBits | static_cast<std::uint32_t>(kind)) {}
    // Below kSymbols: table and value of a symbol. From there on: component and place of a look-up.
    std::size_t kind() const { return word_ & (kKinds - 1); }
    std::uint32_t bits() const { return word_ >> kKindBits; }

   private:
    std::uint32_t word_ = 0;
  };
  static constexpr std::size_t kSymbols = kTables * kTableValues, kLookUps = 1 << AcTable::kBits;
  static constexpr std::size_t kKindBits = 12, kKinds = 1 << kKindBits;
  static_assert(kSymbols + 3 * kLookUps <= kKinds);

  // What a look-up stands for.
  struct Found {
    std::size_t kind;
    Item first, second;
    bool two;
  };

  void clear();
  void give_up_large();  // what a huge image took is not kept for ever

  // Room for so many blocks. False: there are too many symbols to be held.
  [[nodiscard]] bool make_room(std::size_t blocks) {
    return used_ + blocks * 64 <= items_.size() || grow(blocks);
  }

  // An AC coefficient so many places on; sixteen zeros; or the end of the block
  // (AcTable::kEndOfBlock).
  static Item ac_item(std::size_t component, unsigned advance, int value) {
    const unsigned size = size_of_number(value);
    const unsigned run = advance == AcTable::kEndOfBlock ? 0 : advance - 1;
    return {ac_table(component) * kTableValues + (run << 4 | size), number_bits(value, size)};
  }
  // What the component's table finds at a place.
  static Item found_item(std::size_t component, std::size_t place) {
    return {kSymbols + component * kLookUps + place, 0};
  }

  // Appends while it lives. A thing of its own, because its state then is in registers.
  // REQUIRES: room.
  class Appender {
   public:
    explicit Appender(JpegSymbols& symbols)
        : symbols_(symbols), next_(symbols.items_.data() + symbols.used_) {}
    ~Appender() { symbols_.used_ = static_cast<std::size_t>(next_ - symbols_.items_.data()); }
    Appender(const Appender&) = delete;
    Appender& operator=(const Appender&) = delete;

    void put(Item item) {
      ++symbols_.counts_[item.kind()];
      *next_++ = item;
    }

   private:
    JpegSymbols& symbols_;
    Item* next_;
  };

  // A block's DC coefficient. False: too far from the one before it. REQUIRES: room.
  [[nodiscard]] bool put_dc(std::size_t component, int value) {
    const int difference = value - last_dc_[component];
    last_dc_[component] = value;
    const unsigned size = size_of_number(difference);
    Appender(*this).put({dc_table(component) * kTableValues + size, number_bits(difference, size)});
    return size <= kLargestDc;
  }
  // A block's AC coefficients in natural order. False: one is too large. REQUIRES: room.
  [[nodiscard]] bool put_block_ac(std::size_t component, const std::int16_t* block);
  // After the last of them: what the component's look-ups were.
  void resolve(std::size_t component, const AcTable& table);

  std::span<const Item> items() const { return {items_.data(), used_}; }
  const std::vector<Found>& found() const { return found_; }
  // How often each symbol of a table occurs. REQUIRES: all look-ups are resolved.
  std::span<const std::uint32_t> counts(std::size_t table) const {
    return std::span(counts_).subspan(table * kTableValues, kTableValues);
  }

 private:
  bool grow(std::size_t blocks);

  std::vector<Item> items_;
  std::size_t used_ = 0;
  std::vector<Found> found_;
  std::array<std::uint32_t, kKinds> counts_{};
  std::array<int, 3> last_dc_{};
};

// Some MCUs of an image, and what is in them.
struct JpegPart : JpegWindow {
  std::array<Quantizer, 3> quantizers{};
  JpegSymbols symbols;
};

// Appends a baseline JPEG of just this part, with the shortest codes that Huffman has for it.
// False: it would be `limit` bytes or more, and what was appended means nothing.
bool write_baseline(const JpegPart& part, std::size_t limit, std::vector<std::uint8_t>& out);

}  // namespace cutwater::image
