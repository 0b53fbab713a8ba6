// SPDX-License-Identifier: Apache-2.0
// What every back end of Cache promises. A new one joins kBackEnds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cache/test_redis.h"
#include "cutwater/cache.h"
#include "cutwater/error.h"

namespace cutwater {
namespace {

using Bytes = std::vector<std::uint8_t>;

struct BackEnd {
  const char* name;
  std::shared_ptr<Cache> (*make)(std::size_t limit);
  // It counts its own bytes, against a limit of its own. A Redis server counts all that it needs,
  // its connections included, and a value only when it is there.
  bool counts_exactly = true;
  // What it needs and this machine may not have.
  const char* program = nullptr;
  // Of several servers, one is full before the others are: then a value may find room or not.
  bool is_many = false;
};

// One server for all tests, empty at the beginning of each.
std::shared_ptr<Cache> redis_with_room(std::size_t limit) {
  static redis::TestServer server;
  server.set_room(limit);
  return redis_cache(server.url());
}
std::shared_ptr<Cache> redis_cluster_with_room(std::size_t limit) {
  static redis::TestCluster cluster;
  cluster.set_room(limit);
  return redis_cache(cluster.url());
}

const BackEnd kBackEnds[] = {
    {"memory", memory_cache},
    {"redis", redis_with_room, false, "redis-server"},
    {"redis_cluster", redis_cluster_with_room, false, "redis-server", true}};

class CacheContract : public testing::TestWithParam<BackEnd> {
 protected:
  void SetUp() override {
    const char* const program = GetParam().program;
    if (program != nullptr && !redis::is_program(program))
      GTEST_SKIP() << program << " is not installed: tools/bootstrap.sh test installs it";
  }
  static bool counts_exactly() { return GetParam().counts_exactly; }
  static std::shared_ptr<Cache> make(std::size_t limit) { return GetParam().make(limit); }
};

CacheKey key_of(SampleId sample, std::uint64_t space = 1) { return {space, space, sample, 0}; }

// Bytes that no other sample has.
Bytes bytes_of(SampleId sample, std::size_t size) {
  std::mt19937_64 random(static_cast<std::uint64_t>(sample));
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

bool put(Cache& cache, const CacheKey& key, const Bytes& bytes) {
  return cache.put(key, bytes.size(), 1, [&](std::span<std::uint8_t> place) {
    EXPECT_EQ(place.size(), bytes.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data()) % 64, 0u);
    std::copy(bytes.begin(), bytes.end(), place.begin());
  });
}

Bytes got(Cache& cache, const CacheKey& key) {
  const CacheValue value = cache.get(key);
  EXPECT_TRUE(value);
  return {value.bytes().begin(), value.bytes().end()};
}

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_P(CacheContract, GivesWhatWasPut) {
  const auto cache = make(kMiB);
  EXPECT_FALSE(cache->get(key_of(3)));
  for (const std::size_t size : {0, 1, 63, 64, 65, 5000}) {
    const auto id = static_cast<SampleId>(size);
    EXPECT_TRUE(put(*cache, key_of(id), bytes_of(id, size)));
  }
  for (const std::size_t size : {5000, 0, 1, 63, 64, 65}) {
    const auto id = static_cast<SampleId>(size);
    EXPECT_EQ(got(*cache, key_of(id)), bytes_of(id, size));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(cache->get(key_of(id)).bytes().data()) % 64, 0u);
  }
  EXPECT_FALSE(cache->get(key_of(2)));
}

TEST_P(CacheContract, KeysThatDifferAnywhereAreOthers) {
  const auto cache = make(kMiB);
  const CacheKey keys[] = {{1, 2, 3, 0}, {2, 2, 3, 0}, {1, 3, 3, 0}, {1, 2, 4, 0},
                           {1, 2, 3, 1}, {2, 1, 3, 0}, {1, 2, 0, 3}};
  SampleId number = 0;
  for (const CacheKey& key : keys) EXPECT_TRUE(put(*cache, key, bytes_of(number++, 100)));
  number = 0;
  for (const CacheKey& key : keys) EXPECT_EQ(got(*cache, key), bytes_of(number++, 100));
}

TEST_P(CacheContract, AKeyKeepsItsFirstValue) {
  const auto cache = make(kMiB);
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 100)));
  EXPECT_FALSE(put(*cache, key_of(1), bytes_of(2, 100)));
  EXPECT_EQ(got(*cache, key_of(1)), bytes_of(1, 100));
  EXPECT_EQ(cache->stats().entries, 1);
  EXPECT_EQ(cache->stats().refused, 1);
}

