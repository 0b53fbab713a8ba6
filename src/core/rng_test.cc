// SPDX-License-Identifier: Apache-2.0
#include "cutwater/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

namespace cutwater {
namespace {

using Block = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// The known answers of Random123, kat_vectors.
TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  struct {
    Block counter;
    PhiloxKey key;
    Block words;
  } const vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& vector : vectors)
    EXPECT_EQ(philox4x32(vector.counter, vector.key), vector.words);
}

Block first_block(const DrawKey& key) {
  Rng rng(key);
  return {rng.bits32(), rng.bits32(), rng.bits32(), rng.bits32()};
}

// The layout of the counter is part of what a checkpoint means: pinned to the block function.
TEST(Rng, SpreadsTheKeyOverCounterAndPhiloxKey) {
  const DrawKey key{0x1111111122222222, 0x33333333, 0x4444444455555555, 0x6666};
  Rng rng(key);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Block expected = philox4x32({0x66660000 | block, 0x33333333, 0x55555555, 0x44444444},
                                      {0x22222222, 0x11111111});
    for (const std::uint32_t word : expected) EXPECT_EQ(rng.bits32(), word);
  }
}

TEST(Rng, EveryPartOfTheKeyGivesOtherNumbers) {
  std::vector<DrawKey> keys;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32, ~0ULL})
    for (const std::uint32_t epoch : {0U, 1U, 0x10000U, ~0U})
      for (const std::uint64_t sample : {0ULL, 1ULL, 0xffffffffULL, 1ULL << 32, (1ULL << 63) - 1})
        for (const int op : {0, 1, 0x10, 0x11, 0xffff})
          keys.push_back({seed, epoch, sample, static_cast<std::uint16_t>(op)});
  std::set<Block> blocks;
  for (const DrawKey& key : keys) blocks.insert(first_block(key));
  EXPECT_EQ(blocks.size(), keys.size());
}

TEST(Rng, LongStreamsOfNeighbouringKeysNeverMeet) {
  std::set<Block> blocks;
  std::size_t count = 0;
  for (int op = 0; op < 4; ++op)
    for (std::uint64_t sample = 0; sample < 4; ++sample) {
      Rng rng({7, 3, sample, static_cast<std::uint16_t>(op)});
      for (int block = 0; block < 2000; ++block, ++count)
        blocks.insert({rng.bits32(), rng.bits32(), rng.bits32(), rng.bits32()});
    }
  EXPECT_EQ(blocks.size(), count);
}

TEST(Rng, ACopyGivesTheSameNumbersAgain) {
  for (int used = 0; used < 9; ++used) {
    Rng rng({1, 2, 3, 4});
    for (int i = 0; i < used; ++i) rng.bits32();
    Rng copy = rng;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(copy.bits32(), rng.bits32()) << "after " << used;
  }
}

TEST(Rng, SixtyFourBitsAreTwoWordsLowFirst) {
  Rng words({9, 9, 9, 9}), pairs({9, 9, 9, 9});
  for (int i = 0; i < 10; ++i) {
    const std::uint64_t low = words.bits32(), high = words.bits32();
    EXPECT_EQ(pairs.bits64(), high << 32 | low);
  }
}

TEST(Rng, BelowStaysBelow) {
  Rng rng({5, 0, 0, 0});
  for (const std::uint64_t n : {1ULL, 2ULL, 3ULL, 255ULL, 1ULL << 32, (1ULL << 63) + 1, ~0ULL})
    for (int i = 0; i < 200; ++i) EXPECT_LT(rng.below(n), n);
}

// Chi-square against the 99.9 % point; the seeds are fixed, so the verdict is, too.
TEST(Rng, BelowIsUniform) {
  const std::map<std::uint64_t, double> limits = {
      {2, 10.8}, {3, 13.8}, {7, 22.5}, {10, 27.9}, {24, 49.7}};
  for (const auto& [n, limit] : limits) {
    constexpr int kDraws = 24000;
    std::vector<int> counts(n);
    for (std::uint64_t sample = 0; sample < kDraws; ++sample)
      ++counts[Rng({11, 0, sample, 1}).below(n)];
    const double expected = static_cast<double>(kDraws) / static_cast<double>(n);
    double chi_square = 0;
    for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, limit) << "n = " << n;
  }
}

// 2^63 + 1 results out of 2^64: without the redraw, small ones would be twice as likely.
TEST(Rng, BelowDrawsAgainWhereItWouldFavourSmallNumbers) {
  constexpr std::uint64_t kMany = (1ULL << 63) + 1;
  Rng rng({13, 0, 0, 0});
  int small = 0;
  for (int i = 0; i < 4000; ++i) small += rng.below(kMany) < kMany / 2 ? 1 : 0;
  EXPECT_NEAR(small, 2000, 150);
}

TEST(Rng, UniformIsInTheHalfOpenInterval) {
  Rng rng({17, 0, 0, 0});
  double sum = 0, least = 1, greatest = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.uniform();
    sum += value;
    least = std::min(least, value);
    greatest = std::max(greatest, value);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(greatest, 1);
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_LT(least, 0.001);
  EXPECT_GT(greatest, 0.999);
}

TEST(Rng, UniformOfARangeStaysInIt) {
  Rng rng({19, 0, 0, 0});
  for (int i = 0; i < 1000; ++i) {
    const double value = rng.uniform(-3, 5);
    EXPECT_GE(value, -3);
    EXPECT_LT(value, 5);
  }
}

}  // namespace
}  // namespace cutwater
