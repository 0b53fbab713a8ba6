// SPDX-License-Identifier: Apache-2.0
#include "plan/cache_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/error.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;

// 1000 samples of 1 MB, 10 ms each from the source. Coefficients: 2 MB, 4 ms; pixels: 5 MB, 1 ms.
Profile simple() {
  Profile profile = test_profile(
      1000,
      {{"source", 1e6, 0, 0.010}, {"entropy", 2e6, 0.006, 0.004}, {"decode", 5e6, 0.009, 0.001}});
  profile.cuts.back().bytes = {6e5};
  return profile;
}

PlanOptions seneca(int jobs, double cache_bytes) {
  PlanOptions options;
  options.policy = Policy::kSeneca;
  options.jobs = jobs;
  options.memory_bytes = static_cast<std::uint64_t>(cache_bytes);
  options.residency = Residency::kWarm;
  options.window_samples = 10;
  return options;
}

CachePlan planned(const Profile& profile, const PlanOptions& options) {
  return *make_plan(profile, options).cache;
}

TEST(CachePlan, OneJobHitsWhatIsResident) {
  PlanOptions options = seneca(1, 1e9);
  options.split = "decode=1";
  const CachePlan plan = planned(simple(), options);
  EXPECT_NEAR(plan.hit_rate, 0.2, 1e-6);  // 200 of 1000 samples fit
  EXPECT_NEAR(1 / plan.samples_per_s, 0.8 * 0.010 + 0.2 * 0.001, 1e-7);
  EXPECT_NEAR(1 / plan.first_epoch_samples_per_s, 0.010, 1e-7);
  EXPECT_EQ(plan.window_bytes, 0);
}

TEST(CachePlan, TheWholeMayTakeLongerThanItsParts) {
  Profile profile = simple();
  PlanOptions options = seneca(1, 1e9);
  options.split = "decode=1";
  profile.engine_s = 0.001;
  const double sample_s = 1 / planned(profile, options).samples_per_s;
  profile.whole_s = 1.2 * 0.010;
  EXPECT_NEAR(1 / planned(profile, options).samples_per_s, 1.2 * (sample_s - 0.001) + 0.001, 1e-8)
      << "what the engine does besides is not in the whole";
}

TEST(CachePlan, JobsTakeFromEachOther) {
  for (const int jobs : {2, 3, 8}) {
    PlanOptions options = seneca(jobs, 1e9);
    options.split = "decode=1";
    const CachePlan plan = planned(simple(), options);
    // 1 % of the samples that are not resident are on their way: x + (1 - x) / 100 = 0.2.
    const double x = 0.19 / 0.99;
    EXPECT_NEAR(plan.hit_rate, 1 - (1 - x) / jobs, 1e-6);
    EXPECT_NEAR(plan.per_job, plan.samples_per_s / jobs, 1e-9);
    EXPECT_NEAR(1 / plan.samples_per_s, 0.001 + (1 - x) / jobs * 0.009, 1e-7);
    EXPECT_NEAR(plan.window_bytes, 5e6 * 10 * (1 - x), 1e-2);
    // At first nothing is resident: one makes, the others take.
    EXPECT_NEAR(1 / plan.first_epoch_samples_per_s, (0.010 + (jobs - 1) * 0.001) / jobs, 1e-7);
  }
}

// Around a daemon, what is found goes through a checksum, and still comes from memory after that;
// what is kept is checked, copied and announced.
TEST(CachePlan, ProcessesCheckWhatTheyShare) {
  Profile profile = simple();
  for (CutProfile& cut : profile.cuts)
    for (double& seconds : cut.memory_s) seconds *= 3;
  profile.fresh_memory_bytes_per_s = 1;
  profile.checked_memory_bytes_per_s = 5e9;  // 1 ms of the pixels of a sample
  profile.shared_checked_bytes_per_s = 2.5e9;
  profile.shared_memory_bytes_per_s = 1e9;
  profile.storage.check_per_byte_s = 1e-10;
  PlanOptions options = seneca(2, 1e12);
  options.split = "decode=1";
  options.processes = true;
  const CachePlan plan = planned(profile, options);
  EXPECT_NEAR(1 / plan.samples_per_s, 0.003 + 0.001, 1e-7);
  const double made = 0.010 + 0.005 + 0.0005, told = 60e-6;
  EXPECT_NEAR(1 / plan.first_epoch_samples_per_s, (made + told + 0.003 + 0.002) / 2, 1e-7);
}

