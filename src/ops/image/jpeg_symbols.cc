// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_symbols.h"

#include <algorithm>

namespace cutwater::image {

void JpegSymbols::clear() {
  used_ = 0;
  counts_.fill(0);
  last_dc_.fill(0);
}

void JpegSymbols::give_up_large() {
  constexpr std::size_t kMostKept = std::size_t{4} << 20;
  if (symbols_.capacity() * sizeof(Symbol) > kMostKept) std::vector<Symbol>().swap(symbols_);
}

bool JpegSymbols::grow(std::size_t blocks) {
  constexpr std::size_t kLeast = 1 << 16, kMost = 1 << 24;
  const std::size_t needed = used_ + blocks * 64;
  if (needed > kMost) return false;
  symbols_.resize(std::clamp(2 * needed, kLeast, kMost));
  return true;
}

bool JpegSymbols::put_block_ac(std::size_t component, const std::int16_t* block) {
  constexpr unsigned kSixteenZeros = 0xF0, kEndOfBlock = 0x00;
  unsigned zeros = 0;
  for (std::size_t k = 1; k < 64; ++k) {
    const int value = block[kNaturalOrder[k]];
    if (value == 0) {
      ++zeros;
      continue;
    }
    for (; zeros >= 16; zeros -= 16) put_ac(component, kSixteenZeros, 0);
    const unsigned size = size_of_number(value);
    if (size > kLargestAc) return false;
    put_ac(component, zeros << 4 | size, number_bits(value, size));
    zeros = 0;
  }
  if (zeros > 0) put_ac(component, kEndOfBlock, 0);
  return true;
}

}  // namespace cutwater::image
