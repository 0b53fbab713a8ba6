// SPDX-License-Identifier: Apache-2.0
// Arena: which bytes of a range are free. Best fit, neighbors join. Only numbers: the memory is
// somebody else's, and what users write there cannot damage these books.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace cutwater::cache {

// Sizes are rounded up to `granule`, at least one. The books take some 100 bytes for each free
// range, of which there is at most one more than there are pieces in use.
class Arena {
 public:
  // REQUIRES: begin <= end, both multiples of granule.
  Arena(std::uint64_t begin, std::uint64_t end, std::uint64_t granule);

  // The beginning of a piece: the smallest free range that is large enough, of equal ones the
  // first.
  std::optional<std::uint64_t> take(std::uint64_t size);
  // REQUIRES: take(size) gave it.
  void give(std::uint64_t offset, std::uint64_t size);
  // Nothing is taken from `end` on any more. REQUIRES: nothing is in use there.
  void end_at(std::uint64_t end);

  // The free bytes that end, or begin, there.
  std::uint64_t free_until(std::uint64_t offset) const;
  std::uint64_t free_from(std::uint64_t offset) const;

  std::uint64_t free_bytes() const { return free_bytes_; }
  std::uint64_t used_bytes() const { return end_ - begin_ - free_bytes_; }
  std::uint64_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  // What a piece of this size takes. No size wraps: beyond 2^62 all are alike, too large.
  std::uint64_t rounded(std::uint64_t size) const;

 private:
  void insert(std::uint64_t offset, std::uint64_t size);
  void erase(std::uint64_t offset, std::uint64_t size);

  std::uint64_t begin_, end_;
  const std::uint64_t granule_;
  std::uint64_t free_bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> by_offset_;  // free: where, how much
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
};

}  // namespace cutwater::cache
