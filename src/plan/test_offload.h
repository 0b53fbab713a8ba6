// SPDX-License-Identifier: Apache-2.0
// Tables of options made by hand and by chance.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cutwater/offload.h"

namespace cutwater::test {

// A table that owns what it refers to.
struct Options {
  std::vector<OffloadVariant> variants;
  std::vector<OffloadOption> values;

  OffloadTable table() const { return {values, variants}; }
};

inline OffloadVariant at_cut(Cut cut, const std::string& name, const char* codec = "none") {
  return {cut, name, codec_named(codec), false};
}
inline OffloadVariant excerpt() { return {0, "source", {}, true}; }

struct RandomCase {
  Options options;
  OffloadMachine machine;
  double weight = 1;
  bool alike = false;  // all samples have the same figures
};

// Anything: options that grow and shrink, cost nothing or much, or are not there; machines that are
// bound by each of the four.
inline RandomCase random_case(std::uint64_t seed, std::size_t most_samples,
                              std::size_t most_options) {
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {  // evenly on a log scale
    return low * std::pow(high / low, static_cast<double>(random() % 10'000) / 10'000);
  };
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  RandomCase made;
  const std::size_t samples = 1 + random() % most_samples, count = 1 + random() % most_options;
  made.options.variants.emplace_back();
  for (std::size_t o = 1; o < count; ++o) {
    if (o == 1 && one_in(2))
      made.options.variants.push_back(excerpt());
    else
      made.options.variants.push_back(
          at_cut(static_cast<Cut>(o), "op" + std::to_string(o), one_in(3) ? "zstd:1" : "none"));
  }
  const bool alike = made.alike = one_in(8), relieving = one_in(2);
  for (std::size_t i = 0; i < samples; ++i) {
    OffloadOption raw{between(1e4, 1e6), one_in(4) ? 1e-5 : 0, between(1e-3, 1e-1)};
    if (alike && i > 0) raw = made.options.values[0];
    made.options.values.push_back(raw);
    for (std::size_t o = 1; o < count; ++o) {
      if (alike && i > 0)
        made.options.values.push_back(made.options.values[o]);
      else if (one_in(10))
        made.options.values.push_back(kNoOption);
      else
        made.options.values.push_back(
            {raw.bytes * between(0.05, 3), one_in(12) ? raw.storage_s : between(1e-4, 1e-1),
             raw.compute_s * (relieving ? between(0.1, 1) : between(0.3, 3))});
    }
  }
  double bytes = 0, compute_s = 0;
  for (std::size_t i = 0; i < samples; ++i) {
    bytes += made.options.values[i * count].bytes;
    compute_s += made.options.values[i * count].compute_s;
  }
  // Around a second for each resource.
  made.weight = one_in(2) ? 1 : between(1, 1e4);
  made.machine.link_bytes_per_s = one_in(10) ? 0 : made.weight * bytes * between(0.1, 10);
  made.machine.compute_threads = made.weight * compute_s * between(0.1, 10);
  made.machine.storage_threads =
      one_in(12) ? 0 : made.weight * static_cast<double>(samples) * between(1e-4, 1e-1);
  if (one_in(3))
    made.machine.consumer_samples_per_s =
        made.weight * static_cast<double>(samples) * between(0.1, 10);
  made.machine.storage_speed = one_in(2) ? 1 : between(0.3, 3);
  return made;
}

}  // namespace cutwater::test
