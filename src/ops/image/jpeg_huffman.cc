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

bool AcTable::build(std::span<const std::uint8_t, 16> counts,
                    std::span<const std::uint8_t> values) {
  if (!codes_.build(counts, values)) return false;

  // The symbol at the top of the bits, of which `room` are known. No bits: it does not fit.
  struct One {
    unsigned bits = 0, advance = 0;
    int value = 0;
  };
  const auto one = [this](std::uint64_t bits, unsigned room) -> One {
    const HuffmanCodes::Symbol symbol = codes_.find(bits);
    const unsigned size = symbol.value & 15;
    if (symbol.length == 0 || symbol.length + size > room) return {};
    return {symbol.length + size, advance(symbol.value), extended(bits << symbol.length, size)};
  };

  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t bits = static_cast<std::uint64_t>(i) << (64 - kBits);
    const One first = one(bits, kBits);
    One second;
    if (first.bits > 0 && first.advance != kEndOfBlock && first.bits < kBits)
      second = one(bits << first.bits, kBits - first.bits);
    if (first.bits == 0)
      entries_[i] = {};
    else if (second.bits == 0)
      entries_[i] = {first.bits,    first.bits,  first.advance,
                     first.advance, first.value, first.value};
    else
      entries_[i] = {first.bits + second.bits,       first.bits,  first.advance,
                     first.advance + second.advance, first.value, second.value};
  }
  return true;
}

}  // namespace cutwater::image
