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
#include "cutwater/cache.h"

namespace cutwater {

using Bytes = std::vector<std::uint8_t>;

struct BackEnd {
  const char* name;
  std::shared_ptr<Cache> (*make)(std::size_t limit);
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

inline const BackEnd kBackEnds[] = {
    {"memory", memory_cache},
#if !defined(__SANITIZE_THREAD__)  // which cannot see that two mappings are one memory
    {"shared", served_cache},
#endif
};

// Runs once for each of them.
class CacheContract : public testing::TestWithParam<BackEnd> {
 protected:
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
