// SPDX-License-Identifier: Apache-2.0
#include "run/memory_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <random>
#include <thread>
#include <vector>

#include "cutwater/error.h"

namespace cutwater {
namespace {

using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(MemoryGate, LetsInWhatFits) {
  MemoryGate gate(100);
  gate.enter(60);
  gate.enter(40);
  gate.leave(60);
  gate.enter(60);
  gate.enter(0);
}

TEST(MemoryGate, LetsOneInWhateverTheBatchesHold) {
  MemoryGate gate(100);
  gate.set_batch_bytes(1000);
  gate.enter(100);  // waiting would help nobody
  gate.leave(100);
  gate.enter(1);
}

TEST(MemoryGate, RefusesWhatCanNeverFit) {
  MemoryGate gate(100);
  EXPECT_THAT(
      [&] { gate.enter(101); },
      ThrowsMessage<Error>(StrEq("needs 101 bytes of working memory, more than memory_limit 100; "
                                 "raise memory_limit")));
  gate.enter(100);
}

TEST(MemoryGate, WhatNobodyWaitsForTakesAQuarterAtMost) {
  MemoryGate gate(100);
  EXPECT_FALSE(gate.try_enter(26));
  EXPECT_TRUE(gate.try_enter(20));
  EXPECT_FALSE(gate.try_enter(6));
  gate.leave(20);
  gate.force_read(20);
  EXPECT_FALSE(gate.try_enter(6));
  gate.end_read(20);
  gate.set_batch_bytes(90);
  EXPECT_FALSE(gate.try_enter(11));
  EXPECT_TRUE(gate.try_enter(10));
  gate.close();
  EXPECT_FALSE(gate.try_enter(0));
}

// The sum that the threads keep themselves is never more than what the gate let in.
TEST(MemoryGate, NeverLetsInMoreThanTheLimit) {
  constexpr std::int64_t kLimit = 100;
  MemoryGate gate(kLimit);
  std::atomic<std::int64_t> inside = 0;
  std::atomic<int> too_many = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 6; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 300; ++i) {
          const auto bytes = static_cast<std::int64_t>(1 + random() % 60);
          gate.enter(static_cast<std::size_t>(bytes));
          if (inside.fetch_add(bytes) + bytes > kLimit) ++too_many;
          std::this_thread::yield();
          inside.fetch_sub(bytes);
          gate.leave(static_cast<std::size_t>(bytes));
        }
      });
  }
  EXPECT_EQ(too_many, 0);
}

// Enters in another thread. `entered` is set only after the gate let it in.
class Visitor {
 public:
  Visitor(MemoryGate& gate, std::size_t bytes)
      : thread_([this, &gate, bytes] {
          started_.count_down();
          try {
            gate.enter(bytes);
            entered = true;
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), Code::kCancelled);
            EXPECT_STREQ(error.what(), "the loader was closed");
          }
        }) {
    started_.wait();
  }
  void join() { thread_.join(); }

  std::atomic<bool> entered = false;

 private:
  std::latch started_{1};
  std::jthread thread_;
};

TEST(MemoryGate, WaitsUntilTheOthersLeave) {
  MemoryGate gate(100);
  gate.enter(60);
  gate.enter(20);
  Visitor visitor(gate, 90);
  gate.leave(20);
  EXPECT_FALSE(visitor.entered) << "60 are inside still";
  gate.leave(60);
  visitor.join();
  EXPECT_TRUE(visitor.entered);
}

TEST(MemoryGate, BatchesCountAndWakeWhenTheyShrink) {
  MemoryGate gate(100);
  gate.enter(10);
  gate.set_batch_bytes(80);
  Visitor visitor(gate, 20);
  EXPECT_FALSE(visitor.entered);
  gate.set_batch_bytes(90);
  EXPECT_FALSE(visitor.entered);
  gate.set_batch_bytes(70);
  visitor.join();
  EXPECT_TRUE(visitor.entered);
}

TEST(MemoryGate, ClosingTurnsAwayThoseWhoWaitAndThoseWhoCome) {
  MemoryGate gate(100);
  gate.enter(60);
  Visitor one(gate, 50), two(gate, 100);
  gate.close();
  one.join();
  two.join();
  EXPECT_FALSE(one.entered);
  EXPECT_FALSE(two.entered);
  EXPECT_THAT([&] { gate.enter(1); }, ThrowsMessage<Error>(StrEq("the loader was closed")));
  gate.leave(60);
}

}  // namespace
}  // namespace cutwater
