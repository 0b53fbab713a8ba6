// SPDX-License-Identifier: Apache-2.0
// Profiles made by hand and by chance.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cutwater/profile.h"

namespace cutwater {

// One cut of one sample.
struct TestCut {
  std::string name;
  double bytes = 0, prefix_s = 0, finish_s = 0;
  std::vector<VariantProfile> variants = {};  // beside "none"
};

inline VariantProfile test_variant(const std::string& codec, double bytes, double encode_s,
                                   double decode_s) {
  return {codec_named(codec), {bytes}, {encode_s}, {decode_s}};
}

// One profiled sample that stands for `samples`, one thread, no storage rates, no read costs; the
// cuts that are given are stable, and one more follows that is not.
inline Profile test_profile(std::int64_t samples, const std::vector<TestCut>& cuts) {
  Profile profile;
  profile.data = "data";
  profile.pipeline = "op";
  profile.data_samples = samples;
  profile.ids = {0};
  for (const TestCut& cut : cuts) {
    CutProfile made;
    made.cut = static_cast<Cut>(profile.cuts.size());
    made.name = cut.name;
    made.bytes = {cut.bytes};
    made.op_s = {0};
    made.prefix_s = {cut.prefix_s};
    made.finish_s = made.first_s = made.memory_s = {cut.finish_s};
    made.variants.push_back({{}, {cut.bytes}, {0}, {0}});
    made.variants.insert(made.variants.end(), cut.variants.begin(), cut.variants.end());
    profile.cuts.push_back(made);
  }
  CutProfile last;
  last.cut = static_cast<Cut>(cuts.size());
  last.name = "last";
  last.stable = false;
  last.bytes = last.op_s = last.prefix_s = {0};
  profile.cuts.push_back(last);
  return profile;
}

// Anything a profile may hold: 1 to 5 samples and stable cuts, codecs that shrink and that grow,
// rates that are known or not.
inline Profile random_profile(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto between = [&](double low, double high) {  // evenly on a log scale
    return low * std::pow(high / low, static_cast<double>(random() % 10'000) / 10'000);
  };
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  const std::size_t samples = 1 + random() % 5;
  const auto column = [&](double low, double high) {
    std::vector<double> values(samples);
    for (double& value : values) value = between(low, high);
    return values;
  };
  Profile profile = test_profile(static_cast<std::int64_t>(between(1, 1e7)), {});
  profile.ids.resize(samples);
  profile.cuts.clear();
  const std::size_t stable = 1 + random() % 5;
  for (std::size_t k = 0; k < stable; ++k) {
    CutProfile cut;
    cut.cut = static_cast<Cut>(k);
    cut.name = k == 0 ? "source" : "op" + std::to_string(k);
    cut.bytes = column(1e3, 1e7);
    cut.op_s = cut.prefix_s = k == 0 ? std::vector<double>(samples) : column(1e-5, 1e-1);
    cut.finish_s = column(1e-6, 1e-1);
    cut.first_s = cut.memory_s = cut.finish_s;
    for (double& s : cut.first_s) s *= between(1, 2);
    for (double& s : cut.memory_s) s *= between(0.9, 1.2);
    if (!one_in(8)) {
      cut.variants.push_back(
          {{}, cut.bytes, std::vector<double>(samples), std::vector<double>(samples)});
      for (const char* codec : {"lz4", "zstd:1", "zstd:3"}) {
        VariantProfile variant{codec_named(codec), cut.bytes, column(1e-5, 1e-1),
                               column(1e-6, 1e-2)};
        for (double& bytes : variant.bytes) bytes *= between(0.1, 1.5);
        cut.variants.push_back(variant);
      }
    }
    profile.cuts.push_back(cut);
  }
  CutProfile last;
  last.cut = static_cast<Cut>(stable);
  last.name = "last";
  last.stable = false;
  last.bytes = column(1e3, 1e7);
  profile.cuts.push_back(last);
  profile.reads_files = one_in(2);
  profile.threads = 1 + static_cast<int>(random() % 16);
  StorageProfile& storage = profile.storage;
  if (!one_in(4)) storage.cold_random = {between(10, 1e5), one_in(4) ? 0 : between(1e6, 1e10)};
  if (!one_in(4)) storage.write_bytes_per_s = between(1e6, 1e10);
  storage.warm_file_s = between(1e-6, 1e-4);
  storage.warm_part_s = between(1e-7, 1e-5);
  storage.warm_per_byte_s = between(1e-11, 1e-9);
  storage.check_per_byte_s = one_in(2) ? 0 : between(1e-11, 1e-10);
  storage.write_file_s = one_in(2) ? 0 : between(1e-5, 1e-1);
  profile.memory_bytes_per_s = one_in(4) ? 0 : between(1e9, 1e11);
  profile.fresh_memory_bytes_per_s = one_in(4) ? 0 : between(1e8, 1e11);
  profile.engine_s = between(1e-7, 1e-5);
  if (one_in(4)) profile.consumer_samples_per_s = between(10, 1e5);
  return profile;
}

}  // namespace cutwater
