// SPDX-License-Identifier: Apache-2.0
#include "cache/residents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace cutwater::cache {
namespace {

using Number = Residents::Number;

// What the values are of use for, as the test wants it.
struct World {
  std::map<Number, double> uses;
  Residents residents{[this](Number number) { return uses.at(number); }};

  void add(Number number, double use, std::uint64_t bytes = 1000, double seconds = 1) {
    uses[number] = use;
    residents.add(number, bytes, seconds);
  }
};

TEST(Residents, OfEqualOnesNoneMakesWay) {
  World world;
  for (Number i = 0; i < 500; ++i) world.add(i, 1);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(world.residents.victim(1.0 / 1000));
  EXPECT_FALSE(world.residents.victim(1.2 / 1000));
  EXPECT_TRUE(world.residents.victim(1.3 / 1000));
}

TEST(Residents, WhatIsWorthNothingMakesWayForAllThatIsWorthSomething) {
  World world;
  for (Number i = 0; i < 10; ++i) world.add(i, i == 7 ? 0 : 1);
  EXPECT_EQ(world.residents.victim(1e-12), 7u);
  EXPECT_FALSE(world.residents.victim(0));
}

TEST(Residents, SecondsUsesAndBytesCount) {
  World world;
  world.add(1, 2, 1000, 3);    // 6 in 1000
  world.add(2, 2, 2000, 3);    // 3 in 1000
  world.add(3, 0.25, 100, 1);  // 2.5 in 1000
  world.add(4, 4, 1000, -1);   // nobody knows: next to nothing
  EXPECT_EQ(world.residents.victim(1), 4u);
  world.residents.remove(4);
  EXPECT_EQ(world.residents.victim(1), 3u);
  world.residents.remove(3);
  EXPECT_EQ(world.residents.victim(1), 2u);
  EXPECT_DOUBLE_EQ(world.residents.worth(1), 6);
  EXPECT_DOUBLE_EQ(world.residents.density(1), 6.0 / 1000);
}

// The hand goes round: each value is looked at, oldest first, also while others come and go.
TEST(Residents, TheHandComesByEverybody) {
  World world;
  for (Number i = 0; i < 1000; ++i) world.add(999 - i, 5);
  world.uses[500] = 1;
  int looks = 1;
  while (world.residents.victim(5.0 / 1000) != 500u) ++looks;
  EXPECT_EQ(looks, 500 / Residents::kLook + 1);
}

// Against a list in order of age, searched from the front.
TEST(Residents, DoesWhatTheNaiveOneDoes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    World world;
    struct Old {
      Number number;
      double density;
    };
    std::vector<Old> order;  // from the oldest on
    std::size_t hand = 0;
    for (int i = 0; i < 2000; ++i) {
      const double density = static_cast<double>(random() % 100) / 1024;
      if (random() % 3 != 0) {
        const auto number = static_cast<Number>(random() % 400);
        if (world.residents.contains(number)) continue;
        world.add(number, density * 1024, 1024);
        order.push_back({number, density});
        continue;
      }
      std::optional<Number> expected;
      double bound = Residents::kClearlyLess * density;
      const std::size_t look = std::min<std::size_t>(order.size(), Residents::kLook);
      for (std::size_t k = 0; k < look && bound > 0; ++k) {
        const Old& at = order[hand++];
        if (at.density < bound) {
          bound = at.density;
          expected = at.number;
        }
        hand %= order.size();
      }
      ASSERT_EQ(world.residents.victim(density), expected) << "seed " << seed << " step " << i;
      if (!expected) continue;
      const auto found = std::ranges::find(order, *expected, &Old::number);
      const auto place = static_cast<std::size_t>(found - order.begin());
      order.erase(found);
      if (place < hand) --hand;
      if (hand == order.size()) hand = 0;
      world.residents.remove(*expected);
    }
    EXPECT_EQ(world.residents.size(), order.size());
  }
}

TEST(Residents, ASweepFindsAllThatAreUseless) {
  World world;
  std::set<Number> useless;
  for (Number i = 0; i < 300; ++i) {
    world.add(i, i % 7 == 3 ? 0 : 1);
    if (i % 7 == 3) useless.insert(i);
  }
  std::set<Number> found;
  for (int sweep = 0; sweep < 30; ++sweep) {
    std::size_t look = 10;
    while (const auto number = world.residents.next_useless(look)) {
      found.insert(*number);
      world.residents.remove(*number);
    }
  }
  EXPECT_EQ(found, useless);
  std::size_t look = 1000;
  EXPECT_FALSE(world.residents.next_useless(look));
  EXPECT_EQ(look, 0u);
}

}  // namespace
}  // namespace cutwater::cache
