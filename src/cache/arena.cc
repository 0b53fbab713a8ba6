// SPDX-License-Identifier: Apache-2.0
#include "cache/arena.h"

#include <algorithm>
#include <iterator>

namespace cutwater::cache {

Arena::Arena(std::uint64_t begin, std::uint64_t end, std::uint64_t granule)
    : begin_(begin), end_(end), granule_(granule) {
  if (end > begin) insert(begin, end - begin);
}

std::uint64_t Arena::rounded(std::uint64_t size) const {
  constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 62;
  size = std::clamp<std::uint64_t>(size, 1, kTooLarge);
  return (size + granule_ - 1) / granule_ * granule_;
}

std::optional<std::uint64_t> Arena::take(std::uint64_t size) {
  size = rounded(size);
  const auto fits = by_size_.lower_bound({size, 0});
  if (fits == by_size_.end()) return std::nullopt;
  const auto [range, offset] = *fits;
  erase(offset, range);
  if (range > size) insert(offset + size, range - size);
  return offset;
}

void Arena::give(std::uint64_t offset, std::uint64_t size) {
  size = rounded(size);
  const auto next = by_offset_.lower_bound(offset);
  std::uint64_t begin = offset, end = offset + size;
  if (next != by_offset_.begin()) {
    const auto [before, length] = *std::prev(next);
    if (before + length == offset) begin = before;
  }
  if (next != by_offset_.end() && next->first == end) {
    const auto [after, length] = *next;
    end += length;
    erase(after, length);
  }
  if (begin < offset) erase(begin, offset - begin);
  insert(begin, end - begin);
}

std::uint64_t Arena::free_until(std::uint64_t offset) const {
  const auto next = by_offset_.lower_bound(offset);
  if (next == by_offset_.begin()) return 0;
  const auto [begin, length] = *std::prev(next);
  return begin + length == offset ? length : 0;
}

std::uint64_t Arena::free_from(std::uint64_t offset) const {
  const auto found = by_offset_.find(offset);
  return found == by_offset_.end() ? 0 : found->second;
}

void Arena::end_at(std::uint64_t end) {
  if (end >= end_) return;
  end_ = std::max(end, begin_);
  if (by_offset_.empty()) return;
  const auto [last, length] = *std::prev(by_offset_.end());
  erase(last, length);
  if (last < end_) insert(last, end_ - last);
}

void Arena::insert(std::uint64_t offset, std::uint64_t size) {
  by_offset_.emplace(offset, size);
  by_size_.emplace(size, offset);
  free_bytes_ += size;
}

void Arena::erase(std::uint64_t offset, std::uint64_t size) {
  by_offset_.erase(offset);
  by_size_.erase({size, offset});
  free_bytes_ -= size;
}

}  // namespace cutwater::cache
