// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_node.h"

#include <gtest/gtest.h>

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;

struct Trips {
  bool add(bool is_slow, std::chrono::milliseconds began, std::chrono::milliseconds ended) {
    return node.add_trip(is_slow, start + began, start + ended);
  }
  const Clock::time_point start = Clock::now();
  Node node{Endpoint{}, {}};
};

TEST(RedisNode, EightSlowTripsInARowMakeItSlowOnce) {
  Trips trips;
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(trips.add(true, i * 100ms, (i + 1) * 100ms));
  EXPECT_TRUE(trips.add(true, 700ms, 800ms));
  EXPECT_FALSE(trips.add(true, 800ms, 900ms));
}

TEST(RedisNode, SlowTripsAtTheSameTimeCountAsOne) {
  Trips trips;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(trips.add(true, i * 1ms, 300ms + i * 1ms));
  for (int i = 1; i < 7; ++i) EXPECT_FALSE(trips.add(true, i * 1000ms, i * 1000ms + 200ms));
  EXPECT_TRUE(trips.add(true, 7000ms, 7200ms)) << "the eighth accident";
}

TEST(RedisNode, AQuickTripForgives) {
  Trips trips;
  EXPECT_FALSE(trips.node.was_ever_quick());
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(trips.add(i % 7 != 0, i * 100ms, (i + 1) * 100ms));
  EXPECT_TRUE(trips.node.was_ever_quick());
}

}  // namespace
}  // namespace cutwater::redis
