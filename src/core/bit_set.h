// SPDX-License-Identifier: Apache-2.0
// BitSet: which of n things are done, in one bit each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cutwater {

class BitSet {
 public:
  // None is set.
  explicit BitSet(std::int64_t size = 0)
      : size_(size), words_(static_cast<std::size_t>((size + 63) / 64)) {}

  std::int64_t size() const { return size_; }
  // REQUIRES, of these two: 0 <= i < size()
  bool operator[](std::int64_t i) const { return (words_[word_of(i)] >> (i % 64) & 1U) != 0; }
  void set(std::int64_t i) { words_[word_of(i)] |= std::uint64_t{1} << (i % 64); }

  // The first from `i` on that is not set, or that is; size() where there is none. REQUIRES: i >= 0
  std::int64_t next_clear(std::int64_t i) const { return next(i, ~std::uint64_t{0}); }
  std::int64_t next_set(std::int64_t i) const { return next(i, 0); }

  // Those from `first` on as hexadecimal digits of four each, the first one in the lowest bit of
  // the first digit; digits of none at the end are left out.
  std::string text(std::int64_t first) const;
  // Sets what such a text says. False: it is no such text, or it speaks of some beyond size().
  bool set_from_text(std::int64_t first, std::string_view digits);

 private:
  static std::size_t word_of(std::int64_t i) { return static_cast<std::size_t>(i / 64); }

  std::int64_t next(std::int64_t i, std::uint64_t flip) const {
    while (i < size_) {
      const std::uint64_t rest = (words_[word_of(i)] ^ flip) >> (i % 64);
      if (rest != 0) {
        i += std::countr_zero(rest);
        break;
      }
      i += 64 - i % 64;
    }
    return i < size_ ? i : size_;
  }

  std::int64_t size_;
  std::vector<std::uint64_t> words_;
};

}  // namespace cutwater
