// SPDX-License-Identifier: Apache-2.0
#include "plan/offload_steps.h"

#include <algorithm>
#include <tuple>

namespace cutwater {

std::size_t first_option(std::span<const OffloadOption> row, const OffloadWorth& worth) {
  std::size_t first = 0;
  for (std::size_t o = 1; o < row.size(); ++o)
    if (exists(row[o]) && std::tuple{row[o].storage_s, worth.cost(row[o])} <
                              std::tuple{row[first].storage_s, worth.cost(row[first])})
      first = o;
  return first;
}

NextOption next_option(std::span<const OffloadOption> row, const OffloadWorth& worth,
                       std::size_t at) {
  NextOption next{at, 0};
  const double cost = worth.cost(row[at]);
  for (std::size_t o = 0; o < row.size(); ++o) {
    if (!exists(row[o]) || row[o].storage_s <= row[at].storage_s) continue;
    const double efficiency = (cost - worth.cost(row[o])) / (row[o].storage_s - row[at].storage_s);
    // Of equal ones the farthest: a step that is worth it is not taken in two.
    if (efficiency > next.efficiency || (efficiency == next.efficiency && next.efficiency > 0 &&
                                         row[o].storage_s > row[next.option].storage_s))
      next = {o, efficiency};
  }
  return next;
}

bool most_efficient_first(const OffloadStep& a, const OffloadStep& b) {
  if (a.efficiency != b.efficiency) return a.efficiency > b.efficiency;
  return a.sample != b.sample ? a.sample < b.sample : a.place < b.place;
}

std::vector<OffloadStep> offload_steps(const OffloadTable& table, const OffloadWorth& worth,
                                       std::size_t stride, std::vector<std::uint8_t>& start) {
  std::vector<OffloadStep> steps;
  start.clear();
  for (std::size_t i = 0; i < table.samples(); i += stride) {
    std::uint8_t place = 0;
    const std::size_t first = for_each_step(
        table.row(i), worth, [&](double efficiency, std::size_t from, std::size_t to) {
          steps.push_back({efficiency, static_cast<std::uint32_t>(i),
                           static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to),
                           place++});
          return true;
        });
    start.push_back(static_cast<std::uint8_t>(first));
  }
  std::sort(steps.begin(), steps.end(), most_efficient_first);
  return steps;
}

}  // namespace cutwater
