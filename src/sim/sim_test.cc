// SPDX-License-Identifier: Apache-2.0
// The plan and the simulator on the machines and data sets of the Seneca paper (Tables 5 and 6).
#include "sim/sim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cutwater/error.h"
#include "plan/cache_plan.h"

namespace cutwater {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

struct DataSet {
  const char* name;
  double samples, sample_bytes;
};
constexpr DataSet kImageNet1K{"ImageNet-1K", 1.3e6, 114.62e3};
constexpr DataSet kOpenImages{"OpenImages V7", 517e9 / 315.84e3, 315.84e3};
constexpr DataSet kImageNet22K{"ImageNet-22K", 14e6, 91.39e3};

struct Platform {
  const char* name;
  double gpu, decode, augment, link, cache_rate, storage, cache_bytes;
};
constexpr Platform kInHouse{"in-house", 4550, 2132, 4050, 1.25e9, 1.25e9, 500e6, 115e9};
constexpr Platform kAws{"AWS", 9989, 3432, 6520, 1.25e9, 1.25e9, 256e6, 400e9};
constexpr Platform kAzure{"Azure", 14301, 9783, 12930, 10e9, 3.75e9, 250e6, 400e9};

SimMachine machine_of(const Platform& platform, const DataSet& data) {
  SimMachine machine;
  machine.samples = static_cast<std::int64_t>(data.samples);
  machine.sample_bytes = data.sample_bytes;
  machine.decode_rate = platform.decode;
  machine.augment_rate = platform.augment;
  machine.consumer_rate = platform.gpu;
  machine.storage_bytes_per_s = platform.storage;
  machine.cache_bytes_per_s = platform.cache_rate;
  machine.link_bytes_per_s = platform.link;
  return machine;
}

CachePlan planned(const Platform& platform, const DataSet& data, int jobs,
                  const std::string& split = "") {
  SimOptions options;
  options.jobs = jobs;
  options.cache_bytes = platform.cache_bytes;
  options.split = split;
  const SimMachine machine = machine_of(platform, data);
  return *make_plan(profile_of(machine), plan_options_of(machine, options)).cache;
}

// A mean of rates says 7750; the misses alone take longer than that.
TEST(PaperScale, MissesAreBoundByTheStorage) {
  const CachePlan plan = planned(kAzure, kOpenImages, 1, "source=1");
  EXPECT_NEAR(plan.samples_per_s, 250e6 / 315.84e3 / (1 - 400.0 / 517), 1);
  EXPECT_NEAR(plan.samples_per_s, 3500, 50);
  EXPECT_NEAR(plan.paper.samples_per_s, 7750, 50);
  EXPECT_NEAR(plan.paper.by_our_model, 3500, 50);
}

// What is augmented serves each job once, and one job makes it all the same.
TEST(PaperScale, OneJobGainsNothingFromAugmentedSamples) {
  for (const Platform& platform : {kInHouse, kAws, kAzure})
    for (const DataSet& data : {kImageNet1K, kOpenImages, kImageNet22K}) {
      SCOPED_TRACE(std::string(platform.name) + ", " + data.name);
      SimOptions options;
      options.cache_bytes = platform.cache_bytes;
      const SimMachine machine = machine_of(platform, data);
      PlanOptions asked = plan_options_of(machine, options);
      asked.same_seed = true;
      const Plan plan = make_plan(profile_of(machine), asked);
      EXPECT_EQ(plan.cache->fresh, "");
      // A split of fewer forms is taken where a richer one would gain less than 2 %.
      EXPECT_GE(plan.cache->samples_per_s * 1.021, plan.cache->paper.by_our_model);
      asked.jobs = 8;
      asked.consumer_samples_per_s = *asked.consumer_samples_per_s / 8;
      // Jobs that share forms fill the cache with one after the other, a lone one with all at once.
      EXPECT_GE(make_plan(profile_of(machine), asked).cache->samples_per_s * 1.02,
                plan.cache->samples_per_s);
    }
}

// Forms are mixed so that the processor and the link are both busy.
TEST(PaperScale, MixedFormsBeatAllEncoded) {
  const CachePlan encoded = planned(kAws, kImageNet1K, 1, "source=1");
  const CachePlan best = planned(kAws, kImageNet1K, 1);
  EXPECT_NEAR(encoded.samples_per_s, 3432, 1);
  EXPECT_GT(best.samples_per_s, 4000);
  EXPECT_LT(best.samples_per_s, 4700);
}

// DS-Analyzer: a cached part at the speed of the memory, the rest at that of the disk; the slowest
// of fetching, preparing and training counts.
TEST(PaperScale, OneClassAndOneFormIsDsAnalyzer) {
  for (const double cached : {0.0, 0.35, 0.7, 1.0})
    for (const double disk : {1e7, 1e8, 1e9}) {
      SimMachine machine;
      machine.samples = 100'000;
      machine.sample_bytes = 1e5;
      machine.decode_rate = machine.augment_rate = 3000;
      machine.consumer_rate = 5000;
      machine.storage_bytes_per_s = disk;
      SimOptions options;
      options.cache_bytes = cached * 1e10;
      options.split = "source=1";
      const Plan plan = make_plan(profile_of(machine), plan_options_of(machine, options));
      const double fetch = cached < 1 ? disk / 1e5 / (1 - cached) : 1e18;
      EXPECT_NEAR(plan.cache->samples_per_s, std::min(fetch, 3000.0), 1) << cached << " " << disk;
      EXPECT_EQ(plan.choice.bound_by, fetch < 3000 ? "storage" : "cpu");
    }
}

SimResult simulated(double cached, int jobs, double spread = 0, std::vector<double> speeds = {}) {
  SimMachine machine;
  machine.samples = 40'000;
  machine.sample_bytes = 1e5;
  machine.spread = spread;
  machine.decode_rate = 1000;
  machine.augment_rate = 4000;
  SimOptions options;
  options.jobs = jobs;
  options.cache_bytes = cached * 40'000 * 1e5 * machine.inflation;
  options.epochs = 4;
  options.split = "decoded=1";
  options.speeds = std::move(speeds);
  return simulate(machine, options);
}

TEST(Sim, EverySampleOnceInEveryEpochOfEveryJob) {
  for (const SimResult& result : {simulated(0.2, 3), simulated(0.4, 3, 0.8, {1, 2, 3})}) {
    EXPECT_EQ(result.issued_twice, 0);
    EXPECT_EQ(result.never_issued, 0);
    EXPECT_EQ(result.epochs.size(), 4U);
  }
}

TEST(Sim, HitsAsPredicted) {
  for (const int jobs : {1, 2, 3, 4})
    for (const double cached : {0.05, 0.2, 0.4}) {
      SCOPED_TRACE(std::to_string(jobs) + " jobs, cached " + std::to_string(cached));
      const SimResult result = simulated(cached, jobs);
      const CachePlan& plan = *result.plan.cache;
      const SimEpoch& last = result.epochs.back();
      EXPECT_NEAR(last.hit_rate, plan.hit_rate, 0.03);
      EXPECT_NEAR(last.samples_per_s / plan.samples_per_s, 1, 0.05);
      EXPECT_EQ(last.bound_by, "cpu");
    }
}

TEST(Sim, ThreeJobsReachTheSharingBound) {
  EXPECT_GE(simulated(0.2, 3).epochs.back().hit_rate, 0.70);  // bound 0.733
  EXPECT_GE(simulated(0.4, 3).epochs.back().hit_rate, 0.78);  // bound 0.80
}

TEST(Sim, AScaledRunIsLikeTheWhole) {
  SimMachine machine = machine_of(kAzure, kImageNet1K);
  machine.samples = 100'000;
  SimOptions options;
  options.jobs = 4;
  options.cache_bytes = 3e9;
  const SimResult whole = simulate(machine, options);
  options.scale = 0.2;
  const SimResult part = simulate(machine, options);
  EXPECT_EQ(part.samples, 20'000);
  EXPECT_NEAR(part.epochs.back().hit_rate, whole.epochs.back().hit_rate, 0.03);
}

TEST(Sim, WrongFiguresAreNamed) {
  SimMachine machine;
  EXPECT_THAT([&] { simulate(machine, {}); },
              ThrowsMessage<Error>(HasSubstr("samples must be in 1..2^31")));
  machine.samples = 10;
  EXPECT_THAT([&] { simulate(machine, {}); },
              ThrowsMessage<Error>("the bytes of a sample must be positive, got 0.0"));
  machine.sample_bytes = 10;
  machine.decode_rate = 2;
  machine.augment_rate = 1;
  EXPECT_THAT([&] { simulate(machine, {}); },
              ThrowsMessage<Error>(HasSubstr("must not be slower")));
  SimOptions options;
  options.scale = 2;
  EXPECT_THAT([&] { simulate(machine, options); },
              ThrowsMessage<Error>(HasSubstr("scale must be above 0 and at most 1")));
  options.scale = 1;
  options.speeds = {1, 2};
  EXPECT_THAT([&] { simulate(machine, options); },
              ThrowsMessage<Error>(HasSubstr("2 speeds for 1 jobs")));
}

}  // namespace
}  // namespace cutwater
