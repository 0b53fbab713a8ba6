// SPDX-License-Identifier: Apache-2.0
// The time to decide what is sent of each of a million samples, six options each, where the link
// bounds and where the trainer's CPU does; medians, as JSON.
// usage: bench_offload [SAMPLES]
#include "cutwater/offload.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace cutwater {
namespace {

constexpr int kTurns = 5;

struct Options {
  std::vector<OffloadVariant> variants;
  std::vector<OffloadOption> values;
};

// As samples of ImageNet are spread, roughly: what an excerpt and a codec save differs by sample.
Options made(int samples) {
  const Codec zstd = {Filter::kDelta, Compressor::kZstd, 1};
  Options options{{{},
                   {0, "source", {}, true},
                   {1, "decode", {}, false},
                   {2, "crop", {}, false},
                   {2, "crop", zstd, false},
                   {3, "float", {}, false}},
                  {}};
  std::mt19937_64 random(1);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  for (int i = 0; i < samples; ++i) {
    const double raw = between(2e4, 4e5), s = raw * 3e-8;
    options.values.insert(options.values.end(),
                          {{raw, 0, s},
                           {raw * between(0.1, 1), s * between(0.2, 0.4), s * between(0.5, 1)},
                           {raw * 6, s * 0.8, s * 0.3},
                           {150'528, s * 0.9, s * 0.1},
                           {150'528 * between(0.3, 0.9), s * 1.2, s * 0.2},
                           {602'112, s, 0}});
  }
  return options;
}

int run(int samples) {
  const Options options = made(samples);
  std::printf("{\"samples\": %d, \"options\": %zu, \"cases\": [", samples, options.variants.size());
  for (const double threads : {8.0, 2.5}) {
    const OffloadMachine machine{
        .link_bytes_per_s = 62.5e6, .storage_threads = 1, .compute_threads = threads};
    std::vector<double> seconds;
    OffloadDecision decision;
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto begin = std::chrono::steady_clock::now();
      decision = solve_offload({options.values, options.variants}, machine);
      seconds.push_back(
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    std::ranges::sort(seconds);
    std::printf(
        "%s{\"trainer_threads\": %.1f, \"seconds\": %.3f, \"bound_by\": \"%s\", "
        "\"above_least\": %.2e}",
        threads == 8.0 ? "" : ", ", threads, seconds[kTurns / 2],
        std::string(decision.after.bound_by()).c_str(), decision.above_least());
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace cutwater

int main(int argc, char** argv) try {
  return cutwater::run(argc > 1 ? std::atoi(argv[1]) : 1'000'000);
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench_offload: %s\n", error.what());
  return 1;
}
