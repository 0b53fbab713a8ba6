// SPDX-License-Identifier: Apache-2.0
// What every back end of Cache promises of its values.
#include "cache/cache_contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>
#include <tuple>
#include <vector>

#include "cutwater/error.h"

namespace cutwater {
namespace {

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

// However it is found, and with as many hits and misses.
TEST_P(CacheContract, TheFirstOfSomeKeysIsTheFirstThatHasAValue) {
  const auto cache = make(16 * kMiB);
  std::mt19937_64 random(1);
  for (SampleId sample = 0; sample < 100; ++sample) {
    std::vector<CacheKey> keys;
    for (std::uint64_t form = 0, forms = random() % 6; form < forms; ++form) {
      keys.push_back({1, form, sample, 0});
      const std::size_t size = random() % 4 == 0 ? 1'500'000 : 1000;  // in Redis: of two chunks
      if (random() % 3 == 0) {
        EXPECT_TRUE(put(*cache, keys.back(), bytes_of(sample, size)));
      }
    }
    if (sample % 10 == 9) keys.push_back({1, 9, sample + 1, 0});  // another sample's
    const auto counted = [&](auto&& find) {
      const CacheStats before = cache->stats();
      const Cache::First first = find();
      const CacheStats after = cache->stats();
      const auto bytes = first.value.bytes();
      return std::tuple(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), first.place,
                        static_cast<bool>(first.value), after.hits - before.hits,
                        after.misses - before.misses);
    };
    EXPECT_EQ(counted([&] { return cache->get_first(keys); }),
              counted([&] { return cache->Cache::get_first(keys); }));
    for (const CacheKey& key : keys) cache->drop(key);
  }
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
  EXPECT_EQ(cache->has_room(key_of(9), 10'000, 1), GetParam().is_many);
  if (keeps_books()) {
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
    EXPECT_FALSE(cache->has_room(key_of(9), size, 1));
    EXPECT_FALSE(cache->put(key_of(1), size, 1, [](std::span<std::uint8_t>) { FAIL(); }));
  }
  EXPECT_TRUE(cache->has_room(key_of(9), 1000, 1));
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 1000)));
}

TEST_P(CacheContract, ACacheOfHardlyAnythingRefuses) {
  for (const std::size_t limit : {1, 64, 100}) {
    const auto cache = make(limit);
    EXPECT_FALSE(put(*cache, key_of(1), bytes_of(1, 100)));
    EXPECT_FALSE(cache->get(key_of(1)));
    if (keeps_books()) {
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

TEST_P(CacheContract, WhetherItHasAKeyIsNeitherAHitNorAMiss) {
  const auto cache = make(kMiB);
  for (SampleId id = 0; id < 10; ++id) put(*cache, key_of(id), bytes_of(id, 10));
  for (SampleId id = 0; id < 20; ++id) EXPECT_EQ(cache->has(key_of(id)), id < 10) << id;
  EXPECT_EQ(cache->stats().hits + cache->stats().misses, 0);
  cache->drop(key_of(3));
  EXPECT_FALSE(cache->has(key_of(3)));
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
  EXPECT_EQ(stats.entries, wins - stats.evicted);  // a full set of the index lets one go
  EXPECT_EQ(stats.hits + stats.misses, kThreads * 4 * kKeys);
  EXPECT_LE(stats.bytes, stats.limit);
  EXPECT_GT(wins, 300);
}

TEST_P(CacheContract, WhatIsDroppedIsGoneAndMayComeBack) {
  const auto cache = make(kMiB);
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 1000)));
  cache->drop(key_of(1));
  cache->drop(key_of(2));
  EXPECT_FALSE(cache->get(key_of(1)));
  EXPECT_TRUE(put(*cache, key_of(1), bytes_of(1, 1000)));
  EXPECT_EQ(got(*cache, key_of(1)), bytes_of(1, 1000));
}

// One puts what drives out the rest, others read: what one of them holds stays as it was.
TEST_P(CacheContract, WhatIsHeldNeverChanges) {
  constexpr SampleId kKeys = 2000;
  const auto cache = make(kMiB / 2);
  std::atomic<int> wrong{0};
  std::atomic<bool> done{false};
  const auto size = [](SampleId id) { return static_cast<std::size_t>(id % 5) * 2000 + 500; };
  const auto write = [&](unsigned seed) {
    std::mt19937 random(seed);
    double seconds = 1;
    for (int i = 0; i < 3000; ++i) {
      const auto id = static_cast<SampleId>(random() % kKeys);
      put(*cache, key_of(id), bytes_of(id, size(id)), seconds *= 1.01);
      if (i % 10 == 0) cache->drop(key_of(static_cast<SampleId>(random() % kKeys)));
    }
    done = true;
  };
  const auto read = [&](unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<SampleId, CacheValue>> held(8);
    while (!done) {
      auto& [id, value] = held[random() % held.size()];
      if (value && !std::ranges::equal(value.bytes(), bytes_of(id, size(id)))) ++wrong;
      id = static_cast<SampleId>(random() % kKeys);
      value = cache->get(key_of(id));
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(write, 0);
  for (unsigned t = 1; t < 4; ++t) threads.emplace_back(read, t);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache->stats().bytes, cache->stats().limit);
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
