// SPDX-License-Identifier: Apache-2.0
// The bits of a scan, as they are written.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "ops/image/jpeg_huffman.h"

namespace cutwater::image {

// Bits, most significant first, a zero behind each byte of ones.
class BitWriter {
 public:
  // REQUIRES: room for twice the bytes that will be written, and eight.
  explicit BitWriter(std::uint8_t* out) : next_(out) {}

  void put(std::uint64_t bits, unsigned length) {  // 1 to 56
    count_ += length;
    bits_ |= bits << (64 - count_);
    // Those that are no part of a whole byte yet stay; they are written once more.
    const bool has_ones = (bits_ & (~bits_ - 0x0101010101010101U) & 0x8080808080808080U) != 0;
    if (has_ones) [[unlikely]]
      return put_bytes();
    const std::uint64_t in_order =
        std::endian::native == std::endian::little ? __builtin_bswap64(bits_) : bits_;
    std::memcpy(next_, &in_order, sizeof in_order);
    next_ += count_ / 8;
    bits_ = bits_ << (count_ & 56U);
    count_ &= 7;
  }
  // The next `bits` bits of another scan. REQUIRES: it has as many.
  void copy(BitReader from, std::int64_t bits) {
    constexpr unsigned kMost = 56;
    for (; bits > 0; bits -= kMost) {
      const auto length = static_cast<unsigned>(std::min<std::int64_t>(bits, kMost));
      from.refill();
      put(from.bits() >> (64 - length), length);
      from.take(length);
    }
  }
  // Fills the last byte with ones. Returns the end.
  std::uint8_t* finish() {
    if (count_ > 0) put((1U << (8 - count_)) - 1, 8 - count_);
    return next_;
  }

 private:
  void put_bytes() {
    for (; count_ >= 8; count_ -= 8, bits_ <<= 8) {
      *next_++ = static_cast<std::uint8_t>(bits_ >> 56);
      if (next_[-1] == 0xFF) *next_++ = 0;
    }
  }

  std::uint64_t bits_ = 0;  // from the top
  unsigned count_ = 0;
  std::uint8_t* next_;
};

}  // namespace cutwater::image
