// SPDX-License-Identifier: Apache-2.0
#include "cutwater/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "cutwater/error.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::ThrowsMessage;

const Strategy* find(const Plan& plan, const std::string& cut, const std::string& codec,
                     Place place, bool page_cache = false) {
  const auto is = [&](const Strategy& s) {
    return s.cut_name == cut && to_string(s.codec) == codec && s.place == place &&
           s.page_cache == page_cache;
  };
  if (is(plan.choice)) return &plan.choice;
  const auto found = std::find_if(plan.alternatives.begin(), plan.alternatives.end(), is);
  return found == plan.alternatives.end() ? nullptr : &*found;
}

// 1000 samples of 1 MB; unprepared 10 ms each. A store at "small" takes 20 ms each to build and
// gives samples of 0.1 MB that are finished in 1 ms.
Profile simple() {
  return test_profile(1000, {{"source", 1e6, 0, 0.010}, {"small", 1e5, 0.020, 0.001}});
}

TEST(Plan, GoldenFigures) {
  PlanOptions options;
  options.memory_bytes = 0;
  options.epochs = 10;
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.cut_name, "small");
  EXPECT_EQ(plan.choice.place, Place::kStore);
  EXPECT_DOUBLE_EQ(plan.choice.build_s, 20);
  EXPECT_DOUBLE_EQ(plan.choice.first_epoch_s, 1);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 1);
  EXPECT_DOUBLE_EQ(plan.choice.total_s, 30);
  EXPECT_DOUBLE_EQ(plan.choice.by_product_total_s, 21 + 9);
  EXPECT_DOUBLE_EQ(plan.choice.samples_per_s, 1000);
  EXPECT_DOUBLE_EQ(plan.choice.disk_bytes, 1000 * (1e5 + 2048));
  EXPECT_EQ(plan.choice.break_even_epochs, 3);  // 23 s against 30; after 2, 22 against 20
  EXPECT_EQ(plan.choice.bound_by, "cpu");
  const Strategy* unprepared = find(plan, "source", "none", Place::kNone);
  ASSERT_NE(unprepared, nullptr);
  EXPECT_DOUBLE_EQ(unprepared->total_s, 100);
  EXPECT_EQ(
      plan.reason[0],
      "Best for 10 epochs: a store at 'small', uncompressed, read from disk, 30 s in all, 20 "
      "s of them to build it. Unprepared it would be 100 s in all. It pays from 3 epochs on.");
}

TEST(Plan, OneEpochDoesNotEarnABuild) {
  PlanOptions options;
  options.epochs = 1;
  options.memory_bytes = 0;
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.place, Place::kNone);
  EXPECT_DOUBLE_EQ(plan.choice.total_s, 10);
  EXPECT_THAT(plan.what_if, Contains(AllOf(Field(&WhatIf::when, "from 3 epochs on"),
                                           Field(&WhatIf::differs, true))));
}

// What is kept is used by later epochs only, and keeping it costs something.
TEST(Plan, OneEpochDoesNotEarnACache) {
  PlanOptions options;
  options.epochs = 1;
  options.disk_bytes = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed)
    EXPECT_EQ(make_plan(random_profile(seed), options).choice.place, Place::kNone) << seed;
}

TEST(Plan, AMemoryCacheHoldsWhatFits) {
  PlanOptions options;
  options.memory_bytes = 50'000'000;  // half of the samples at "small"
  options.disk_bytes = 0;
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.place, Place::kMemory);
  EXPECT_EQ(plan.choice.cut_name, "small");
  EXPECT_DOUBLE_EQ(plan.choice.cached_share, 0.5);
  EXPECT_DOUBLE_EQ(plan.choice.first_epoch_s, 500 * 0.021 + 500 * 0.010);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 500 * 0.001 + 500 * 0.010);
  EXPECT_DOUBLE_EQ(plan.choice.memory_bytes, 5e7);
}

TEST(Plan, ThreadsReadsWritesAndTheConsumerBoundIt) {
  Profile profile = simple();
  profile.threads = 4;
  profile.storage = {{100, 1e7}, {}, 0.002, 0.001, 1e-9, 2e6, 2e-9};
  profile.engine_s = 0.001;
  PlanOptions options;
  options.memory_bytes = 200'000'000;
  const Plan plan = make_plan(profile, options);
  const Strategy* unprepared = find(plan, "source", "none", Place::kNone);
  ASSERT_NE(unprepared, nullptr);
  EXPECT_DOUBLE_EQ(unprepared->epoch_s, 1e9 / 1e7);  // the source never fits
  EXPECT_EQ(unprepared->bound_by, "storage");
  const Strategy* page = find(plan, "small", "none", Place::kStore, true);
  ASSERT_NE(page, nullptr);
  EXPECT_DOUBLE_EQ(page->build_s, 1e9 / 1e7 + 1000 * (1e5 + 2048) / 2e6);
  EXPECT_DOUBLE_EQ(page->epoch_s, 1000 * (0.001 + 1e5 * 3e-9 + 0.001 + 0.001) / 4);
  const Strategy* cold = find(plan, "small", "none", Place::kStore, false);
  ASSERT_NE(cold, nullptr);
  EXPECT_DOUBLE_EQ(cold->epoch_s, 1e8 / 1e7);
  options.consumer_samples_per_s = 50;
  const Plan slow = make_plan(profile, options);
  const Strategy* fed = find(slow, "small", "none", Place::kStore, true);
  ASSERT_NE(fed, nullptr);
  EXPECT_DOUBLE_EQ(fed->epoch_s, 20);
  EXPECT_EQ(fed->bound_by, "consumer");
}

