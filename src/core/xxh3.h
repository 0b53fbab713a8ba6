// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cutwater {

// XXH3 (64 bits) of these bytes and of those behind them, by AVX2 where there is one.
std::uint64_t xxh3(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> more = {});

namespace detail {

struct TwoRuns {
  const void* first;
  std::size_t first_size;
  const void* second;
  std::size_t second_size;
};
std::uint64_t xxh3_plain(const TwoRuns& runs);
std::uint64_t xxh3_avx2(const TwoRuns& runs);  // REQUIRES: the machine has it

}  // namespace detail

}  // namespace cutwater