TEST(CachePlan, BooksTakeTheirPartOfTheCache) {
  PlanOptions options = seneca(1, 1e9);
  options.split = "decode=1";
  const double without = planned(simple(), options).hit_rate;
  options.cache_books = 0.25;
  EXPECT_NEAR(planned(simple(), options).hit_rate, 0.75 * without, 1e-9);
}

TEST(CachePlan, ProcessesNeedARateThatWasMeasured) {
  Profile profile = simple();  // of earlier times, which knows of none
  for (CutProfile& cut : profile.cuts)
    for (double& seconds : cut.memory_s) seconds *= 3;
  profile.fresh_memory_bytes_per_s = 1e9;
  PlanOptions options = seneca(2, 1e12);
  options.split = "decode=1";
  const CachePlan before = planned(profile, options);
  options.processes = true;
  const CachePlan after = planned(profile, options);
  EXPECT_NEAR(after.samples_per_s, before.samples_per_s, 1e-9);
  const double told = 60e-6;
  EXPECT_NEAR(1 / after.first_epoch_samples_per_s, 1 / before.first_epoch_samples_per_s + told / 2,
              1e-7);
}

TEST(CachePlan, TheDenserFormIsKeptWhereBytesAreScarce) {
  // Seconds saved per byte: coefficients 6 ms / 2 MB, pixels 9 ms / 5 MB.
  EXPECT_EQ(planned(simple(), seneca(1, 1e9)).split, "entropy=1");
  EXPECT_EQ(planned(simple(), seneca(1, 5e9)).split, "decode=1");  // all fits
  // In between, both: 2a + 5b = 3.5 and a + b = 1.
  const CachePlan both = planned(simple(), seneca(1, 3.5e9));
  ASSERT_EQ(both.forms.size(), 2U);
  EXPECT_NEAR(both.forms[0].samples_share, 0.5, 0.002);
  EXPECT_NEAR(1 / both.samples_per_s, 0.5 * 0.004 + 0.5 * 0.001, 2e-5);
  EXPECT_NEAR(both.price_s_per_byte, 0.003 / 3e6, 1e-12);  // 3 ms for 3 MB more
  EXPECT_NEAR(both.hit_rate, 1, 2e-3);
}

TEST(CachePlan, SlowSamplesComeFirst) {
  Profile profile = test_profile(1000, {{"source", 1e6, 0, 0}, {"decode", 5e6, 0, 0.001}});
  profile.ids = {0, 1};
  for (CutProfile& cut : profile.cuts) {
    for (auto* column :
         {&cut.bytes, &cut.op_s, &cut.prefix_s, &cut.finish_s, &cut.first_s, &cut.memory_s})
      if (!column->empty()) column->push_back(column->front());
    for (VariantProfile& v : cut.variants)
      v = {v.codec, cut.bytes, std::vector<double>(2), std::vector<double>(2)};
  }
  CutProfile& source = profile.cuts[0];
  source.finish_s = source.first_s = source.memory_s = {0.010, 0.030};
  profile.cuts[1].prefix_s = {0.009, 0.029};
  PlanOptions options = seneca(1, 2.5e9);  // half of them
  options.split = "decode=1";
  const CachePlan plan = planned(profile, options);
  EXPECT_NEAR(plan.hit_rate, 0.5, 1e-6);
  EXPECT_NEAR(1 / plan.samples_per_s, 0.5 * 0.010 + 0.5 * 0.001, 1e-7);  // the slow half
}

