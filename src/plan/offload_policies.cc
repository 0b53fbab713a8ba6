// SPDX-License-Identifier: Apache-2.0
#include "plan/offload_policies.h"

#include <algorithm>

#include "plan/offload_steps.h"

namespace cutwater {
namespace {

// A cut as the pipeline makes it, past the source.
bool plain_cut(const OffloadVariant& variant) {
  return variant.cut > 0 && variant.codec.is_none() && !variant.excerpt;
}

std::vector<std::uint8_t> all_at(std::size_t option, const OffloadTable& table) {
  std::vector<std::uint8_t> choice(table.samples());
  for (std::size_t i = 0; i < choice.size(); ++i)
    if (exists(table.row(i)[option])) choice[i] = static_cast<std::uint8_t>(option);
  return choice;
}

bool same_size(std::size_t option, const OffloadTable& table) {
  for (std::size_t i = 1; i < table.samples(); ++i)
    if (table.row(i)[option].bytes != table.row(0)[option].bytes) return false;
  return table.samples() > 0 && exists(table.row(0)[option]);
}

// 0: there is none.
std::size_t last_cut(const OffloadTable& table) {
  std::size_t last = 0;
  for (std::size_t o = 1; o < table.variants.size(); ++o)
    if (plain_cut(table.variants[o]) && table.variants[o].cut >= table.variants[last].cut) last = o;
  return last;
}

std::size_t first_of_one_size(const OffloadTable& table) {
  std::size_t first = 0;
  for (std::size_t o = 1; o < table.variants.size(); ++o)
    if (plain_cut(table.variants[o]) &&
        (first == 0 || table.variants[o].cut < table.variants[first].cut) && same_size(o, table))
      first = o;
  return first;
}

// Each sample's cut with the fewest bytes, the earliest of those; samples in the order of bytes
// saved by second, while goes_on(times). That is asked before each sample, not after.
template <class GoesOn>
std::vector<std::uint8_t> by_the_paper(const OffloadTable& table, const OffloadModel& model,
                                       GoesOn goes_on) {
  std::vector<OffloadStep> moves;
  for (std::size_t i = 0; i < table.samples(); ++i) {
    const std::span<const OffloadOption> row = table.row(i);
    std::size_t least = 0;
    for (std::size_t o = 1; o < row.size(); ++o)
      if (plain_cut(table.variants[o]) && row[o].bytes < row[least].bytes) least = o;
    if (least > 0)
      moves.push_back({(row[0].bytes - row[least].bytes) / row[least].storage_s,
                       static_cast<std::uint32_t>(i), 0, static_cast<std::uint8_t>(least)});
  }
  std::sort(moves.begin(), moves.end(), most_efficient_first);
  std::vector<std::uint8_t> choice(table.samples());
  OffloadSums sums = model.sums(choice);
  for (const OffloadStep& move : moves) {
    if (!goes_on(model.times(sums))) break;
    sums.move(table.row(move.sample)[0], table.row(move.sample)[move.to]);
    choice[move.sample] = move.to;
  }
  return choice;
}

// The last sample may make storage the longest.
bool network_is_longest(const OffloadTimes& t) {
  return t.network_s > std::max({t.consumer_s, t.compute_s, t.storage_s});
}

}  // namespace

std::vector<std::uint8_t> paper_on_a_slow_link(const OffloadTable& table, const OffloadModel& model,
                                               double storage_s) {
  return by_the_paper(
      table, model, [storage_s](const OffloadTimes& times) { return times.storage_s < storage_s; });
}

std::vector<std::uint8_t> choice_by_rule(OffloadPolicy policy, const OffloadTable& table,
                                         const OffloadModel& model) {
  switch (policy) {
    case OffloadPolicy::kAllOff: return all_at(last_cut(table), table);
    case OffloadPolicy::kResizeOff: return all_at(first_of_one_size(table), table);
    case OffloadPolicy::kPaper: return by_the_paper(table, model, network_is_longest);
    case OffloadPolicy::kNoOff:
    case OffloadPolicy::kSophon: break;
  }
  return std::vector<std::uint8_t>(table.samples());
}

}  // namespace cutwater
