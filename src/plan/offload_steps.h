// SPDX-License-Identifier: Apache-2.0
// Steps: the way of a sample along the lower convex hull of its options, from the one that takes
// least of storage to the one that is worth most. Their efficiency falls from step to step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cutwater/offload.h"

namespace cutwater {

// What an option costs besides storage.
struct OffloadWorth {
  double byte = 1, compute_s = 0;

  double cost(const OffloadOption& option) const {
    return byte * option.bytes + compute_s * option.compute_s;
  }
};

inline bool exists(const OffloadOption& option) {
  return option.bytes < std::numeric_limits<double>::infinity();
}

struct NextOption {
  std::size_t option = 0;
  double efficiency = 0;  // cost saved for a storage second; 0: there is no further step
};

// Where the way begins: the least of storage, of those the least cost.
std::size_t first_option(std::span<const OffloadOption> row, const OffloadWorth& worth);
NextOption next_option(std::span<const OffloadOption> row, const OffloadWorth& worth,
                       std::size_t at);

// Calls `take(efficiency, from, to)` for each step of a sample while that returns true; returns
// where the way begins. Rounding does not turn the order of the steps around.
template <class Take>
std::size_t for_each_step(std::span<const OffloadOption> row, const OffloadWorth& worth,
                          Take&& take) {
  const std::size_t first = first_option(row, worth);
  double before = std::numeric_limits<double>::infinity();
  std::size_t at = first;
  for (NextOption next = next_option(row, worth, at); next.efficiency > 0;
       next = next_option(row, worth, at)) {
    before = std::min(before, next.efficiency);
    if (!take(before, at, next.option)) break;
    at = next.option;
  }
  return first;
}

struct OffloadStep {
  double efficiency = 0;
  std::uint32_t sample = 0;
  std::uint8_t from = 0, to = 0;
  std::uint8_t place = 0;  // among the sample's own steps
};

// Of equal ones, that of the first sample.
bool most_efficient_first(const OffloadStep& a, const OffloadStep& b);

// Of every stride-th sample, the most efficient first. `start`: the first option of each of them.
std::vector<OffloadStep> offload_steps(const OffloadTable& table, const OffloadWorth& worth,
                                       std::size_t stride, std::vector<std::uint8_t>& start);

}  // namespace cutwater