TEST(Plan, FirstEpochsHaveNotLearnedAnythingYet) {
  Profile profile = simple();
  profile.cuts[0].first_s = {0.015};
  PlanOptions options;
  options.policy = Policy::kNone;
  EXPECT_DOUBLE_EQ(make_plan(profile, options).choice.total_s, 15 + 9 * 10);
}

TEST(Plan, ASourceThatFitsIsColdOnce) {
  Profile profile = simple();
  profile.storage.cold_random = {50, 0};
  PlanOptions options;
  options.policy = Policy::kNone;
  options.memory_bytes = 1'000'000'000;
  EXPECT_DOUBLE_EQ(make_plan(profile, options).choice.total_s, 20 + 9 * 10);
  options.memory_bytes = 999'999'000;
  EXPECT_DOUBLE_EQ(make_plan(profile, options).choice.total_s, 10 * 20);
  options.residency = Residency::kWarm;
  EXPECT_DOUBLE_EQ(make_plan(profile, options).choice.total_s, 10 * 10);
}

TEST(Plan, WithinOnePercentTheSimplerOneIsTaken) {
  Profile profile = test_profile(1000, {{"source", 1e6, 0, 0.010}, {"same", 1e5, 0, 0.00995}});
  PlanOptions options;
  options.memory_bytes = 0;
  EXPECT_EQ(make_plan(profile, options).choice.place, Place::kNone);
  profile.cuts[1].finish_s = {0.0098};
  EXPECT_EQ(make_plan(profile, options).choice.place, Place::kStore);
}

TEST(Plan, OfFullCachesTheOneWithoutACodecIsTaken) {
  const Profile profile = test_profile(
      1000,
      {{"source", 1e6, 0, 0.01}, {"small", 1e5, 0, 0.001, {test_variant("lz4", 99'500, 0, 0)}}});
  PlanOptions options;
  options.disk_bytes = 0;
  options.memory_bytes = 50'000'000;
  const Plan plan = make_plan(profile, options);
  const Strategy* packed = find(plan, "small", "lz4", Place::kMemory);
  ASSERT_NE(packed, nullptr);
  EXPECT_LT(packed->total_s, plan.choice.total_s);
  EXPECT_TRUE(plan.choice.codec.is_none());
}

TEST(Plan, MoneyMayChooseAnother) {
  PlanOptions options;
  options.memory_bytes = 0;
  options.prices = Prices{0, 3.6, 1};  // 0.001 per second of the one thread
  const Plan seconds = make_plan(simple(), options);
  EXPECT_EQ(seconds.choice.place, Place::kStore);
  EXPECT_DOUBLE_EQ(*seconds.choice.money, 0.030);
  options.prices = Prices{1, 3.6, 1};  // the store's 0.1 GB cost more than the 70 s it saves
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.place, Place::kNone);
  EXPECT_DOUBLE_EQ(*plan.choice.money, 0.100);
}

TEST(Plan, WhatDoesNotFitIsListedWithItsReason) {
  PlanOptions options;
  options.disk_bytes = 100'000'000;
  options.memory_bytes = 0;
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.place, Place::kNone);
  const Strategy* store = find(plan, "small", "none", Place::kStore);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->why_not, "needs 102 MB of disk, 100 MB given");
  EXPECT_THAT(plan.reason, Contains(HasSubstr("needs 102 MB of disk")));
}

TEST(Plan, APipelineThatDrawsFirstHasOnlyItsSourceToPrepare) {
  const Plan plan = make_plan(test_profile(10, {{"source", 1e6, 0, 0.01}}));
  EXPECT_THAT(plan.alternatives, Each(Field(&Strategy::cut, 0)));
  EXPECT_THAT(plan.reason, Contains(HasSubstr("draws in its first op")));
}

TEST(Plan, BadSamplesAreLeftOut) {
  Profile profile = simple();
  profile.bad.resize(1);  // one of two
  PlanOptions options;
  options.policy = Policy::kNone;
  const Plan plan = make_plan(profile, options);
  EXPECT_EQ(plan.samples, 500);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 5);
}

TEST(Plan, NothingMeasuredIsNothingPredicted) {
  const Plan plan = make_plan(test_profile(1, {{"source", 0, 0, 0}}));
  EXPECT_EQ(plan.choice.place, Place::kNone);
  EXPECT_EQ(plan.choice.total_s, 0);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("no rates of cold reads")));
}

