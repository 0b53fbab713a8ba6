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
  EXPECT_FALSE(world.residents.victim(0.99 / Residents::kClearlyLess / 1000));
  EXPECT_TRUE(world.residents.victim(1.01 / Residents::kClearlyLess / 1000));
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

// What can go is found wherever it lies: here, among the newest, behind many that are wanted.
TEST(Residents, LooksAnywhere) {
  World world;
  constexpr Number kCount = 10'000;
  for (Number i = 0; i < kCount; ++i) world.add(i, i < kCount * 9 / 10 ? 5 : 1);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const auto victim = world.residents.victim(5.0 / 1000);
    if (!victim) continue;
    ++found;
    EXPECT_GE(*victim, kCount * 9 / 10);
  }
  EXPECT_GT(found, 190);  // by chance, one of a thousand is missed
}

// Each value is looked at in turn, also while others come and go.
TEST(Residents, EverybodyIsSwept) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    World world;
    std::set<Number> there;
    for (int i = 0; i < 2000; ++i) {
      const auto number = static_cast<Number>(random() % 400);
      if (!world.residents.contains(number)) {
        world.add(number, 1);
        there.insert(number);
      } else if (random() % 3 == 0) {
        world.residents.remove(number);
        there.erase(number);
      }
      ASSERT_EQ(world.residents.size(), there.size());
    }
    for (const Number number : there) world.uses[number] = 0;
    std::set<Number> found;
    std::size_t look = there.size();
    while (const auto number = world.residents.next_useless(look)) {
      found.insert(*number);
      if (random() % 2 == 0) world.residents.remove(*number);
    }
    EXPECT_EQ(found, there) << "seed " << seed;
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

TEST(Residents, AllThatShouldMakeWayAreNamedTheLeastDenseFirst) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    World world;
    const auto count = static_cast<Number>(1 + random() % 200);
    for (Number i = 0; i < count; ++i) world.add(i, static_cast<double>(random() % 4));
    const double density = static_cast<double>(random() % 5) / 1000;
    const std::vector<Number> victims = world.residents.victims(density);
    const auto its = [&](Number number) { return world.residents.density(number); };
    EXPECT_TRUE(std::ranges::is_sorted(victims, {}, its));
    EXPECT_EQ(std::set(victims.begin(), victims.end()).size(), victims.size());
    for (const Number number : victims) EXPECT_LT(its(number), Residents::kClearlyLess * density);
    if (count > Residents::kLook) continue;  // some of them, by chance
    std::size_t below = 0;
    for (Number i = 0; i < count; ++i)
      below += its(i) < Residents::kClearlyLess * density ? 1U : 0U;
    EXPECT_EQ(victims.size(), below) << "seed " << seed;
  }
}

// Whoever follows along knows at any time which values are there.
TEST(Residents, SaysWhereEachStands) {
  std::mt19937 random(3);
  std::map<std::size_t, Number> roll;
  Residents residents([](Number) { return 1.0; },
                      [&](Number number, std::size_t place) { roll[place] = number; });
  std::set<Number> there;
  for (int step = 0; step < 2000; ++step) {
    const auto number = static_cast<Number>(random() % 50);
    if (there.insert(number).second) {
      residents.add(number, 100, 1);
    } else {
      residents.remove(number);
      there.erase(number);
    }
    std::size_t look = random() % 3;
    (void)residents.next_useless(look);
    std::set<Number> told;
    for (std::size_t place = 0; place < residents.size(); ++place) told.insert(roll.at(place));
    ASSERT_EQ(told, there) << "step " << step;
  }
}

// Whatever comes, goes and is looked at in between: what is named is there, once it is asked for
// often enough all of it is, and nothing that has gone is.
TEST(Residents, NamesWhatIsThereAndNothingElse) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    World world;
    std::set<Number> there;
    for (int step = 0; step < 500; ++step) {
      const auto number = static_cast<Number>(random() % 20);
      if (there.contains(number) && random() % 2 == 0) {
        world.residents.remove(number);
        there.erase(number);
      } else if (!there.contains(number)) {
        world.add(number, random() % 2);
        there.insert(number);
      }
      std::size_t look = random() % 4;
      for (const auto& named : {world.residents.next_useless(look), world.residents.victim(1)})
        ASSERT_TRUE(!named || there.contains(*named)) << "seed " << seed << ", step " << step;
      ASSERT_EQ(world.residents.size(), there.size());
      for (Number i = 0; i < 20; ++i)
        ASSERT_EQ(world.residents.contains(i), there.contains(i)) << "seed " << seed;
    }
    while (const auto victim = world.residents.victim(1)) {
      ASSERT_EQ(there.erase(*victim), 1u) << "seed " << seed;
      world.residents.remove(*victim);
    }
    ASSERT_TRUE(there.empty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace cutwater::cache
