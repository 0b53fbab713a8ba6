// SPDX-License-Identifier: Apache-2.0
#include "cutwater/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/test_ops.h"
#include "cutwater/error.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::Not;
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
  EXPECT_DOUBLE_EQ(plan.choice.build_s, 20 + 32 * 0.020);  // with some on trial
  EXPECT_DOUBLE_EQ(plan.choice.first_epoch_s, 1);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 1);
  EXPECT_DOUBLE_EQ(plan.choice.total_s, 30.64);
  EXPECT_DOUBLE_EQ(plan.choice.by_product_total_s, 21 + 9);
  EXPECT_DOUBLE_EQ(plan.choice.samples_per_s, 1000);
  EXPECT_DOUBLE_EQ(plan.choice.disk_bytes, 1000 * (1e5 + 2048));
  EXPECT_EQ(plan.choice.break_even_epochs, 3);  // 23.64 s against 30; after 2, 22.64 against 20
  EXPECT_EQ(plan.choice.bound_by, "cpu");
  const Strategy* unprepared = find(plan, "source", "none", Place::kNone);
  ASSERT_NE(unprepared, nullptr);
  EXPECT_DOUBLE_EQ(unprepared->total_s, 100);
  EXPECT_EQ(
      plan.reason[0],
      "Best for 10 epochs: a store at 'small', uncompressed, read from disk, 30.6 s in all, 20.6 "
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

TEST(Plan, TheWholeMayTakeLongerThanItsParts) {
  Profile profile = simple();
  const double parts_s = profile.cuts[0].finish_s[0];
  const double rate = make_plan(profile, {}).alternatives.front().samples_per_s;
  for (const auto& [whole_s, times] : {std::pair{0.0, 1.0}, {0.9, 1.0}, {1.25, 1.25}, {9, 2}}) {
    profile.whole_s = whole_s * parts_s;
    const Plan plan = make_plan(profile, {});
    EXPECT_DOUBLE_EQ(plan.alternatives.front().samples_per_s, rate / times) << whole_s;
  }
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
  EXPECT_DOUBLE_EQ(page->build_s, 1e9 / 1e7 + 1000 * (1e5 + 2048) / 2e6 +  // storage
                                      32 * (0.002 + 1e6 * 1e-9 + 0.020) +
                                      1000 * (1e5 + 2048) / 16 / 2e6);
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
  EXPECT_DOUBLE_EQ(*seconds.choice.money, 0.03064);
  options.prices = Prices{1, 3.6, 1};  // the store's 0.1 GB cost more than the 70 s it saves
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan.choice.place, Place::kNone);
  EXPECT_DOUBLE_EQ(*plan.choice.money, 0.100);
}

TEST(Plan, WithPricesResourcesArePricedInMoney) {
  PlanOptions options;
  options.policy = Policy::kNone;
  options.consumer_samples_per_s = 10;
  const auto price = [&](const std::string& name) {
    for (const ResourceUse& use : make_plan(simple(), options).resources)
      if (use.name == name) return use.price.value_or(-1);
    return -1.0;
  };
  EXPECT_NEAR(price("consumer"), 1000 - 1000 / 1.1, 1e-9);
  options.prices = Prices{0, 3.6, 1};  // 0.001 per second of the one thread
  EXPECT_NEAR(price("consumer"), 1 - 1 / 1.1, 1e-9);
  EXPECT_NEAR(price("cpu"), 1 - 1.1, 1e-9);  // a tenth more threads, and nothing gained
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

// 1000 samples in 16 shards; the one thread waits for what it writes.
TEST(Plan, AStoreIsBuiltAsMaterializeDoesIt) {
  Profile profile = simple();
  profile.storage.write_bytes_per_s = 1e7;
  profile.storage.check_per_byte_s = 1e-9;
  profile.storage.write_file_s = 0.1;
  PlanOptions options;
  options.memory_bytes = 0;
  const double stored = 1e5 + 2048, write_s = stored / 1e7;
  const auto of = [&](const Plan& plan) {
    const Strategy* store = find(plan, "small", "none", Place::kStore);
    return store != nullptr ? *store : Strategy();
  };
  const Strategy store = of(make_plan(profile, options));
  const double each_s = write_s + 2 * stored * 1e-9 + 2 * 0.1 / 63;  // of 63 in a shard
  const double once_s = 1000 * stored / 16 / 1e7 + 4 * 0.1;
  EXPECT_NEAR(store.build_s, 1000 * (0.020 + each_s) + 32 * 0.020 + once_s, 1e-9);
  // An epoch that spools 0.1 MB a sample, one that shares the thread with the writer, and others.
  const double spool_s = 1000 * std::max(0.021, 1e5 / 1e7);
  EXPECT_NEAR(store.by_product_total_s,
              spool_s + 1000 * (0.001 + each_s) + once_s + 8 * store.epoch_s, 1e-9);
  options.epochs = 1;
  EXPECT_NEAR(of(make_plan(profile, options)).by_product_total_s, spool_s + 1000 * each_s + once_s,
              1e-9);
}

TEST(Plan, ColdReadsThatWereNotMeasuredAreNoBound) {
  Profile profile = simple();
  profile.storage.cold_sequential = {1, 1};  // of another disk, perhaps
  PlanOptions options;
  options.policy = Policy::kNone;
  options.residency = Residency::kCold;
  const Plan plan = make_plan(profile, options);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 10);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("no rates of cold reads")));
  profile.storage.cold_random = {50, 0};
  EXPECT_THAT(make_plan(profile, options).notes,
              Contains(HasSubstr("no rate of cold reads in bytes per second")));
}

TEST(Plan, APipelineThatDrawsFirstHasOnlyItsSourceToPrepare) {
  static constexpr std::array<const OpDef*, 1> kOps = {&test::kJitter};
  static constexpr OpTable kTable{kOps, {}};
  const std::vector<std::uint8_t> stored(5, 1);
  const auto plan_of = [&](const char* text) {
    const auto source = open_memory(std::vector<std::span<const std::uint8_t>>(4, stored));
    ProfileOptions options;
    options.threads = 1;
    return make_plan(make_profile(source, Pipeline::parse(text, kTable), options));
  };
  const Plan plan = plan_of("jitter");
  EXPECT_THAT(plan.alternatives, Each(Field(&Strategy::cut, 0)));
  EXPECT_THAT(plan.reason, Contains(HasSubstr("draws in its first op")));
  EXPECT_THAT(plan_of("").reason, Not(Contains(HasSubstr("draws"))));  // there is no first op
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
              ThrowsMessage<Error>("epochs must be in 1..1000000, got 0"));
  EXPECT_THAT(with([](P&, O& o) { o.epochs = 1'000'001; }),
              ThrowsMessage<Error>("epochs must be in 1..1000000, got 1000001"));
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
  EXPECT_THAT(with([](P& p, O&) {
                p.ids = {0, 1};
                p.cuts[0].bytes = {1e308, 1e308};
              }),
              ThrowsMessage<Error>(HasSubstr("the mean of the profile's bytes at cut 'source'")));
  EXPECT_THAT(with([](P& p, O&) {
                p.storage.cold_random = {1e-308, 0};
              }),
              ThrowsMessage<Error>(HasSubstr("beyond all measure: unprepared")));
  EXPECT_THAT([] { policy_named("best"); },
              ThrowsMessage<Error>("policy must be one of auto, none, presto, seneca, sophon, "
                                   "no-off, all-off, resize-off, paper, got 'best'"));
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