// The PRESTO paper's CV pipeline, its seconds and rates on 8 cores: the best strategy depends on
// the number of epochs, and never is the last stable cut.
TEST(Plan, TheCvPipelineOfThePaper) {
  constexpr double kSamples = 1.28e6, kHour = 3600 / kSamples;
  Profile profile = test_profile(static_cast<std::int64_t>(kSamples),
                                 {{"source", 147e9 / kSamples, 3.3 * kHour, 1 / 957.0},
                                  {"decode", 842.5e9 / kSamples, 3.6 * kHour, 1 / 753.0},
                                  {"resize", 347.3e9 / kSamples, 4.0 * kHour, 1 / 1808.0},
                                  {"center", 1390e9 / kSamples, 4.1 * kHour, 1 / 580.0}});
  profile.storage.warm_file_s = 1 / 126.0 - 1 / 957.0;  // many small files on a slow disk
  for (CutProfile& cut : profile.cuts) cut.prefix_s[0] -= profile.storage.warm_file_s;
  profile.cuts.back().prefix_s = {0};
  const auto best = [&](std::int64_t epochs) {
    PlanOptions options;
    options.epochs = epochs;
    options.memory_bytes = 80'000'000'000;
    return make_plan(profile, options).choice;
  };
  EXPECT_EQ(best(1).place, Place::kNone);
  for (const std::int64_t epochs : {2, 3}) EXPECT_EQ(best(epochs).cut_name, "source");
  for (const std::int64_t epochs : {2, 3}) EXPECT_EQ(best(epochs).place, Place::kStore);
  for (const std::int64_t epochs : {5, 10, 90}) EXPECT_EQ(best(epochs).cut_name, "resize");
  EXPECT_NEAR(best(90).total_s / 3600, 21.9, 0.3);
}

TEST(Plan, RefusesWhatMakesNoSense) {
  const auto with = [](auto&& change) {
    return [change] {
      PlanOptions options;
      Profile profile = simple();
      change(profile, options);
      make_plan(profile, options);
    };
  };
  using P = Profile;
  using O = PlanOptions;
  EXPECT_THAT(with([](P&, O& o) { o.epochs = 0; }),
              ThrowsMessage<Error>("epochs must be at least 1, got 0"));
  EXPECT_THAT(with([](P&, O& o) { o.threads = 0; }),
              ThrowsMessage<Error>("threads must be at least 1, got 0"));
  EXPECT_THAT(with([](P&, O& o) { o.consumer_samples_per_s = 0; }),
              ThrowsMessage<Error>("the consumer's samples per second must be positive, got 0.0"));
  EXPECT_THAT(with([](P&, O& o) {
                o.prices = Prices{-1, 0, 1};
              }),
              ThrowsMessage<Error>("the price of disk must not be negative, got -1.0"));
  EXPECT_THAT(with([](P& p, O&) { p.ids.clear(); }), ThrowsMessage<Error>(HasSubstr("no samples")));
  EXPECT_THAT(
      with([](P& p, O&) { p.cuts[1].bytes.push_back(1); }),
      ThrowsMessage<Error>("the profile has 2 values of bytes at cut 'small' for 1 samples"));
  EXPECT_THAT(with([](P& p, O&) { p.cuts[0].finish_s[0] = NAN; }),
              ThrowsMessage<Error>("the profile has nan among its finish_s at cut 'source'"));
  EXPECT_THAT([] { policy_named("best"); },
              ThrowsMessage<Error>("policy must be one of auto, none, presto, got 'best'"));
}

TEST(Plan, RefusesJsonThatIsNoPlan) {
  const std::string good = to_json(make_plan(simple()));
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(0, good.size() / 2)})
    EXPECT_THAT([&] { plan_from_json(bad); }, ThrowsMessage<Error>(HasSubstr("this is no plan: ")));
  std::string other = good;
  other.replace(other.find("\"store\""), 7, "\"attic\"");
  EXPECT_THAT([&] { plan_from_json(other); },
              ThrowsMessage<Error>(HasSubstr("place must be none, store or memory, got 'attic'")));
}

TEST(Plan, TheTableShowsTheChoiceFirst) {
  const Plan plan = make_plan(simple());
  const std::string text = explain(plan, 2);
  EXPECT_THAT(text, HasSubstr(plan.reason[0]));
  EXPECT_THAT(text, HasSubstr("and " + std::to_string(plan.alternatives.size() - 1) + " more"));
}

}  // namespace
}  // namespace cutwater
