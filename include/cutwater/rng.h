// SPDX-License-Identifier: Apache-2.0
// Random numbers that belong to a sample, never to a thread, a batch or a machine.
#pragma once

#include <array>
#include <cstdint>

namespace cutwater {

// One round-ten Philox4x32 block (Salmon et al., SC'11): a pure function of counter and key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Names one stream of draws. Different keys never share a block: seed is the Philox key, and
// (epoch, sample, op) fill 112 of the counter's 128 bits; the rest counts blocks.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint64_t sample = 0;
  std::uint16_t op = 0;  // place of the op in the chain
};

// A stream of numbers, passed by value: a copy gives the same numbers again. At most 2^18 words.
class Rng {
 public:
  explicit Rng(const DrawKey& key) : key_(key) {}

  std::uint32_t bits32();
  std::uint64_t bits64();
  double uniform();  // [0, 1), 53 bits
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  std::uint64_t below(std::uint64_t n);  // [0, n), unbiased. REQUIRES: n > 0

 private:
  DrawKey key_;
  std::uint16_t block_ = 0;
  std::uint8_t used_ = 4;
  std::array<std::uint32_t, 4> words_{};
};

}  // namespace cutwater
