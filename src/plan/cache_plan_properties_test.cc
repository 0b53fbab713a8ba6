// SPDX-License-Identifier: Apache-2.0
// What holds for the plan of a shared cache of any profile.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "plan/cache_chooser.h"
#include "plan/cache_plan.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

constexpr double kRounding = 1 + 1e-5;  // of sums, and of the program's columns
constexpr double kTie = 0.979;          // fewer forms are preferred, and steps are a percent

constexpr double kAlike = 0.98;  // besides, one job may leave samples out

struct Case {
  Profile profile;
  CacheSetting setting;
};

Case random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0xcace);
  const auto between = [&](double low, double high) {
    return low * std::pow(high / low, static_cast<double>(random() % 10'000) / 10'000);
  };
  Case made{random_profile(seed), {}};
  // What is kept is used, so a hit must be no slower than a miss; the way to a cut and on from
  // there is as long as the whole, and to encode and to copy it is for nothing.
  made.profile.memory_bytes_per_s = 0;
  const std::vector<double> whole = made.profile.cuts[0].finish_s;
  std::vector<double> left = whole;
  for (CutProfile& cut : made.profile.cuts) {
    for (VariantProfile& variant : cut.variants) variant.encode_s.assign(whole.size(), 0);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      cut.op_s.resize(whole.size());
      cut.op_s[i] = left[i] / 2;
      if (!cut.stable) continue;
      left[i] = std::min(left[i], cut.finish_s[i]);
      cut.finish_s[i] = cut.first_s[i] = cut.memory_s[i] = left[i];
      cut.prefix_s[i] = whole[i] - left[i];
      for (VariantProfile& variant : cut.variants)
        variant.decode_s[i] = std::min(variant.decode_s[i], cut.prefix_s[i]);
    }
  }
  const CacheModel model(made.profile);
  CacheSetting& s = made.setting;
  s.jobs = 1 + static_cast<double>(random() % 6);
  s.cache_bytes = model.samples * model.mean_source_bytes() * between(1e-3, 10);
  if (random() % 2 == 0) s.consumer = between(10, 1e5);
  s.rates.threads = made.profile.threads;
  s.rates.storage = made.profile.storage.cold_random;
  if (random() % 3 == 0) s.rates.cache_bytes_per_s = between(1e6, 1e10);
  if (random() % 3 == 0) s.rates.link_bytes_per_s = between(1e6, 1e10);
  s.window_samples = between(1e-3, 5e-2) * model.samples;
  s.residency = static_cast<Residency>(random() % 3);
  s.same_seed = random() % 3 == 0;
  return made;
}

template <class Test>
void for_any_case(const Test& test) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Case made = random_case(seed);
    const CacheModel model(made.profile);
    const CacheChooser chooser(model, {});
    test(model, chooser, made.setting, seed);
  }
}

TEST(CachePlanProperties, NoOtherSplitIsBetter) {
  for_any_case([](const CacheModel& model, const CacheChooser& chooser, const CacheSetting& setting,
                  std::uint64_t seed) {
    const CacheChoice best = chooser.best(setting);
    std::mt19937_64 random(seed);
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<double> shares(model.forms.size());
      for (double& share : shares)
        share = random() % 2 == 0 ? 0 : static_cast<double>(random() % 1000);
      // One job may leave some out; for several, all belong to some form.
      double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      if (setting.jobs < 2 && random() % 3 == 0) sum += static_cast<double>(random() % 1000);
      if (!(sum > 0)) continue;
      for (double& share : shares) share /= sum;
      EXPECT_GE(best.samples_per_s, chooser.with_shares(best, shares).samples_per_s * kTie);
      if (trial % 20 != 0) continue;
      const CacheChooser given(model, shares);
      EXPECT_GE(best.samples_per_s, given.best(setting).samples_per_s * kTie);
    }
  });
}

