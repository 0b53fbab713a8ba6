// SPDX-License-Identifier: Apache-2.0
// The first of several keys: how many round trips it takes, and what comes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cache/redis_slots.h"
#include "cache/redis_value.h"
#include "cache/test_proxy.h"
#include "cache/test_redis.h"
#include "cutwater/cache.h"

namespace cutwater::redis {
namespace {

using Keys = std::vector<CacheKey>;

Keys keys_of(SampleId sample) {
  return {{17, 1, sample, 5}, {17, 2, sample, 0}, {17, 3, sample, 0}, {17, 4, sample, 0}};
}

bool put(Cache& cache, const CacheKey& key, std::size_t size = 100) {
  return cache.put(key, size, 1, [&](std::span<std::uint8_t> place) {
    std::ranges::fill(place, static_cast<std::uint8_t>(key.form));
  });
}

// The place that was found, with the right bytes; -1: none, -2: other bytes.
int place_in(Cache& cache, const Keys& keys) {
  const Cache::First first = cache.get_first(keys);
  if (!first.value) return -1;
  const auto form = static_cast<std::uint8_t>(keys[first.place].form);
  const bool right =
      std::ranges::all_of(first.value.bytes(), [&](std::uint8_t byte) { return byte == form; });
  return right ? static_cast<int>(first.place) : -2;
}

class RedisFirst : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/bootstrap.sh test installs it";
  }
};

TEST_F(RedisFirst, TakesOneTripWhereItWasGuessedOrIsAMiss) {
  TestServer server;
  TestProxy proxy(server.port(), "{11:");
  const auto cache = redis_cache(proxy.url("?chunk=4KiB"));
  int before = 0;
  const auto trips = [&] { return proxy.trips() - std::exchange(before, proxy.trips()); };
  EXPECT_EQ(place_in(*cache, keys_of(1)), -1);
  EXPECT_EQ(trips(), 1);
  for (SampleId sample = 2; sample < 6; ++sample) ASSERT_TRUE(put(*cache, keys_of(sample)[2]));
  (void)trips();
  EXPECT_EQ(place_in(*cache, keys_of(2)), 2);  // the first was guessed
  EXPECT_EQ(trips(), 2);
  for (SampleId sample = 3; sample < 6; ++sample) EXPECT_EQ(place_in(*cache, keys_of(sample)), 2);
  EXPECT_EQ(trips(), 3);
  EXPECT_EQ(place_in(*cache, keys_of(6)), -1);
  EXPECT_EQ(trips(), 1);
  ASSERT_TRUE(put(*cache, keys_of(5)[1]));
  (void)trips();
  EXPECT_EQ(place_in(*cache, keys_of(5)), 1);  // and the second is the next guess
  EXPECT_EQ(trips(), 2);
  EXPECT_EQ(place_in(*cache, keys_of(5)), 1);
  EXPECT_EQ(trips(), 1);
  ASSERT_TRUE(put(*cache, keys_of(7)[1], 20'000));  // the other chunks come in a second trip
  (void)trips();
  EXPECT_EQ(place_in(*cache, keys_of(7)), 1);
  EXPECT_EQ(trips(), 2);
  EXPECT_EQ(place_in(*cache, {}), -1);
  EXPECT_EQ(trips(), 0);
  EXPECT_EQ(place_in(*cache, {keys_of(5)[1]}), 0);
  EXPECT_EQ(trips(), 1);
}

// A value of no use is dropped, and the next one is found: whichever was guessed.
TEST_F(RedisFirst, PassesOverWhatIsDamaged) {
  TestServer server;
  const auto cache = redis_cache(server.url());
  const Keys keys = keys_of(1);
  for (const std::size_t guess : {0, 1, 2, 3}) {
    server.ask({"FLUSHALL"});
    ASSERT_TRUE(put(*cache, keys[guess]));
    ASSERT_EQ(place_in(*cache, keys), guess);
    server.ask({"FLUSHALL"});
    server.ask({"SET", name_of("cutwater", keys[0]), "x"});
    server.ask({"RPUSH", name_of("cutwater", keys[1]), "x"});
    ASSERT_TRUE(put(*cache, keys[2]));
    ASSERT_TRUE(put(*cache, keys[3]));
    const CacheStats before = cache->stats();
    EXPECT_EQ(place_in(*cache, keys), 2) << guess;
    const auto there = [&](std::size_t one, std::size_t other) {
      return server
          .ask({"EXISTS", name_of("cutwater", keys[one]), name_of("cutwater", keys[other])})
          .number;
    };
    EXPECT_EQ(there(0, 1), 0) << guess;
    EXPECT_EQ(there(2, 3), 2) << guess;
    EXPECT_EQ(cache->stats().hits, before.hits + 1);
    EXPECT_EQ(cache->stats().misses, before.misses + 2);
  }
}

// Some forms of a sample have moved to another node, and some have not yet.
TEST_F(RedisFirst, FindsWhatIsOnItsWayToAnotherNode) {
  TestCluster cluster;
  const auto cache = redis_cache(cluster.url());
  SampleId sample = 0;
  while (slot_of(tag_of(keys_of(sample)[0])) >= kSlots / 3) ++sample;
  const Keys keys = keys_of(sample);
  const std::string slot = std::to_string(slot_of(tag_of(keys[0])));
  ASSERT_TRUE(put(*cache, keys[1]));
  ASSERT_TRUE(put(*cache, keys[3]));
  const std::string from = cluster.node(0).ask({"CLUSTER", "MYID"}).text;
  const std::string to = cluster.node(1).ask({"CLUSTER", "MYID"}).text;
  cluster.node(1).ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", from});
  cluster.node(0).ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", to});
  EXPECT_EQ(place_in(*cache, keys), 1);
  const auto move = [&](const CacheKey& key) {
    cluster.node(0).ask({"MIGRATE", "127.0.0.1", std::to_string(cluster.node(1).port()),
                         name_of("cutwater", key), "0", "5000"});
  };
  move(keys[3]);
  EXPECT_EQ(place_in(*cache, keys), 1);
  move(keys[1]);
  EXPECT_EQ(place_in(*cache, keys), 1);
  cluster.node(1).ask({"CLUSTER", "SETSLOT", slot, "NODE", to});
  cluster.node(0).ask({"CLUSTER", "SETSLOT", slot, "NODE", to});
  EXPECT_EQ(place_in(*cache, keys), 1);
}

// Who may not ask what there is asks for one after another.
TEST_F(RedisFirst, NeedsNoRightButToRead) {
  TestServer server;
  server.ask({"ACL", "SETUSER", "someone", "on", ">pw", "~cutwater:*", "+@all", "-exists"});
  const auto cache = redis_cache("redis://someone:pw@127.0.0.1:" + std::to_string(server.port()));
  ASSERT_TRUE(put(*cache, keys_of(1)[2]));
  EXPECT_EQ(place_in(*cache, keys_of(1)), 2);
  EXPECT_EQ(place_in(*cache, keys_of(2)), -1);
}

}  // namespace
}  // namespace cutwater::redis