TEST_P(CacheContract, AFullCacheRefusesAndKeepsWhatItHas) {
  const auto cache = make(kMiB);
  SampleId kept = 0;
  while (put(*cache, key_of(kept), bytes_of(kept, 10'000))) ++kept;
  EXPECT_GE(kept, 95);  // of 104 that would be without anything beside them
  EXPECT_EQ(cache->has_room(10'000), GetParam().is_many);
  if (counts_exactly()) {
    EXPECT_LE(cache->stats().bytes, kMiB);
    EXPECT_EQ(cache->stats().limit, kMiB);
  }
  EXPECT_EQ(cache->stats().entries, kept);
  for (SampleId id = 0; id < kept; ++id) EXPECT_EQ(got(*cache, key_of(id)), bytes_of(id, 10'000));
  EXPECT_FALSE(cache->get(key_of(kept)));
}

TEST_P(CacheContract, WhatIsTooLargeLeavesRoomForOthers) {
  const auto cache = make(kMiB);
  for (const std::size_t size : {2 * kMiB, kMiB, SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2}) {
    EXPECT_FALSE(cache->has_room(size));
    EXPECT_FALSE(cache->put(key_of(1), size, 1, [](std::span<std::uint8_t>) { FAIL(); }));
  }
  EXPECT_TRUE(cache->has_room(1000));
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 1000)));
}

TEST_P(CacheContract, ACacheOfHardlyAnythingRefuses) {
  for (const std::size_t limit : {1, 64, 100}) {
    const auto cache = make(limit);
    EXPECT_FALSE(put(*cache, key_of(1), bytes_of(1, 100)));
    EXPECT_FALSE(cache->get(key_of(1)));
    if (counts_exactly()) {
      EXPECT_LE(cache->stats().bytes, limit);
    }
  }
}

TEST_P(CacheContract, AValueOutlivesItsCache) {
  auto cache = make(kMiB);
  ASSERT_TRUE(put(*cache, key_of(1), bytes_of(1, 5000)));
  const CacheValue value = cache->get(key_of(1));
  cache.reset();
  EXPECT_EQ(Bytes(value.bytes().begin(), value.bytes().end()), bytes_of(1, 5000));
}

TEST_P(CacheContract, WhatWasNotWrittenToItsEndIsNotThere) {
  const auto cache = make(kMiB);
  const auto fail = [](std::span<std::uint8_t>) { throw std::runtime_error("no more"); };
  EXPECT_THROW(cache->put(key_of(1), 100, 1, fail), std::runtime_error);
  EXPECT_FALSE(cache->get(key_of(1)));
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 100)));
  EXPECT_EQ(got(*cache, key_of(1)), bytes_of(1, 100));
}

TEST_P(CacheContract, CountsAddUp) {
  const auto cache = make(kMiB);
  for (SampleId id = 0; id < 10; ++id) put(*cache, key_of(id), bytes_of(id, 10));
  for (SampleId id = 0; id < 25; ++id) (void)cache->get(key_of(id));
  const CacheStats stats = cache->stats();
  EXPECT_EQ(stats.entries, 10);
  EXPECT_EQ(stats.hits, 10);
  EXPECT_EQ(stats.misses, 15);
  EXPECT_EQ(stats.refused, 0);
  EXPECT_GE(stats.bytes, 100u);
}

// All threads put and get the same keys: one of them wins each key, nobody sees half a value.
TEST_P(CacheContract, ManyThreads) {
  constexpr SampleId kKeys = 400;
  constexpr int kThreads = 4;
  const auto cache = make(2 * kMiB);
  std::atomic<int> wins{0}, wrong{0};
  const auto size = [](SampleId id) { return static_cast<std::size_t>(id % 7) * 1000 + 8; };
  const auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 4 * kKeys; ++i) {
      const auto id = static_cast<SampleId>(random() % kKeys);
      if (const CacheValue value = cache->get(key_of(id))) {
        const Bytes expected = bytes_of(id, size(id));
        if (!std::ranges::equal(value.bytes(), expected)) ++wrong;
      } else if (put(*cache, key_of(id), bytes_of(id, size(id)))) {
        ++wins;
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  const CacheStats stats = cache->stats();
  EXPECT_EQ(stats.entries, wins);
  EXPECT_EQ(stats.hits + stats.misses, kThreads * 4 * kKeys);
  EXPECT_LE(stats.bytes, stats.limit);
  EXPECT_GT(wins, 300);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, CacheContract, testing::ValuesIn(kBackEnds),
                         [](const auto& of) { return std::string(of.param.name); });

TEST(CacheKey, NumbersDifferWhereDataPrefixCodecOrDrawDo) {
  EXPECT_EQ(data_number("data"), data_number("data"));
  EXPECT_NE(data_number("data"), data_number("data2"));
  const std::uint64_t one = form_number("prefix", {});
  EXPECT_EQ(one, form_number("prefix", codec_named("none")));
  EXPECT_NE(one, form_number("prefix2", {}));
  EXPECT_NE(one, form_number("prefix", codec_named("lz4")));
  EXPECT_NE(form_number("prefix", codec_named("zstd:1")),
            form_number("prefix", codec_named("zstd:2")));
  EXPECT_NE(draw_number(1, 2), draw_number(2, 1));
  EXPECT_EQ(draw_number(1, 2), draw_number(1, 2));
  EXPECT_NE(draw_number(0, 0), 0u);
}

}  // namespace
}  // namespace cutwater
