// SPDX-License-Identifier: Apache-2.0
// Servers that are not there, die, stop or move: nobody waits for long, and all comes back by
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cache/redis_slots.h"
#include "cache/redis_value.h"
#include "cache/test_proxy.h"
#include "cache/test_redis.h"
#include "cutwater/cache.h"

namespace cutwater::redis {
namespace {

using testing::HasSubstr;

CacheKey key_of(SampleId sample) { return {17, 42, sample, 0}; }

bool put(Cache& cache, SampleId sample, std::size_t size = 1000) {
  return cache.put(key_of(sample), size, 1, [&](std::span<std::uint8_t> place) {
    std::ranges::fill(place, static_cast<std::uint8_t>(sample));
  });
}

enum class Got { kRight, kMiss, kWrong };
Got got(Cache& cache, SampleId sample) {
  const CacheValue value = cache.get(key_of(sample));
  if (!value) return Got::kMiss;
  const bool right = std::ranges::all_of(
      value.bytes(), [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(sample); });
  return right ? Got::kRight : Got::kWrong;
}

bool is_well(const Cache& cache) { return cache.trouble().empty(); }

class RedisFailure : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/bootstrap.sh test installs it";
  }
};

TEST(RedisNobody, IsNoError) {
  const auto cache = redis_cache("redis://127.0.0.1:" + std::to_string(free_port()));
  EXPECT_THAT(cache->trouble(), HasSubstr("Connection refused; meanwhile samples come from"));
  EXPECT_EQ(got(*cache, 1), Got::kMiss);
  EXPECT_FALSE(cache->has_room(key_of(9), 1, 1));
  EXPECT_FALSE(put(*cache, 1));
  cache->drop(key_of(1));
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_EQ(cache->stats().refused, 1);
  EXPECT_EQ(cache->stats().bytes, 0u);
  const auto seat = cache->seat({"job", 17, 10, {42}});
  (void)seat->begin_epoch(1);
  std::vector<SampleId> samples;
  seat->arrivals(samples);
  EXPECT_TRUE(samples.empty());
}

// Listens, and never says a word.
TEST(RedisNobody, SilenceHasADeadline) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  const auto cache = redis_cache("redis://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) +
                                 "?timeout=100ms");
  EXPECT_TRUE(
      comes_true([&] { return cache->trouble().find("no answer in time") != std::string::npos; }));
  EXPECT_EQ(got(*cache, 1), Got::kMiss);
  ::close(fd);
}

TEST_F(RedisFailure, AServerThatDiesComesBack) {
  TestServer server;
  const auto cache = redis_cache(server.url());
  ASSERT_TRUE(put(*cache, 1));
  EXPECT_EQ(got(*cache, 1), Got::kRight);
  server.kill();
  EXPECT_EQ(got(*cache, 1), Got::kMiss);
  EXPECT_FALSE(put(*cache, 2));
  EXPECT_FALSE(is_well(*cache));
  server.start();
  EXPECT_TRUE(comes_true([&] { return is_well(*cache); }));
  EXPECT_EQ(got(*cache, 1), Got::kMiss);  // it has forgotten all
  EXPECT_TRUE(put(*cache, 1));
  EXPECT_EQ(got(*cache, 1), Got::kRight);
}

// A restart that nobody noticed: idle connections are dead, and the next caller does not care.
TEST_F(RedisFailure, AClosedConnectionIsReplaced) {
  TestServer server;
  const auto cache = redis_cache(server.url());
  ASSERT_TRUE(put(*cache, 1));
  server.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  EXPECT_EQ(got(*cache, 1), Got::kRight);
  EXPECT_TRUE(is_well(*cache));
}

