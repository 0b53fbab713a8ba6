// SPDX-License-Identifier: Apache-2.0
#include "serve/sending_cost.h"

#include <gtest/gtest.h>

namespace cutwater::serve {
namespace {

constexpr double kByte = 1e-9, kBytes = 1e7;

// A server that reads and makes for as long as it sends.
class Server {
 public:
  void goes_on(double bytes, double byte_s = kByte, double idle_s = 0) {
    now_.bytes += bytes;
    now_.worked_s += bytes * byte_s;
    now_.process_s += 2 * bytes * byte_s + idle_s;
    cost_.look(now_, false);
  }
  // A sample that takes several looks, and is sent in the last.
  void makes(double bytes, double work_s, int looks) {
    for (int i = 1; i < looks; ++i) {
      now_.process_s += work_s / looks;
      cost_.look(now_, true);
    }
    now_.worked_s += work_s;
    now_.bytes += bytes;
    now_.process_s += work_s / looks + bytes * kByte;
    cost_.look(now_, false);
  }
  double cost() const { return cost_.seconds_per_byte(); }

 private:
  SendingCost::SoFar now_ = {100, 0, 0};  // it has listed its files before
  SendingCost cost_{now_};
};

TEST(SendingCost, IsWhatNeitherReadingNorOpsTook) {
  Server server;
  EXPECT_EQ(server.cost(), 0) << "nothing was sent";
  server.goes_on(1e5);
  EXPECT_EQ(server.cost(), 0) << "too little to tell";
  for (int i = 0; i < 10; ++i) server.goes_on(kBytes);
  EXPECT_NEAR(server.cost(), kByte, 1e-12);
}

TEST(SendingCost, FollowsWhatItCostsOfLate) {
  Server server;
  for (int i = 0; i < 100; ++i) server.goes_on(kBytes);
  for (int i = 0; i < 400; ++i) server.goes_on(kBytes, 3 * kByte);
  EXPECT_NEAR(server.cost(), 3 * kByte, 0.01 * kByte);
}

TEST(SendingCost, LeavesOutWhatAnIdleServerDoes) {
  Server server;
  for (int i = 0; i < 10; ++i) server.goes_on(kBytes);
  for (int i = 0; i < 1000; ++i) server.goes_on(0, kByte, 1e-3);
  server.goes_on(kBytes);
  EXPECT_NEAR(server.cost(), kByte, 1e-12);
}

TEST(SendingCost, CountsWorkThatTakesLongWhereItEnds) {
  Server server;
  for (int i = 0; i < 50; ++i) server.makes(kBytes, 150 * kBytes * kByte, 3);
  EXPECT_NEAR(server.cost(), kByte, 1e-12);
}

TEST(SendingCost, StaysWithinReasonWhateverTheProcessDoesBesides) {
  Server server;
  server.goes_on(kBytes, kByte, 1e3);
  EXPECT_EQ(server.cost(), 1e-8);
}

}  // namespace
}  // namespace cutwater::serve
