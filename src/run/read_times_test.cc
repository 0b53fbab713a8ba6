// SPDX-License-Identifier: Apache-2.0
#include "run/read_times.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

namespace cutwater {
namespace {

double bytes_from(std::mt19937_64& random) { return 1e4 + static_cast<double>(random() % 100'000); }

TEST(ReadTimes, FollowBothLatencyAndRate) {
  for (const auto& [latency, per_byte] : {std::pair{5e-3, 0.0}, {3e-4, 1e-8}, {1e-3, 2e-8}}) {
    std::mt19937_64 random(1);
    ReadTimes times;
    for (int i = 0; i < 500; ++i) {
      const double bytes = bytes_from(random);
      times.learn(bytes, latency + per_byte * bytes);
    }
    for (const double bytes : {1e4, 5e4, 1e5})
      EXPECT_NEAR(times.usual(bytes), latency + per_byte * bytes, 1e-6);
  }
}

// Reads that are held up the longer the larger they are would have a line through nothing.
TEST(ReadTimes, SomeOfItIsNotByTheByte) {
  ReadTimes times;
  for (int i = 0; i < 100; ++i) {
    times.learn(1e4, 1e-5);
    times.learn(1e5, 3e-4);
  }
  const double mean = times.usual(5.5e4);
  EXPECT_NEAR(mean, 1.55e-4, 1e-5);
  EXPECT_GE(times.usual(0), 0.249 * mean);
  EXPECT_GT(times.usual(1e4) / 1e4, 2 * times.usual(1e5) / 1e5);
}

// Whatever is measured, a read of more bytes takes no less, and none takes less than nothing.
TEST(ReadTimes, NeverFallWithBytes) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    ReadTimes times;
    for (int i = 0; i < 200; ++i) {
      const double bytes = bytes_from(random);
      times.learn(bytes, static_cast<double>(random() % 1000) * 1e-6 + 1e2 / bytes);
      EXPECT_GE(times.usual(0), 0);
      EXPECT_LE(times.usual(1e4), times.usual(1e5));
    }
  }
}

TEST(ReadTimes, OneThatWasHeldUpCountsLittle) {
  ReadTimes times;
  for (int i = 0; i < 300; ++i) times.learn(1000, 1e-3);
  times.learn(1000, 10);
  EXPECT_NEAR(times.usual(1000), 1e-3, 2e-5);
}

}  // namespace
}  // namespace cutwater