TEST_F(RedisFailure, AServerKilledUnderLoadCostsHitsOnly) {
  TestServer server;
  const auto cache = redis_cache(server.url("?chunk=4KiB"));
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0}, right{0};
  const auto work = [&](SampleId first) {
    for (SampleId i = first; !stop; ++i) {
      const SampleId id = i % 50;
      const Got result = got(*cache, id);
      if (result == Got::kMiss) (void)put(*cache, id, 20'000);
      wrong += result == Got::kWrong;
      right += result == Got::kRight;
    }
  };
  std::thread one(work, 0), two(work, 25);
  for (int round = 0; round < 3; ++round) {
    const int before = right;
    EXPECT_TRUE(comes_true([&] { return right > before + 100; }));
    server.kill();
    EXPECT_TRUE(comes_true([&] { return !is_well(*cache); }));
    server.start();
  }
  const int before = right;
  EXPECT_TRUE(comes_true([&] { return right > before + 100; }));
  stop = true;
  one.join();
  two.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(RedisFailure, AServerThatStopsIsLeftAlone) {
  TestServer server;
  const auto cache = redis_cache(server.url("?timeout=200ms"));
  ASSERT_TRUE(put(*cache, 1));
  server.freeze();
  EXPECT_TRUE(comes_true([&] { return got(*cache, 1) == Got::kMiss; }));
  EXPECT_THAT(cache->trouble(), HasSubstr("no answer in time"));
  EXPECT_FALSE(put(*cache, 2));
  server.thaw();
  EXPECT_TRUE(comes_true([&] { return got(*cache, 1) == Got::kRight; }));
  EXPECT_TRUE(comes_true([&] { return is_well(*cache); }));
}

// It answers in time, and later than samples are made without it.
TEST_F(RedisFailure, AServerThatIsSlowIsLeftAloneForLongerAndLonger) {
  TestServer server;
  TestProxy proxy(server.port(), "{11:");
  const auto cache = redis_cache(proxy.url("?slow=10ms"));
  ASSERT_TRUE(put(*cache, 1));
  proxy.set_delay(std::chrono::milliseconds(30));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(got(*cache, 1), Got::kRight);
  EXPECT_TRUE(is_well(*cache));
  EXPECT_TRUE(comes_true([&] { return got(*cache, 1) == Got::kMiss; }));
  // At first it is tried again after 0.1 s.
  auto last_hit = Clock::now();
  std::string trouble;
  EXPECT_TRUE(comes_true([&] {
    if (got(*cache, 1) != Got::kMiss) last_hit = Clock::now();
    if (const std::string now = cache->trouble(); !now.empty()) trouble = now;
    return Clock::now() > last_hit + std::chrono::milliseconds(700);
  }));
  EXPECT_THAT(trouble, HasSubstr("it answers in 0."));
  EXPECT_THAT(trouble, HasSubstr("slow=10ms in the URL is the limit"));
  proxy.set_delay(std::chrono::milliseconds(0));
  EXPECT_TRUE(comes_true([&] { return got(*cache, 1) == Got::kRight && is_well(*cache); }));
}

// One quick answer is as good as any number of slow ones.
TEST_F(RedisFailure, AServerThatIsSometimesSlowIsUsed) {
  TestServer server;
  TestProxy proxy(server.port(), "{11:");
  const auto cache = redis_cache(proxy.url("?slow=400ms"));
  ASSERT_TRUE(put(*cache, 1));
  for (const int delay : {500, 500, 500, 500, 0, 500, 500, 500, 500}) {
    proxy.set_delay(std::chrono::milliseconds(delay));
    EXPECT_EQ(got(*cache, 1), Got::kRight);
  }
  EXPECT_TRUE(is_well(*cache));
}

// What is large takes its time: 10 ms and what 20 MB may take.
TEST_F(RedisFailure, WhatIsLargeMayTakeItsTime) {
  TestServer server;
  TestProxy proxy(server.port(), "{11:");
  const auto cache = redis_cache(proxy.url("?slow=10ms&chunk=32MiB&timeout=20s"));
  ASSERT_TRUE(put(*cache, 2, 20'000'000));
  proxy.set_delay(std::chrono::milliseconds(50));
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(got(*cache, 2), Got::kRight);
  EXPECT_TRUE(is_well(*cache));
}

TEST_F(RedisFailure, ANodeThatDiesTakesItsShareOnly) {
  TestCluster cluster;
  const auto cache = redis_cache(cluster.url() + "?timeout=500ms");
  for (SampleId id = 0; id < 60; ++id) ASSERT_TRUE(put(*cache, id));
  cluster.node(1).kill();
  int right = 0;
  for (SampleId id = 0; id < 60; ++id) right += got(*cache, id) == Got::kRight;
  EXPECT_GT(right, 20);
  EXPECT_LT(right, 60);
  EXPECT_FALSE(is_well(*cache));
  cluster.node(1).start();  // empty, and with the slots that it had
  EXPECT_TRUE(comes_true([&] {
    int missing = 0;
    for (SampleId id = 0; id < 60; ++id)
      missing += got(*cache, id) != Got::kRight && !put(*cache, id);
    return missing == 0;
  }));
  EXPECT_TRUE(comes_true([&] { return is_well(*cache); }));
}

TEST_F(RedisFailure, SlotsMayMove) {
  TestCluster cluster;
  const auto cache = redis_cache(cluster.url());
  // A sample of node 0, to be moved to node 1.
  SampleId sample = 0;
  while (slot_of(tag_of(key_of(sample))) >= kSlots / 3) ++sample;
  const std::string slot = std::to_string(slot_of(tag_of(key_of(sample))));
  ASSERT_TRUE(put(*cache, sample));
  const std::string from = cluster.node(0).ask({"CLUSTER", "MYID"}).text;
  const std::string to = cluster.node(1).ask({"CLUSTER", "MYID"}).text;
  cluster.node(1).ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", from});
  cluster.node(0).ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", to});
  EXPECT_EQ(got(*cache, sample), Got::kRight);  // still there
  const std::string name = name_of("cutwater", key_of(sample));
  cluster.node(0).ask(
      {"MIGRATE", "127.0.0.1", std::to_string(cluster.node(1).port()), name, "0", "5000"});
  EXPECT_EQ(got(*cache, sample), Got::kRight);  // by ASK
  cluster.node(1).ask({"CLUSTER", "SETSLOT", slot, "NODE", to});
  cluster.node(0).ask({"CLUSTER", "SETSLOT", slot, "NODE", to});
  EXPECT_EQ(got(*cache, sample), Got::kRight);  // by MOVED
  cache->drop(key_of(sample));
  EXPECT_EQ(got(*cache, sample), Got::kMiss);
  EXPECT_TRUE(put(*cache, sample));
  EXPECT_EQ(got(*cache, sample), Got::kRight);
}

}  // namespace
}  // namespace cutwater::redis
