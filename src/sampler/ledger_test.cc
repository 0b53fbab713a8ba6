// SPDX-License-Identifier: Apache-2.0
#include "sampler/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace cutwater {
namespace {

TEST(Ledger, HeadsAreTheOrder) {
  const EpochOrder order = EpochOrder::shuffled(100, 7, 2);
  Ledger ledger(order, 100);
  for (std::int64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(ledger.issued(), position);
    EXPECT_EQ(ledger.left(), 100 - position);
    const Ledger::Claim claim = ledger.claim_head();
    ASSERT_EQ(claim.position, position);
    ASSERT_EQ(claim.id, order[position]);
  }
  EXPECT_TRUE(ledger.all_issued());
}

TEST(Ledger, AClaimOvertakesAndDisturbsNobody) {
  Ledger ledger(EpochOrder(6), 6, 0, {}, Ledger::ById::kYes);
  EXPECT_EQ(ledger.claim(3)->position, 3);
  EXPECT_FALSE(ledger.claim(3)) << "twice";
  EXPECT_EQ(ledger.claim(0)->position, 0);
  std::vector<SampleId> rest;
  while (!ledger.all_issued()) rest.push_back(ledger.claim_head().id);
  EXPECT_THAT(rest, testing::ElementsAre(1, 2, 4, 5));
}

TEST(Ledger, OneBehindTheHeadIsClaimedIfItIsLeft) {
  Ledger ledger(EpochOrder(6), 5, 0, {}, Ledger::ById::kYes);
  EXPECT_EQ(ledger.claim_behind_head(2)->position, 2);
  EXPECT_FALSE(ledger.claim_behind_head(2)) << "twice";
  EXPECT_FALSE(ledger.claim_behind_head(5)) << "beyond the end";
  EXPECT_EQ(ledger.claim_behind_head(0)->position, 0);
  EXPECT_EQ(ledger.claim_behind_head(2)->position, 3) << "the head is 1 by now";
  EXPECT_EQ(ledger.left(), 2);
}

TEST(Ledger, WhatIsNotOfThisEpochCannotBeClaimed) {
  Ledger ledger(EpochOrder(6), 4, 1, std::vector<std::int64_t>{2, 5}, Ledger::ById::kYes);
  EXPECT_EQ(ledger.left(), 2);
  for (const SampleId id : {0, 2, 4, 5, 6, 1000, -1}) {
    EXPECT_FALSE(ledger.unissued(id)) << id;
    EXPECT_FALSE(ledger.claim(id)) << id;
  }
  EXPECT_TRUE(ledger.unissued(3));
  ledger.stop();
  EXPECT_FALSE(ledger.unissued(3));
  EXPECT_TRUE(ledger.all_issued());
}

// Whatever is done before, and however heads and claims mix: the rest, once each.
TEST(Ledger, IssuesTheRestOnce) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
    };
    const std::int64_t size = below(200), end = below(size + 1);
    const EpochOrder order =
        seed % 3 == 0 ? EpochOrder(size) : EpochOrder::shuffled(size, seed, seed);
    const std::int64_t position = below(size + 1);
    std::vector<std::int64_t> beyond;
    std::set<SampleId> expected;
    for (std::int64_t p = position; p < size; ++p) {
      if (below(3) == 0)
        beyond.push_back(p);
      else if (p < end)
        expected.insert(order[p]);
    }
    Ledger ledger(order, end, position, beyond, Ledger::ById::kYes);
    std::int64_t head = -1;
    while (!ledger.all_issued()) {
      const SampleId wanted = below(size + 4) - 2;
      const bool there = expected.contains(wanted);
      ASSERT_EQ(ledger.unissued(wanted), there);
      std::optional<Ledger::Claim> claim;
      if (below(2) == 0) {
        claim = ledger.claim(wanted);
        ASSERT_EQ(claim.has_value(), there);
        if (!claim) continue;
        ASSERT_EQ(claim->id, wanted);
      } else {
        claim = ledger.claim_head();
        ASSERT_GT(claim->position, head);
        head = claim->position;
      }
      ASSERT_EQ(order[claim->position], claim->id);
      ASSERT_EQ(expected.erase(claim->id), 1U) << "seed " << seed;
    }
    ASSERT_TRUE(expected.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cutwater