TEST(CachePlan, StorageAndThreadsAreFilledTogether) {
  const Profile profile = simple();
  PlanOptions options = seneca(1, 1e9);
  options.residency = Residency::kCold;
  // What is encoded spares the storage most, what is further on the threads.
  options.storage_bytes_per_s = 6e7;
  const Plan plan = make_plan(profile, options);
  EXPECT_GT(plan.cache->forms.size(), 1U);
  for (const ResourceUse& use : plan.resources) {
    const bool full = use.name == "cpu" || use.name == "storage" || use.name == "memory";
    EXPECT_NEAR(use.use, full ? 1 : 0, 0.01) << use.name;
  }
  options.storage_bytes_per_s = 1e5;
  const Plan slow = make_plan(profile, options);
  EXPECT_EQ(slow.cache->split, "source=1");  // all of it fits, and nothing else does
  EXPECT_NEAR(slow.cache->hit_rate, 1, 1e-3);
  EXPECT_EQ(slow.choice.bound_by, "cpu");
  options.memory_bytes = 500'000'000;
  EXPECT_EQ(make_plan(profile, options).choice.bound_by, "storage");
}

TEST(CachePlan, TheConsumerBoundsAllJobs) {
  PlanOptions options = seneca(2, 1e10);
  options.consumer_samples_per_s = 100;
  const Plan plan = make_plan(simple(), options);
  EXPECT_DOUBLE_EQ(plan.cache->samples_per_s, 200);
  EXPECT_EQ(plan.choice.bound_by, "consumer");
  EXPECT_EQ(plan.cache->price_s_per_byte, 0);
}

TEST(CachePlan, ALinkIsSharedByReadsAndTheCache) {
  PlanOptions options = seneca(1, 1e9);
  options.split = "source=1";
  options.link_bytes_per_s = 5e7;
  const Plan plan = make_plan(simple(), options);
  EXPECT_NEAR(plan.cache->samples_per_s, 50, 1e-6);
  EXPECT_EQ(plan.choice.bound_by, "link");
}

TEST(CachePlan, FreshFormsAreForJobsOfOneSeed) {
  PlanOptions options = seneca(4, 1e8);
  const CachePlan apart = planned(simple(), options);
  EXPECT_EQ(apart.fresh, "");
  options.same_seed = true;
  const CachePlan alike = planned(simple(), options);
  EXPECT_EQ(alike.fresh, "last");
  EXPECT_GT(alike.samples_per_s, apart.samples_per_s);
  EXPECT_GE(alike.hit_rate, 0.75);
  options.jobs = 1;
  EXPECT_EQ(planned(simple(), options).fresh, "");
}

// To make coefficients takes three times as long as the whole way without them.
TEST(CachePlan, WhatTakesLongToMakeIsNotMadeForFewEpochs) {
  Profile profile = test_profile(
      1000,
      {{"source", 1e6, 0, 0.010}, {"entropy", 2e6, 0.026, 0.004}, {"decode", 5e7, 0.027, 0.001}});
  profile.cuts.back().bytes = {6e5};
  PlanOptions options = seneca(1, 2e9);
  options.epochs = 2;
  EXPECT_EQ(planned(profile, options).split, "");
  options.epochs = 100;
  const CachePlan kept = planned(profile, options);
  EXPECT_THAT(kept.split, HasSubstr("entropy="));
  EXPECT_LT(kept.first_epoch_samples_per_s, 100);
  EXPECT_GT(kept.samples_per_s, 200);
}

