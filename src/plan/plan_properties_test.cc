// SPDX-License-Identifier: Apache-2.0
// What holds for the plan of any profile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

#include "cutwater/plan.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;

constexpr std::uint64_t kProfiles = 300;
constexpr double kRounding = 1 + 1e-9;

struct Case {
  std::uint64_t seed = 0;
  Profile profile;
  PlanOptions options;
  Plan plan;

  std::vector<Strategy> strategies() const {
    std::vector<Strategy> all = {plan.choice};
    all.insert(all.end(), plan.alternatives.begin(), plan.alternatives.end());
    return all;
  }
};

PlanOptions random_options(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x5eed);
  PlanOptions options;
  options.epochs = 1 + static_cast<std::int64_t>(random() % 100);
  if (random() % 4 != 0) options.disk_bytes = 1000 + random() % 1'000'000'000'000;
  if (random() % 4 != 0) options.memory_bytes = random() % 100'000'000'000;
  if (random() % 4 == 0) options.threads = 1 + static_cast<int>(random() % 32);
  if (random() % 4 == 0) options.consumer_samples_per_s = 1 + static_cast<double>(random() % 10000);
  options.residency = static_cast<Residency>(random() % 3);
  if (random() % 4 == 0)
    options.prices = Prices{0.001 * static_cast<double>(random() % 100), 0.05, 2};
  return options;
}

template <class Test>
void for_any_profile(const Test& test) {
  static const std::vector<Case> cases = [] {
    std::vector<Case> made;
    for (std::uint64_t seed = 0; seed < kProfiles; ++seed) {
      Case one{seed, random_profile(seed), random_options(seed), {}};
      one.plan = make_plan(one.profile, one.options);
      made.push_back(std::move(one));
    }
    return made;
  }();
  for (const Case& one : cases) {
    SCOPED_TRACE("seed " + std::to_string(one.seed));
    test(one);
  }
}

double cost(const Strategy& s) { return s.money.value_or(s.total_s); }

double least(const Plan& plan) {
  double found = cost(plan.choice);
  for (const Strategy& s : plan.alternatives)
    if (s.feasible) found = std::min(found, cost(s));
  return found;
}

const Strategy& unprepared(const std::vector<Strategy>& all) {
  return *std::find_if(all.begin(), all.end(),
                       [](const Strategy& s) { return s.place == Place::kNone; });
}

TEST(PlanProperties, TheChoiceIsTheBestThatIsPossible) {
  for_any_profile([](const Case& given) {
    EXPECT_TRUE(given.plan.choice.feasible);
    EXPECT_LE(cost(given.plan.choice), least(given.plan) * 1.01);
    const auto key = [](const Strategy& s) { return std::pair{!s.feasible, cost(s)}; };
    const std::vector<Strategy>& ranked = given.plan.alternatives;
    for (std::size_t i = 1; i < ranked.size(); ++i) EXPECT_LE(key(ranked[i - 1]), key(ranked[i]));
  });
}

TEST(PlanProperties, BudgetsAreKept) {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for_any_profile([](const Case& given) {
    const PlanOptions& options = given.options;
    const double disk = options.disk_bytes ? static_cast<double>(*options.disk_bytes) : kAny;
    // What is warm anyway takes no budget, but for the loader's own cache.
    const bool counts =
        options.residency != Residency::kWarm || given.plan.choice.place == Place::kMemory;
    const double memory =
        options.memory_bytes && counts ? static_cast<double>(*options.memory_bytes) : kAny;
    EXPECT_LE(given.plan.choice.disk_bytes, disk);
    EXPECT_LE(given.plan.choice.memory_bytes, memory * kRounding);
    for (const Strategy& s : given.strategies()) EXPECT_EQ(s.feasible, s.why_not.empty());
  });
}

TEST(PlanProperties, ACodecThatGrowsItsCutIsNoCandidate) {
  for_any_profile([](const Case& given) {
    std::size_t grow = 0;
    for (const CutProfile& cut : given.profile.cuts)
      for (const VariantProfile& variant : cut.variants) {
        const double raw = std::accumulate(cut.bytes.begin(), cut.bytes.end(), 0.0);
        const double packed = std::accumulate(variant.bytes.begin(), variant.bytes.end(), 0.0);
        if (variant.codec.is_none() || packed < raw) continue;
        ++grow;
        for (const Strategy& s : given.strategies())
          EXPECT_FALSE(s.cut == cut.cut && s.codec == variant.codec);
        EXPECT_THAT(given.plan.refused,
                    Contains(AllOf(Field(&RefusedCodec::cut, cut.cut),
                                   Field(&RefusedCodec::codec, variant.codec))));
      }
    EXPECT_EQ(given.plan.refused.size(), grow);
  });
}

