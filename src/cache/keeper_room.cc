// SPDX-License-Identifier: Apache-2.0
// Keeper, room: which values make way together, so that their places are one.
#include <algorithm>
#include <iterator>

#include "cache/keeper.h"

namespace cutwater::cache {

// Some that should make way, the least dense first.
std::vector<Keeper::Number> Keeper::victims(double density, Whose whose) {
  if (!whose) return residents_.victims(density);
  const auto its = residents_of_.find(*whose);
  if (its == residents_of_.end()) return {};
  return residents_.victims(density, its->second);
}

// A place of `size` bytes, for which values of less worth make way.
std::optional<std::uint64_t> Keeper::room(std::uint64_t size, double worth, Whose whose) {
  constexpr int kRuns = 8;
  if (size > segment_->shape().end() - segment_->shape().arena_at()) return std::nullopt;
  if (const std::optional<std::uint64_t> offset = allocate(size)) return offset;
  reclaim();
  if (const std::optional<std::uint64_t> offset = allocate(size)) return offset;
  int runs = 0;
  std::uint64_t freed = 0;
  double gone = 0;  // worth
  const std::vector<Number> found = victims(worth / static_cast<double>(size), whose);
  for (const Number victim : found) {
    if (!residents_.contains(victim)) continue;  // it went with an earlier one
    const std::vector<Number> run = run_around(victim, size, worth, whose);
    if (run.empty()) continue;
    // What readers hold is free only later: it need not be more and more of it.
    if (++runs > kRuns || freed >= 2 * size || gone >= 2 * worth) break;
    for (const Number number : run) {
      gone += residents_.worth(number);
      freed += arena_.rounded(values_[number].size);
      evict(number);
    }
    patience_ = kLeastPatience;
    reclaim();
    if (const std::optional<std::uint64_t> offset = allocate(size)) return offset;
  }
  // What a reader cannot foresee: there are values of less worth, but their places do not join.
  // Whoever tries in vain has stopped at a cut for nothing: the less it helps, the less often.
  // Where only one owner's may go, that says nothing of the others'.
  if (!found.empty() && !whose) {
    patience_ = std::min(2 * patience_, kMostPatience);
    segment_->header().no_place.store(patience_, std::memory_order_relaxed);
  }
  return std::nullopt;
}

// The owner's values, of less worth by the byte, that have to make way so that he may have so many
// bytes more; nothing: there are none such, or not enough.
std::optional<std::vector<Keeper::Number>> Keeper::beyond_quota(std::uint32_t owner,
                                                                std::uint64_t bytes, double worth) {
  const OwnerUse& use = owner_uses_.at(owner);
  if (bytes > *use.quota) return std::nullopt;
  std::vector<Number> going;
  std::uint64_t freed = 0;
  for (const Number victim : victims(worth / static_cast<double>(bytes), owner)) {
    if (use.bytes - freed + bytes <= *use.quota) break;
    freed += arena_.rounded(values_[victim].size);
    going.push_back(victim);
  }
  if (use.bytes - freed + bytes > *use.quota) return std::nullopt;
  return going;
}

// A value and as many of its neighbors, on the side where they are worth less by the byte, as make
// a place of `size` with what is free between them. What they free beyond it others will fill.
// Nothing: something else lies in between, or one of them is worth as much by the byte as what is
// to come while all together are not clearly worth less.
std::vector<Keeper::Number> Keeper::run_around(Number victim, std::uint64_t size, double worth,
                                               Whose whose) const {
  std::vector<Number> run;
  auto left = by_place_.find(values_[victim].offset), right = left;
  std::uint64_t begin = left->first, end = begin;
  double together = 0;
  bool denser = false;  // whether one of them is, than what is to come
  const auto is_less_by_the_byte = [&](Number number) {
    return residents_.density(number) * static_cast<double>(size) < worth;
  };
  const auto take = [&](Number number) {
    run.push_back(number);
    together += residents_.worth(number);
    denser = denser || !is_less_by_the_byte(number);
    begin = std::min(begin, values_[number].offset);
    end = std::max(end, values_[number].offset + arena_.rounded(values_[number].size));
    begin -= arena_.free_until(begin);
    end += arena_.free_from(end);
  };
  const auto is_less = [&](Number number) {
    return may_go(number, whose) &&
           ((!denser && is_less_by_the_byte(number)) ||
            together + residents_.worth(number) < Residents::kClearlyLess * worth);
  };
  for (take(victim); end - begin < size;) {
    // The next on either side, where it is a value, may go and lies close.
    std::optional<Number> before, after;
    if (left != by_place_.begin()) {
      const auto& [offset, number] = *std::prev(left);
      if (offset + arena_.rounded(values_[number].size) == begin && is_less(number))
        before = number;
    }
    if (const auto next = std::next(right);
        next != by_place_.end() && next->first == end && is_less(next->second))
      after = next->second;
    if (!before && !after) return {};
    if (before && (!after || residents_.density(*before) < residents_.density(*after))) {
      --left;
      take(*before);
    } else {
      ++right;
      take(*after);
    }
  }
  return run;
}

// In memory that has pages: where the system gives no more of them, the arena ends.
std::optional<std::uint64_t> Keeper::allocate(std::uint64_t size) {
  const std::optional<std::uint64_t> offset = arena_.take(size);
  if (!offset || segment_->secure(*offset + size)) return offset;
  arena_.give(*offset, size);
  arena_.end_at(segment_->header().secured.load(std::memory_order_relaxed));
  return arena_.take(size);
}

// Worth more than values: without it nobody knows what they are worth. Those that make way do so in
// the order in which they lie, so that their places join; not more than a part of them.
std::optional<std::uint64_t> Keeper::room_for_seen_bits(std::uint64_t size) {
  constexpr std::uint64_t kLargestPart = 4, kMostPerByte = 4;
  const Shape& shape = segment_->shape();
  if (size > (shape.end() - shape.arena_at()) / kLargestPart) return std::nullopt;
  if (const std::optional<std::uint64_t> offset = allocate(size)) return offset;
  for (std::uint64_t gone = 0; !by_place_.empty() && gone <= kMostPerByte * size;) {
    const Number number = by_place_.begin()->second;
    gone += arena_.rounded(values_[number].size);
    evict(number);
    reclaim();
    if (const std::optional<std::uint64_t> offset = allocate(size)) return offset;
  }
  return std::nullopt;
}

}  // namespace cutwater::cache
