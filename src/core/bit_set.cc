// SPDX-License-Identifier: Apache-2.0
#include "core/bit_set.h"

namespace cutwater {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string BitSet::text(std::int64_t first) const {
  std::string digits;
  for (std::int64_t i = next_set(first); i < size_; i = next_set(i + 1)) {
    const auto at = static_cast<std::size_t>((i - first) / 4);
    digits.resize(at + 1, '0');
    digits[at] = kDigits[kDigits.find(digits[at]) | std::size_t{1} << (i - first) % 4];
  }
  return digits;
}

bool BitSet::set_from_text(std::int64_t first, std::string_view digits) {
  std::int64_t i = first;
  for (const char digit : digits) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return false;
    for (int bit = 0; bit < 4; ++bit, ++i) {
      if ((value >> bit & 1U) == 0) continue;
      if (i >= size_) return false;
      set(i);
    }
  }
  return true;
}

}  // namespace cutwater