TEST(PlanProperties, MoreOfAnythingIsNeverWorse) {
  for_any_profile([](const Case& given) {
    const double now = least(given.plan);
    const auto with = [&](auto&& change) {
      PlanOptions other = given.options;
      change(other);
      return least(make_plan(given.profile, other));
    };
    for (const std::uint64_t times : {2, 10}) {
      EXPECT_LE(with([&](PlanOptions& o) {
                  if (o.disk_bytes) *o.disk_bytes *= times;
                }),
                now * kRounding);
      EXPECT_LE(with([&](PlanOptions& o) {
                  if (o.memory_bytes) *o.memory_bytes *= times;
                }),
                now * kRounding);
      EXPECT_LE(with([&](PlanOptions& o) {
                  o.prices.reset();
                  o.threads = static_cast<int>(times) * o.threads.value_or(given.profile.threads);
                }),
                with([](PlanOptions& o) { o.prices.reset(); }) * kRounding);
    }
    EXPECT_LE(with([](PlanOptions& o) { o.residency = Residency::kWarm; }), now * kRounding);
    EXPECT_GE(with([](PlanOptions& o) { o.residency = Residency::kCold; }) * kRounding, now);
  });
}

// With more epochs, what comes before the second one counts less.
TEST(PlanProperties, MoreEpochsNeverFavorASlowerEpoch) {
  for_any_profile([](const Case& given) {
    PlanOptions options = given.options;
    options.prices.reset();
    double epoch_s = std::numeric_limits<double>::infinity();
    for (options.epochs = 1; options.epochs <= 64; options.epochs *= 2) {
      const Plan plan = make_plan(given.profile, options);
      Strategy best = plan.choice;
      for (const Strategy& s : plan.alternatives)
        if (s.feasible && s.total_s < best.total_s) best = s;
      EXPECT_LE(options.epochs > 1 ? best.epoch_s : 0, epoch_s * kRounding) << options.epochs;
      if (options.epochs > 1) epoch_s = best.epoch_s;
    }
  });
}

TEST(PlanProperties, TotalsAddUpAndBreakEvenIsWhereTheyCross) {
  for_any_profile([](const Case& given) {
    const auto total = [](const Strategy& s, double epochs) {
      return s.build_s + s.first_epoch_s + (epochs - 1) * s.epoch_s;
    };
    const std::vector<Strategy> all = given.strategies();
    const Strategy& none = unprepared(all);
    for (const Strategy& s : all) {
      EXPECT_DOUBLE_EQ(s.total_s, total(s, static_cast<double>(given.options.epochs)));
      if (!s.break_even_epochs) {
        EXPECT_GE(total(s, 1e6) * kRounding, total(none, 1e6));
        continue;
      }
      const auto even = static_cast<double>(*s.break_even_epochs);
      EXPECT_LT(total(s, even), total(none, even) * kRounding);
      EXPECT_GE(even > 1 ? total(s, even - 1) * kRounding : 0,
                even > 1 ? total(none, even - 1) : 0);
    }
  });
}

TEST(PlanProperties, TheChoiceFlipsWhereItIsSaidTo) {
  std::size_t flips = 0;
  for_any_profile([&](const Case& given) {
    const auto choice = [&](std::int64_t epochs) {
      PlanOptions there = given.options;
      there.epochs = epochs;
      return to_string(make_plan(given.profile, there).choice);
    };
    for (const WhatIf& other : given.plan.what_if) {
      long long epochs = 0;
      if (std::sscanf(other.when.c_str(), "from %lld", &epochs) != 1 &&
          std::sscanf(other.when.c_str(), "up to %lld", &epochs) != 1)
        continue;
      ++flips;
      EXPECT_TRUE(other.differs);
      EXPECT_EQ(choice(epochs), other.choice) << other.when;
      EXPECT_EQ(choice(epochs + (epochs > given.options.epochs ? -1 : 1)),
                to_string(given.plan.choice))
          << other.when;
    }
  });
  EXPECT_GT(flips, kProfiles / 10);
}

TEST(PlanProperties, OneResourceIsBusyAllTheTimeAndNoneMore) {
  for_any_profile([](const Case& given) {
    double most = 0, bound = 0;
    for (const ResourceUse& resource : given.plan.resources) {
      EXPECT_GE(resource.use, 0) << resource.name;
      if (resource.name != "memory" && resource.name != "disk") most = std::max(most, resource.use);
      if (resource.name == given.plan.choice.bound_by) bound = resource.use;
    }
    EXPECT_EQ(most, 1);
    EXPECT_NEAR(bound, 1, 1e-9);
  });
}

TEST(PlanProperties, JsonComesBack) {
  for_any_profile(
      [](const Case& given) { EXPECT_EQ(plan_from_json(to_json(given.plan)), given.plan); });
}

TEST(PlanProperties, PolicyNoneIsTheUnpreparedPipeline) {
  for_any_profile([](const Case& given) {
    PlanOptions options = given.options;
    options.policy = Policy::kNone;
    const Plan plan = make_plan(given.profile, options);
    EXPECT_EQ(plan.choice.place, Place::kNone);
    EXPECT_TRUE(plan.alternatives.empty());
  });
}

}  // namespace
}  // namespace cutwater
