// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_huffman.h"

#include <algorithm>

namespace cutwater::image {

bool HuffmanCodes::build(std::span<const std::uint8_t, 16> counts,
                         std::span<const std::uint8_t> values) {
  table_.fill({});
  std::int32_t code = 0;
  std::size_t used = 0;
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    const auto at = static_cast<std::size_t>(length);
    const std::int32_t count = counts[at - 1];
    first_code_[at] = code;
    first_value_[at] = static_cast<std::int32_t>(used);
    code_count_[at] = count;
    // The code of all ones is not used: libjpeg refuses tables that leave no room for it.
    if (used + static_cast<std::size_t>(count) > values.size() ||
        (count > 0 && code + count >= 1 << length))
      return false;
    for (std::int32_t i = 0; i < count; ++i, ++code, ++used) {
      values_[used] = values[used];
      if (length > kTableBits) continue;
      const int shift = kTableBits - length;
      std::fill_n(table_.begin() + (code << shift), 1 << shift,
                  Symbol{static_cast<std::uint8_t>(length), values[used]});
    }
  }
  return true;
}

HuffmanCodes::Symbol HuffmanCodes::find_long(std::uint64_t bits) const {
  const auto next16 = static_cast<std::int32_t>(bits >> 48);
  for (int length = kTableBits + 1; length <= 16; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const std::int32_t index = (next16 >> (16 - length)) - first_code_[at];
    if (index >= 0 && index < code_count_[at])
      return {
          static_cast<std::uint8_t>(length),
          values_[static_cast<std::size_t>(first_value_[at]) + static_cast<std::size_t>(index)]};
  }
  return {};
}

void SkipTable::build(const HuffmanCodes& codes) {
  constexpr std::size_t kMask = (1 << kBits) - 1;
  std::array<Entry, 1 << kBits> ones;
  ones.fill({});
  const auto for_each_symbol = [&](auto visit) {
    codes.for_each(kBits, [&](std::size_t first, HuffmanCodes::Symbol symbol) {
      const unsigned bits = symbol.length + (symbol.value & 15U);
      const Entry one{static_cast<std::uint8_t>(bits),
                      static_cast<std::uint8_t>(AcTable::advance(symbol.value))};
      if (bits <= kBits) visit(first, first + (std::size_t{1} << (kBits - symbol.length)), one);
    });
  };
  for_each_symbol([&](std::size_t begin, std::size_t end, Entry one) {
    for (std::size_t i = begin; i < end; ++i) ones[i] = one;
  });
  // A symbol and those that follow it, as far as they are known, fit, and are of this block.
  const auto follow = [&](const std::array<Entry, 1 << kBits>& rest,
                          std::array<Entry, 1 << kBits>& out) {
    for_each_symbol([&](std::size_t begin, std::size_t end, Entry one) {
      const bool ends = one.advance >= AcTable::kEndOfBlock;
      for (std::size_t i = begin; i < end; ++i) {
        const Entry next = rest[i << one.bits & kMask];
        const bool fits =
            !ends && next.bits != 0 && one.bits + next.bits <= static_cast<int>(kBits);
        out[i] = {static_cast<std::uint8_t>(one.bits + (fits ? next.bits : 0)),
                  static_cast<std::uint8_t>(one.advance + (fits ? next.advance : 0))};
      }
    });
  };
  entries_.fill({});
  follow(ones, entries_);
}

bool AcTable::build(std::span<const std::uint8_t, 16> counts,
                    std::span<const std::uint8_t> values) {
  skips_built_ = false;
  if (!codes_.build(counts, values)) return false;

  // The one symbol at the top of kBits bits. No bits: it does not fit.
  struct One {
    std::uint8_t bits = 0, advance = 0;
    std::int16_t value = 0;
  };
  std::array<One, 1 << kBits> ones{};
  codes_.for_each(kBits, [&](std::size_t begin, HuffmanCodes::Symbol symbol) {
    const unsigned size = symbol.value & 15U, bits = symbol.length + size;
    if (bits > kBits) return;
    for (std::size_t extra = 0; extra < std::size_t{1} << size; ++extra) {
      const std::uint64_t top = size == 0 ? 0 : std::uint64_t{extra} << (64 - size);
      std::fill_n(
          ones.begin() + static_cast<std::ptrdiff_t>(begin + (extra << (kBits - bits))),
          std::size_t{1} << (kBits - bits),
          One{static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(advance(symbol.value)),
              static_cast<std::int16_t>(extended(top, size))});
    }
  });

  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const One first = ones[i];
    const One second = first.bits > 0 && first.advance != kEndOfBlock
                           ? ones[i << first.bits & (entries_.size() - 1)]
                           : One{};
    if (first.bits == 0)
      entries_[i] = {};
    else if (second.bits == 0 || first.bits + second.bits > static_cast<int>(kBits))
      entries_[i] = {first.bits,    first.bits,  first.advance,
                     first.advance, first.value, first.value};
    else
      entries_[i] = {unsigned{first.bits} + second.bits,       first.bits,  first.advance,
                     unsigned{first.advance} + second.advance, first.value, second.value};
  }
  return true;
}

}  // namespace cutwater::image