TEST(CachePlan, ASourceThatFitsBesideNeedsNoStorage) {
  Profile profile = simple();
  profile.storage.cold_random = {0, 1e7};
  PlanOptions options = seneca(1, 3e9);
  options.residency = Residency::kFits;
  options.split = "entropy=1";
  EXPECT_NEAR(1 / planned(profile, options).samples_per_s, 0.004, 1e-6);  // all, and no misses
  options.memory_bytes = 2'000'000'000;  // half of it beside the source is as good as the source
  options.split = "decode=1";
  const CachePlan plan = planned(profile, options);
  EXPECT_NEAR(1 / plan.samples_per_s, 0.8 * 0.010 + 0.2 * 0.001, 1e-6);
}

TEST(CachePlan, WithoutACacheNothingIsKept) {
  const Plan plan = make_plan(simple(), seneca(3, 0));
  EXPECT_EQ(plan.cache->split, "");
  EXPECT_EQ(plan.cache->hit_rate, 0);
  EXPECT_NEAR(plan.cache->samples_per_s, 100, 1e-3);
  EXPECT_EQ(plan.choice.place, Place::kNone);
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
}

TEST(CachePlan, ThePaperIsComparedOnOurTerms) {
  PlanOptions options = seneca(1, 1e9);
  options.residency = Residency::kCold;
  options.storage_bytes_per_s = 5e7;
  const CachePlan plan = planned(simple(), options);
  EXPECT_NEAR(plan.paper.encoded + plan.paper.decoded + plan.paper.augmented, 1, 1e-9);
  EXPECT_GT(plan.paper.samples_per_s, 0);
  EXPECT_LE(plan.paper.by_our_model, plan.samples_per_s * 1.001);
}

TEST(CachePlan, JsonComesBackAndWordsHaveTheSplit) {
  PlanOptions options = seneca(3, 3.5e9);
  options.same_seed = true;
  options.cache_bytes_per_s = 1e9;
  const Plan plan = make_plan(simple(), options);
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
  EXPECT_THAT(explain(plan), HasSubstr("--split " + plan.cache->split));
  EXPECT_THAT(plan.reason, Contains(HasSubstr("The Seneca paper's equations choose")));
  EXPECT_THAT(plan.reason[0], HasSubstr("3 jobs at the same time and a cache of 3.5 GB"));
}

TEST(CachePlan, SplitsAsText) {
  const Profile profile = test_profile(
      10,
      {{"source", 1e6, 0, 0.01}, {"small", 1e5, 0, 0.001, {test_variant("zstd:1", 5e4, 0, 0)}}});
  const CacheModel model(profile);
  EXPECT_EQ(shares_of(model, "0=0.25,small:zstd:1=0.5"), (std::vector<double>{0.25, 0, 0.5}));
  EXPECT_EQ(split_text(model, std::vector<double>{0.25, 0, 0.5}), "small:zstd:1=0.5,source=0.25");
  const auto refused = [&](const char* text) { return [&model, text] { shares_of(model, text); }; };
  EXPECT_THAT(refused("large=1"),
              ThrowsMessage<Error>("split: there is no stable form 'large' in the profile, only "
                                   "source, small, small:zstd:1"));
  EXPECT_THAT(refused("source=1,small=0.5"), ThrowsMessage<Error>(HasSubstr("more than all")));
  for (const char* text : {"source", "source=", "source=much", "source=-1", "source=2", ",", "=1"})
    EXPECT_THROW(refused(text)(), Error) << text;
}

TEST(CachePlan, WrongOptionsAreNamed) {
  PlanOptions options = seneca(0, 1);
  EXPECT_THAT([&] { make_plan(simple(), options); },
              ThrowsMessage<Error>("jobs must be in 1..1024, got 0"));
  options = {};
  options.jobs = 2;
  EXPECT_THAT([&] { make_plan(simple(), options); },
              ThrowsMessage<Error>(HasSubstr("go with policy seneca, got auto")));
  options = seneca(1, 1);
  options.storage_bytes_per_s = 0;
  EXPECT_THAT([&] { make_plan(simple(), options); },
              ThrowsMessage<Error>("the storage's bytes per second must be positive, got 0.0"));
}

}  // namespace
}  // namespace cutwater
