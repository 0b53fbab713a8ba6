// SPDX-License-Identifier: Apache-2.0
#include "cutwater/rng.h"

namespace cutwater {
namespace {

// The constants of Philox4x32.
constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint32_t Rng::bits32() {
  if (used_ == words_.size()) {
    const std::uint32_t op_and_block = std::uint32_t{key_.op} << 16 | block_++;
    words_ = philox4x32(
        {op_and_block, key_.epoch, static_cast<std::uint32_t>(key_.sample),
         static_cast<std::uint32_t>(key_.sample >> 32)},
        {static_cast<std::uint32_t>(key_.seed), static_cast<std::uint32_t>(key_.seed >> 32)});
    used_ = 0;
  }
  return words_[used_++];
}

std::uint64_t Rng::bits64() {
  const std::uint64_t low = bits32();
  return std::uint64_t{bits32()} << 32 | low;
}

double Rng::uniform() { return static_cast<double>(bits64() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t n) {
  // Numbers below 2^64 mod n would make the small results likelier: draw again.
  const std::uint64_t first_fair = -n % n;
  std::uint64_t bits = bits64();
  while (bits < first_fair) bits = bits64();
  return bits % n;
}

}  // namespace cutwater
