// SPDX-License-Identifier: Apache-2.0
// What a hit costs besides the sample's own work: to claim a sample that is resident, beside
// claiming the head of the order; and to get its bytes from each cache that is named. All take
// turns in one run; medians are printed, as JSON.
// usage: bench_cache BYTES CACHE…   (as 100000 256MiB unix:/run/cache.sock)
#include "cutwater/cache.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/options.h"
#include "sampler/epoch_order.h"
#include "sampler/ledger.h"
#include "sampler/opportunist.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTurns = 7;
constexpr std::int64_t kSamples = 1'281'167;  // as many as ImageNet-1K has: no ledger fits a cache
constexpr std::int64_t kClaims = 500'000;
constexpr SampleId kValues = 64;
constexpr double kGetSeconds = 0.2;  // of one turn

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Two of three tickets are residents, one in five of which was there as the epoch began.
double claim_ns(int turn) {
  Ledger ledger(EpochOrder::shuffled(kSamples, 7, static_cast<std::uint32_t>(turn)), kSamples, 0,
                {}, Ledger::ById::kYes);
  Opportunist choose(ledger, 7, static_cast<std::uint32_t>(turn), 99);
  std::vector<SampleId> ids(kSamples);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), std::mt19937(static_cast<unsigned>(turn)));
  choose.begin(std::span(ids).first(kSamples / 5));
  choose.set_others(2);
  std::span<const SampleId> coming = std::span(ids).subspan(kSamples / 5);
  const auto start = Clock::now();
  for (std::int64_t i = 0; i < kClaims; ++i) {
    if (i % 8 == 0) {  // what others have made meanwhile
      choose.arrived(coming.first(4));
      coming = coming.subspan(4);
    }
    (void)choose.next();
  }
  return ns_since(start) / static_cast<double>(kClaims);
}

struct Tried {
  std::string name;
  std::shared_ptr<Cache> cache;
  std::vector<double> get_ns;

  static CacheKey key(SampleId id) { return {0x62656e6368, 1, id, 0}; }

  void fill(std::size_t bytes) {
    for (SampleId id = 0; id < kValues; ++id) {
      (void)cache->put(key(id), bytes, 1, [&](std::span<std::uint8_t> place) {
        std::ranges::fill(place, static_cast<std::uint8_t>(id));
      });
    }
  }
  // One after another, in a random order; the bytes are looked at no further than that they came.
  void turn(std::size_t bytes) {
    std::minstd_rand random(1);
    std::int64_t count = 0;
    const auto start = Clock::now();
    while (ns_since(start) < kGetSeconds * 1e9) {
      for (int i = 0; i < 16; ++i, ++count) {
        const SampleId id = static_cast<SampleId>(random()) % kValues;
        const CacheValue value = cache->get(key(id));
        if (!value || value.bytes().size() != bytes || value.bytes()[bytes / 2] != id)
          throw Error(Code::kUnavailable,
                      name + " does not have what it was given: " +
                          (cache->trouble().empty() ? "make it larger" : cache->trouble()));
      }
    }
    get_ns.push_back(ns_since(start) / static_cast<double>(count));
  }
};

int run(std::span<char*> arguments) {
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: bench_cache BYTES CACHE...\n");
    return 2;
  }
  const std::size_t bytes = std::strtoull(arguments[0], nullptr, 10);
  std::vector<Tried> caches;
  for (const char* name : arguments.subspan(1)) {
    caches.push_back({name, cache_named(name), {}});
    caches.back().fill(bytes);
  }
  std::vector<double> claims;
  for (int turn = 0; turn < kTurns; ++turn) {
    claims.push_back(claim_ns(turn));
    for (Tried& tried : caches) tried.turn(bytes);
  }
  std::printf("{\"bytes\": %zu, \"claim_ns\": %.1f, \"get_ns\": {", bytes, median(claims));
  for (const Tried& tried : caches)
    std::printf("%s\"%s\": %.1f", &tried == caches.data() ? "" : ", ", tried.name.c_str(),
                median(tried.get_ns));
  std::printf("}}\n");
  return 0;
}

}  // namespace
}  // namespace cutwater

int main(int argc, char** argv) try {
  return cutwater::run(std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_cache: %s\n", error.what());
  return 1;
}
