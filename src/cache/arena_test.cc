// SPDX-License-Identifier: Apache-2.0
#include "cache/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kBegin = 640, kGranuleSize = 64;

// One bool a granule, and everything by looking at all of them.
class NaiveArena {
 public:
  explicit NaiveArena(std::size_t granules) : used_(granules) {}

  std::optional<std::uint64_t> take(std::uint64_t size) {
    const std::size_t count = granules(size);
    std::size_t best = 0, best_length = used_.size() + 1;
    for (const auto& [first, length] : free_ranges())
      if (length >= count && length < best_length) {
        best = first;
        best_length = length;
      }
    if (best_length > used_.size()) return std::nullopt;
    mark(best, count, true);
    return kBegin + best * kGranuleSize;
  }
  void give(std::uint64_t offset, std::uint64_t size) {
    mark((offset - kBegin) / kGranuleSize, granules(size), false);
  }
  void end_at(std::size_t granules) { used_.resize(granules); }
  std::uint64_t largest() const {
    std::size_t most = 0;
    for (const auto& [first, length] : free_ranges()) most = std::max(most, length);
    return most * kGranuleSize;
  }
  std::uint64_t free_bytes() const {
    return static_cast<std::uint64_t>(std::ranges::count(used_, false)) * kGranuleSize;
  }
  static std::size_t granules(std::uint64_t size) {
    return std::max<std::size_t>((size + kGranuleSize - 1) / kGranuleSize, 1);
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> free_ranges() const {
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      if (i == 0 || used_[i - 1]) ranges.emplace_back(i, 0);
      ++ranges.back().second;
    }
    return ranges;
  }
  void mark(std::size_t first, std::size_t count, bool used) {
    for (std::size_t i = first; i < first + count; ++i) {
      ASSERT_NE(used_.at(i), used);
      used_[i] = used;
    }
  }
  std::vector<bool> used_;
};

TEST(Arena, DoesWhatTheNaiveOneDoes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const std::size_t granules = 1 + random() % 300;
    Arena arena(kBegin, kBegin + granules * kGranuleSize, kGranuleSize);
    NaiveArena naive(granules);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pieces;
    for (int i = 0; i < 1000; ++i) {
      if (random() % 5 < 3) {
        const std::uint64_t size = random() % (random() % 10 == 0 ? 4000 : 400);
        const std::optional<std::uint64_t> offset = arena.take(size);
        ASSERT_EQ(offset, naive.take(size)) << "seed " << seed << " step " << i;
        if (offset) pieces.emplace_back(*offset, size);
      } else if (!pieces.empty()) {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        arena.give(pieces.back().first, pieces.back().second);
        naive.give(pieces.back().first, pieces.back().second);
        pieces.pop_back();
      }
      if (i == 500) {  // the system has no more memory: the end is where the last piece ends
        std::uint64_t end = kBegin;
        for (const auto& [offset, size] : pieces) end = std::max(end, offset + arena.rounded(size));
        arena.end_at(end);
        naive.end_at((end - kBegin) / kGranuleSize);
      }
      ASSERT_EQ(arena.free_bytes(), naive.free_bytes());
      ASSERT_EQ(arena.largest_free(), naive.largest());
    }
    for (const auto& [offset, size] : pieces) arena.give(offset, size);
    EXPECT_EQ(arena.used_bytes(), 0u);
    EXPECT_EQ(arena.largest_free(), arena.free_bytes());
  }
}

TEST(Arena, NoSizeWraps) {
  Arena arena(kBegin, kBegin + 10 * kGranuleSize, kGranuleSize);
  for (const std::uint64_t size : {~std::uint64_t{0}, ~std::uint64_t{0} - 63, std::uint64_t{641}})
    EXPECT_FALSE(arena.take(size));
  EXPECT_EQ(arena.take(640), kBegin);
  EXPECT_FALSE(Arena(kBegin, kBegin, kGranuleSize).take(0));
}

}  // namespace
}  // namespace cutwater::cache
