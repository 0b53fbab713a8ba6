// SPDX-License-Identifier: Apache-2.0
// For the tests of what every back end of Cache promises. A new one joins kBackEnds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/test_daemon.h"
#include "cache/test_redis.h"
#include "cutwater/cache.h"

namespace cutwater {

using Bytes = std::vector<std::uint8_t>;

struct BackEnd {
  const char* name;
  std::shared_ptr<Cache> (*make)(std::size_t limit);
  // It counts its own bytes, against a limit of its own, and what jobs have yet to see stays. A
  // Redis server counts all that it needs, its connections included, a value only when it is there,
  // and evicts by rules of its own.
  bool keeps_books = true;
  // What it needs and this machine may not have.
  const char* program = nullptr;
  // Of several servers, one is full before the others are: then a value may find room or not.
  bool is_many = false;
};

// With a daemon of its own, in a thread.
inline std::shared_ptr<Cache> served_cache(std::size_t limit) {
  auto folder = std::make_shared<cache::TestFolder>();
  auto daemon = std::make_shared<cache::TestDaemon>(folder->socket(), limit);
  auto client = shared_cache(folder->socket());
  return {client.get(), [folder, daemon, client](Cache*) mutable {
            client.reset();
            daemon.reset();
            folder.reset();
          }};
}

// One server for all tests, empty at the beginning of each.
inline std::shared_ptr<Cache> redis_with_room(std::size_t limit) {
  static redis::TestServer server;
  server.set_room(limit);
  return redis_cache(server.url());
}
inline std::shared_ptr<Cache> redis_cluster_with_room(std::size_t limit) {
  static redis::TestCluster cluster;
  cluster.set_room(limit);
  return redis_cache(cluster.url());
}

inline const BackEnd kBackEnds[] = {
    {"memory", memory_cache},
#if !defined(__SANITIZE_THREAD__)  // which cannot see that two mappings are one memory
    {"shared", served_cache},
#endif
    {"redis", redis_with_room, false, "redis-server"},
    {"redis_cluster", redis_cluster_with_room, false, "redis-server", true}};

// Runs once for each of them.
class CacheContract : public testing::TestWithParam<BackEnd> {
 protected:
  void SetUp() override {
    const char* const program = GetParam().program;
    if (program != nullptr && !redis::is_program(program))
      GTEST_SKIP() << program << " is not installed: tools/bootstrap.sh test installs it";
  }
  static bool keeps_books() { return GetParam().keeps_books; }
  static std::shared_ptr<Cache> make(std::size_t limit) { return GetParam().make(limit); }
};

inline CacheKey key_of(SampleId sample, std::uint64_t space = 1) {
  return {space, space, sample, 0};
}

// Bytes that no other sample has.
inline Bytes bytes_of(SampleId sample, std::size_t size) {
  std::mt19937_64 random(static_cast<std::uint64_t>(sample));
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

inline bool put(Cache& cache, const CacheKey& key, const Bytes& bytes, double seconds = 1) {
  return cache.put(key, bytes.size(), seconds, [&](std::span<std::uint8_t> place) {
    EXPECT_EQ(place.size(), bytes.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(place.data()) % 64, 0u);
    std::copy(bytes.begin(), bytes.end(), place.begin());
  });
}

inline Bytes got(Cache& cache, const CacheKey& key) {
  const CacheValue value = cache.get(key);
  EXPECT_TRUE(value);
  return {value.bytes().begin(), value.bytes().end()};
}

inline constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace cutwater
