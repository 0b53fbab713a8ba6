// SPDX-License-Identifier: Apache-2.0
#include "profile/team.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace cutwater {
namespace {

TEST(Team, EveryThreadWorksAtOnceAndEachThingIsDoneOnce) {
  Team team(3, {});
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> there{0};
    team.every([&](std::size_t) {
      ++there;
      while (there < 3) std::this_thread::yield();  // none is done before all have begun
    });
    std::vector<std::atomic<int>> times(100);
    team.each(times.size(), [&](std::size_t worker, std::size_t i) {
      EXPECT_LT(worker, 3u);
      ++times[i];
    });
    for (const std::atomic<int>& count : times) EXPECT_EQ(count, 1);
  }
}

TEST(Team, AFailureEndsTheWorkAndTheTeamGoesOn) {
  Team team(2, {});
  std::atomic<int> done{0};
  EXPECT_THROW(team.each(~std::size_t{0},  // would not end otherwise
                         [](std::size_t, std::size_t i) {
                           if (i == 10) throw std::runtime_error("no");
                         }),
               std::runtime_error);
  team.each(10, [&](std::size_t, std::size_t) { ++done; });
  EXPECT_EQ(done, 10);
}

TEST(Team, WhoWaitsCanEndTheWork) {
  Team team(2, [] { throw std::runtime_error("enough"); });
  EXPECT_THROW(team.each(~std::size_t{0}, [](std::size_t, std::size_t) {}), std::runtime_error);
}

}  // namespace
}  // namespace cutwater
