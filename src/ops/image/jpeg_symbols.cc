// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_symbols.h"

#include <algorithm>

namespace cutwater::image {

void JpegSymbols::clear() {
  used_ = 0;
  found_.clear();
  counts_.fill(0);
  last_dc_.fill(0);
}

void JpegSymbols::give_up_large() {
  constexpr std::size_t kMostKept = std::size_t{4} << 20;
  if (items_.capacity() * sizeof(Item) > kMostKept) std::vector<Item>().swap(items_);
}

bool JpegSymbols::grow(std::size_t blocks) {
  constexpr std::size_t kLeast = 1 << 16, kMost = 1 << 24;
  const std::size_t needed = used_ + blocks * 64;
  if (needed > kMost) return false;
  items_.resize(std::clamp(2 * needed, kLeast, kMost));
  return true;
}

bool JpegSymbols::put_block_ac(std::size_t component, const std::int16_t* block) {
  Appender out(*this);
  unsigned advance = 1;
  for (std::size_t k = 1; k < 64; ++k, ++advance) {
    const int value = block[kNaturalOrder[k]];
    if (value == 0) continue;
    for (; advance > 16; advance -= 16) out.put(ac_item(component, 16, 0));
    if (size_of_number(value) > kLargestAc) return false;
    out.put(ac_item(component, advance, value));
    advance = 0;
  }
  if (advance > 1) out.put(ac_item(component, AcTable::kEndOfBlock, 0));
  return true;
}

void JpegSymbols::resolve(std::size_t component, const AcTable& table) {
  for (std::size_t place = 0; place < kLookUps; ++place) {
    const std::size_t kind = kSymbols + component * kLookUps + place;
    const std::uint32_t count = counts_[kind];
    if (count == 0) continue;
    const AcTable::Entry entry = table.at(place);
    Found found{kind,
                ac_item(component, entry.first_advance(), entry.first_value()),
                {},
                entry.has_second()};
    counts_[found.first.kind()] += count;
    if (found.two) {
      const unsigned advance = entry.total_advance() - entry.first_advance();
      found.second = ac_item(component, advance, entry.second_value());
      counts_[found.second.kind()] += count;
    }
    found_.push_back(found);
  }
}

}  // namespace cutwater::image
