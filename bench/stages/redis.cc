// SPDX-License-Identifier: Apache-2.0
// A hit in Redis beside redis-benchmark's own GET of as many bytes, one after another at the same
// server; both take turns, medians are printed. redis-benchmark looks at no byte of what it gets.
// Once by its key, and once as a loader looks for it: as the last of several forms of a sample.
// usage: bench_redis PORT   (of a server on this machine, which is emptied of these keys by time)
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cutwater/cache.h"

namespace cutwater {
namespace {

constexpr int kTurns = 5, kGets = 2000;
constexpr std::uint64_t kForms = 4;

// Microseconds for one.
double ours(Cache& cache, std::span<const CacheKey> keys) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kGets; ++i)
    if (!(keys.size() == 1 ? cache.get(keys[0]) : cache.get_first(keys).value)) {
      std::fprintf(stderr, "a miss: %s\n", cache.trouble().c_str());
      std::exit(1);
    }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
             .count() /
         kGets;
}

double theirs(const std::string& port, std::size_t size) {
  const std::string command = "redis-benchmark -p " + port + " -c 1 -n " + std::to_string(kGets) +
                              " -d " + std::to_string(size) + " -t set,get --csv";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(::popen(command.c_str(), "r"), ::pclose);
  double per_second = 0;
  std::array<char, 1000> line;
  while (answer != nullptr && std::fgets(line.data(), line.size(), answer.get()) != nullptr)
    (void)std::sscanf(line.data(), "\"GET\",\"%lf\"", &per_second);
  if (per_second == 0) {
    std::fprintf(stderr, "redis-benchmark gave no figure\n");
    std::exit(1);
  }
  return 1e6 / per_second;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void measure(const std::string& port, std::size_t size) {
  const auto cache = redis_cache("redis://127.0.0.1:" + port + "?ttl=10m");
  std::vector<CacheKey> keys;
  for (std::uint64_t form = 1; form <= kForms; ++form)
    keys.push_back({1, form, static_cast<SampleId>(size), 0});
  const std::span<const CacheKey> all(keys), last = all.last(1);
  (void)cache->put(last[0], size, 1, [](std::span<std::uint8_t> place) {
    for (std::size_t i = 0; i < place.size(); ++i)
      place[i] = static_cast<std::uint8_t>(i * 2654435761U >> 13);
  });
  (void)ours(*cache, last);
  (void)ours(*cache, all);
  std::vector<double> our_us, first_us, their_us, ratios, first_ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    their_us.push_back(theirs(port, size));
    our_us.push_back(ours(*cache, last));
    first_us.push_back(ours(*cache, all));
    ratios.push_back(our_us.back() / their_us.back());
    first_ratios.push_back(first_us.back() / their_us.back());
  }
  std::printf(
      "%7zu bytes: a hit %6.1f us, redis-benchmark's GET %6.1f us, ratio %.2f (%.2f to %.2f), "
      "among %d forms %6.1f us, ratio %.2f\n",
      size, median(our_us), median(their_us), median(ratios), *std::ranges::min_element(ratios),
      *std::ranges::max_element(ratios), static_cast<int>(kForms), median(first_us),
      median(first_ratios));
}

}  // namespace
}  // namespace cutwater

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: bench_redis PORT\n");
    return 2;
  }
  for (const std::size_t size : std::array<std::size_t, 3>{10'000, 100'000, 600'000})
    cutwater::measure(words[1], size);
}
