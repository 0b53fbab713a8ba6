// SPDX-License-Identifier: Apache-2.0
#include "sampler/epoch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "cutwater/error.h"

namespace cutwater {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<SampleId> ids_of(const EpochOrder& order) {
  std::vector<SampleId> ids;
  for (std::int64_t position = 0; position < order.size(); ++position)
    ids.push_back(order[position]);
  return ids;
}

std::vector<SampleId> shuffled(std::int64_t size, std::uint64_t seed, std::uint32_t epoch) {
  return ids_of(EpochOrder::shuffled(size, seed, epoch));
}

TEST(EpochOrder, UnshuffledIsTheListing) {
  for (const std::int64_t size : {0, 1, 2, 1000}) {
    const EpochOrder order(size);
    EXPECT_EQ(order.size(), size);
    for (std::int64_t position = 0; position < size; ++position)
      EXPECT_EQ(order[position], position);
  }
}

TEST(EpochOrder, ShuffledHasEverySampleOnce) {
  std::vector<std::int64_t> sizes = {0, 1, 2, 3};
  for (std::int64_t power = 4; power <= 1 << 17; power *= 2)
    sizes.insert(sizes.end(), {power - 1, power, power + 1});
  for (const std::int64_t size : sizes) {
    std::vector<bool> seen(static_cast<std::size_t>(size));
    for (const SampleId id : shuffled(size, 42, 3)) {
      ASSERT_GE(id, 0);
      ASSERT_LT(id, size);
      ASSERT_FALSE(seen[static_cast<std::size_t>(id)]) << id << " twice of " << size;
      seen[static_cast<std::size_t>(id)] = true;
    }
  }
}

TEST(EpochOrder, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(shuffled(1000, 7, 3), shuffled(1000, 7, 3));
  const std::vector<SampleId> base = shuffled(1000, 7, 3);
  for (const auto& [seed, epoch] : {std::pair<std::uint64_t, std::uint32_t>{8, 3},
                                    {7, 4},
                                    {7 + (1ULL << 32), 3},
                                    {7, 3U + (1U << 31)},
                                    {3, 7}})
    EXPECT_NE(shuffled(1000, seed, epoch), base) << seed << " " << epoch;
}

// A checkpoint holds a position in this order: it must never change.
TEST(EpochOrder, IsPinned) {
  EXPECT_THAT(shuffled(8, 1, 0), testing::ElementsAre(0, 2, 6, 5, 3, 1, 4, 7));
}

// 24 permutations, chi-square with 23 degrees of freedom: 49.7 is its 99.9 % point. Over epochs of
// one seed and over seeds of one epoch; all fixed, so the verdict is, too.
TEST(EpochOrder, EveryPermutationIsEquallyLikely) {
  constexpr int kDraws = 24'000;
  for (const bool over_seeds : {false, true}) {
    std::map<std::vector<SampleId>, int> counts;
    for (std::uint32_t i = 0; i < kDraws; ++i)
      ++counts[over_seeds ? shuffled(4, i, 5) : shuffled(4, 99, i)];
    ASSERT_EQ(counts.size(), 24U);
    double chi_square = 0;
    for (const auto& [order, count] : counts)
      chi_square += (count - kDraws / 24.0) * (count - kDraws / 24.0) / (kDraws / 24.0);
    EXPECT_LT(chi_square, 49.7);
  }
}

TEST(EpochOrder, EverySampleComesToEveryPlace) {
  constexpr std::int64_t kSize = 10;
  std::map<std::pair<std::int64_t, SampleId>, int> counts;
  for (std::uint32_t epoch = 0; epoch < 5000; ++epoch) {
    const EpochOrder order = EpochOrder::shuffled(kSize, 1, epoch);
    for (std::int64_t position = 0; position < kSize; ++position)
      ++counts[{position, order[position]}];
  }
  EXPECT_EQ(counts.size(), 100U);
  for (const auto& [place, count] : counts) EXPECT_NEAR(count, 500, 110);  // five deviations
}

TEST(EpochOrder, RefusesWhatItsWordsCannotHold) {
  EXPECT_THAT([] { EpochOrder::shuffled(std::int64_t{1} << 32, 0, 0); },
              ThrowsMessage<Error>(
                  HasSubstr("a data set of 4294967296 samples is too large to shuffle (2^32)")));
}

}  // namespace
}  // namespace cutwater