TEST(CachePlanProperties, MoreOfAnythingIsNeverWorse) {
  for_any_case(
      [](const CacheModel&, const CacheChooser& chooser, CacheSetting setting, std::uint64_t) {
        // A link to the cache that is slower than the processor is another matter: what is kept is
        // used, and with more jobs or room there is more of it.
        setting.rates.cache_bytes_per_s = setting.rates.link_bytes_per_s = 0;
        const double now = chooser.best(setting).samples_per_s;
        const auto with = [&](auto&& change) {
          CacheSetting other = setting;
          change(other);
          return chooser.best(other).samples_per_s / kAlike;
        };
        EXPECT_GE(with([](CacheSetting& s) { s.cache_bytes *= 1.5; }), now);
        EXPECT_GE(with([](CacheSetting& s) { s.cache_bytes *= 10; }), now);
        if (setting.jobs > 1) {  // one job keeps what came first: that may be the better choice
          EXPECT_GE(with([](CacheSetting& s) { s.jobs += 1; }), now);
          EXPECT_GE(with([](CacheSetting& s) { s.jobs *= 2; }), now);
        }
        EXPECT_GE(with([](CacheSetting& s) { s.rates.threads *= 2; }), now);
        EXPECT_GE(with([](CacheSetting& s) { s.rates.storage.bytes_per_s *= 2; }), now);
        EXPECT_GE(with([](CacheSetting& s) { s.same_seed = true; }), now);
      });
}

TEST(CachePlanProperties, BudgetsAndSharesAddUp) {
  for_any_case([](const CacheModel& model, const CacheChooser& chooser, const CacheSetting& setting,
                  std::uint64_t) {
    const CacheChoice best = chooser.best(setting);
    const Fill& fill = best.filled.fill;
    const double fresh = best.sharing.fresh ? fill.window_bytes : 0;
    EXPECT_LE(model.samples * (fill.bytes + fresh), best.cache_bytes * kRounding + 1);
    EXPECT_LE(best.cache_bytes, setting.cache_bytes);
    double assigned = 0, resident = 0, bytes = 0;
    for (std::size_t f = 0; f < fill.forms.size(); ++f) {
      EXPECT_GE(fill.forms[f].resident_share, 0);
      EXPECT_LE(fill.forms[f].resident_share, best.shares[f] + 1e-6);
      assigned += best.shares[f];
      resident += fill.forms[f].resident_share;
      bytes += fill.forms[f].bytes;
    }
    EXPECT_LE(assigned, 1 + 1e-9);
    EXPECT_NEAR(bytes, fill.bytes, 1e-6 * (1 + bytes));
    EXPECT_GE(fill.hit_rate, resident * (best.sharing.fresh ? 1 / setting.jobs : 1) - 1e-6);
    EXPECT_LE(fill.hit_rate, 1 - (1 - resident) / setting.jobs + 1e-6);
    EXPECT_NEAR(best.filled.samples_per_s * Demand(fill.later, best.rates).longest(), 1, 1e-5);
  });
}

TEST(CachePlanProperties, EverySampleInItsOwnFormIsABound) {
  for_any_case([](const CacheModel& model, const CacheChooser& chooser, const CacheSetting& setting,
                  std::uint64_t) {
    const CacheChoice best = chooser.best(setting);
    const Filled ideal =
        fill_cache(model, best.rates, best.sharing, best.cache_bytes, Freedom::kPerSample);
    EXPECT_GE(ideal.samples_per_s * kRounding, best.filled.samples_per_s);
  });
}

TEST(CachePlanProperties, JsonComesBack) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    PlanOptions options;
    options.policy = Policy::kSeneca;
    options.jobs = 1 + static_cast<int>(seed % 5);
    options.memory_bytes = 1'000'000'000;
    options.same_seed = seed % 2 == 0;
    Profile profile = random_profile(seed);
    profile.cuts.back().op_s.assign(profile.ids.size(), 1e-4);
    const Plan plan = make_plan(profile, options);
    EXPECT_EQ(plan_from_json(to_json(plan)), plan) << seed;
  }
}

}  // namespace
}  // namespace cutwater
