// SPDX-License-Identifier: Apache-2.0
// Plans of a server near the storage, from profiles made by hand.
#include "plan/offload_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/error.h"
#include "plan/offload_table.h"
#include "plan/test_profiles.h"

namespace cutwater {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two samples that stand for 1000: one large, one small. Cuts: source, decode, crop (fresh). An
// excerpt of the first one.
Profile two_kinds() {
  Profile profile = test_profile(1000, {});
  profile.ids = {0, 1};
  profile.threads = 4;
  profile.cuts.clear();
  const auto cut = [&](const char* name, bool stable, std::vector<double> bytes,
                       std::vector<double> prefix_s, std::vector<double> finish_s) {
    CutProfile made;
    made.cut = static_cast<Cut>(profile.cuts.size());
    made.name = name;
    made.stable = stable;
    made.bytes = std::move(bytes);
    made.op_s = made.prefix_s = std::move(prefix_s);
    made.finish_s = std::move(finish_s);
    if (stable) made.first_s = made.memory_s = made.finish_s;
    made.variants.push_back({{}, made.bytes, {0, 0}, {0, 0}});
    profile.cuts.push_back(made);
  };
  cut("source", true, {400e3, 80e3}, {0, 0}, {4e-3, 1e-3});
  cut("decode", true, {2e6, 1e6}, {3e-3, 1e-3}, {1e-3, 1e-3});
  cut("crop", false, {150e3, 150e3}, {3.5e-3, 1.5e-3}, {2e-4, 2e-4});
  profile.cuts[2].variants.push_back(
      {codec_named("zstd:1"), {90e3, 90e3}, {1e-3, 1e-3}, {3e-4, 3e-4}});
  profile.excerpt = {{200e3, 0}, {1e-3, 0}, {3e-3, 0}};
  return profile;
}

PlanOptions options_of(Policy policy, double link, double storage_threads) {
  PlanOptions options;
  options.policy = policy;
  options.epochs = 3;
  options.link_bytes_per_s = link;
  options.storage_threads = storage_threads;
  return options;
}

TEST(OffloadColumns, HaveEveryVariantOfTheProfile) {
  Profile profile = two_kinds();
  profile.engine_s = 1e-3;
  const OffloadColumns columns(profile);
  std::vector<std::string> names;
  for (const OffloadVariant& variant : columns.variants) names.push_back(to_string(variant));
  EXPECT_THAT(names, ElementsAre("raw", "excerpt", "decode", "crop", "crop:zstd:1"));
  EXPECT_EQ(columns.weight, 500);
  const OffloadTable table = columns.table();
  ASSERT_EQ(table.samples(), 2u);
  const auto expect = [&](std::size_t sample, std::size_t option, OffloadOption expected) {
    const OffloadOption& found = table.row(sample)[option];
    EXPECT_DOUBLE_EQ(found.bytes, expected.bytes);
    EXPECT_DOUBLE_EQ(found.storage_s, expected.storage_s);
    EXPECT_DOUBLE_EQ(found.compute_s, expected.compute_s);
  };
  expect(0, 0, {400e3, 0, 5e-3});
  expect(0, 1, {200e3, 1e-3, 4e-3});
  expect(0, 2, {2e6, 3e-3, 2e-3});
  expect(1, 4, {90e3, 2.5e-3, 1.5e-3});
  EXPECT_EQ(table.row(1)[1].bytes, kNoOption.bytes);
  // A codec that does not shrink the cut is no option, nor are cuts that nothing is known of.
  profile.cuts[2].variants[1].bytes = {150e3, 151e3};
  EXPECT_EQ(OffloadColumns(profile).variants.size(), 4u);
  profile.cuts[2].prefix_s.clear();
  EXPECT_EQ(OffloadColumns(profile).variants.size(), 3u);
}

TEST(OffloadColumns, OfALoadersProfileSumTheOpsOfFreshCuts) {
  Profile profile = two_kinds();
  profile.excerpt = {};
  profile.cuts[2].finish_s.clear();
  profile.cuts[2].variants.clear();
  const OffloadColumns columns(profile);
  ASSERT_EQ(columns.variants.size(), 3u);
  EXPECT_DOUBLE_EQ(columns.table().row(0)[2].compute_s, 0);  // nothing follows
}

TEST(OffloadPlan, HasTheFivePolicies) {
  const Plan plan = make_plan(two_kinds(), options_of(Policy::kSophon, 10e6, 2));
  ASSERT_TRUE(plan.offload);
  const OffloadOutcome& ours = *plan.choice.offload;
  EXPECT_EQ(ours.policy, OffloadPolicy::kSophon);
  // The large one packed at the crop, the small one as it is: 85 MB instead of 240 MB.
  EXPECT_DOUBLE_EQ(ours.bytes, 500 * (90e3 + 80e3));
  EXPECT_DOUBLE_EQ(ours.times.storage_s, 500 * 4.5e-3 / 2);
  EXPECT_DOUBLE_EQ(plan.choice.epoch_s, 8.5);
  EXPECT_DOUBLE_EQ(plan.choice.total_s, 25.5);
  EXPECT_EQ(plan.choice.bound_by, "network");
  ASSERT_EQ(plan.alternatives.size(), 4u);
  std::vector<std::string_view> names;
  for (const Strategy& s : plan.alternatives) names.push_back(name_of(s.offload->policy));
  EXPECT_THAT(names, ElementsAre("paper", "all-off", "resize-off", "no-off"));
  EXPECT_DOUBLE_EQ(plan.alternatives[0].offload->bytes, 500 * (150e3 + 80e3));
  EXPECT_DOUBLE_EQ(plan.alternatives[3].epoch_s, 24);
  ASSERT_EQ(plan.offload->by_threads.size(), 9u);
  for (const double bytes : plan.offload->by_threads[0].bytes) EXPECT_DOUBLE_EQ(bytes, 240e6);
  EXPECT_THAT(plan.reason[0], HasSubstr("an epoch sends 85 MB, 2.82x less than raw"));
  EXPECT_THAT(plan.reason[0], HasSubstr("50 % raw, 50 % crop:zstd:1"));
  EXPECT_THAT(explain(plan), HasSubstr("T_CS"));
  ASSERT_EQ(plan.resources.size(), 4u);
  EXPECT_EQ(plan.resources[0].name, "network");
  EXPECT_DOUBLE_EQ(plan.resources[0].use, 1);
  EXPECT_NEAR(*plan.resources[0].price, 25.5 * (1 - 1 / 1.1), 1e-9);
}

TEST(OffloadPlan, ThePolicyThatIsAskedForIsTheChoice) {
  for (const Policy policy :
       {Policy::kSophon, Policy::kNoOff, Policy::kAllOff, Policy::kResizeOff, Policy::kPaper}) {
    const Plan plan = make_plan(two_kinds(), options_of(policy, 10e6, 2));
    EXPECT_EQ(name_of(plan.choice.offload->policy), name_of(policy));
    EXPECT_EQ(plan_from_json(to_json(plan)), plan) << name_of(policy);
  }
  // Threads that are not given are the profile's, on both sides; a link that is not is no bound.
  PlanOptions options;
  options.policy = Policy::kSophon;
  const Plan plan = make_plan(two_kinds(), options);
  EXPECT_EQ(plan.options.storage_threads, 4);
  EXPECT_EQ(plan.choice.offload->times.network_s, 0);
  EXPECT_EQ(plan_from_json(to_json(plan)), plan);
}

TEST(OffloadPlan, NothingToDoIsSaid) {
  const auto first_words = [](const PlanOptions& options) {
    const Plan plan = make_plan(two_kinds(), options);
    EXPECT_EQ(plan_from_json(to_json(plan)), plan);
    return plan.reason[0] + plan.reason[2];
  };
  PlanOptions options = options_of(Policy::kSophon, 10e6, 0);
  EXPECT_THAT(first_words(options), HasSubstr("samples are sent raw"));
  EXPECT_THAT(first_words(options), HasSubstr("Storage has no threads to spare"));
}

TEST(OffloadPlan, RefusesOptionsOfOthers) {
  const auto refused = [](const PlanOptions& options, const char* why) {
    EXPECT_THAT([&] { make_plan(two_kinds(), options); },
                testing::ThrowsMessage<Error>(HasSubstr(why)));
  };
  PlanOptions options = options_of(Policy::kSophon, 1e6, 1);
  options.jobs = 2;
  refused(options, "go with policy seneca, got sophon");
  options = options_of(Policy::kSophon, 1e6, 1);
  options.prices = Prices{};
  refused(options, "prices go with the policies auto, none, presto and seneca, got sophon");
  refused(options_of(Policy::kSophon, 1e6, -1), "storage threads must be in 0..1000000, got -1.0");
  refused(options_of(Policy::kSophon, -1, 1), "the link's bytes per second must be positive");
  options = {};
  options.storage_threads = 2;
  refused(options, "storage threads and their speed go with the policies sophon");
}

TEST(OffloadPlan, OfAnyProfileIsNoWorseThanRaw) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const Profile profile = random_profile(seed);
    for (const double threads : {0.0, 1.0, 4.0}) {
      const Plan plan = make_plan(profile, options_of(Policy::kSophon, 50e6, threads));
      for (const Strategy& other : plan.alternatives)
        EXPECT_LE(plan.choice.epoch_s, other.epoch_s * (1 + 1e-8));
      EXPECT_LE(plan.offload->least_epoch_s, plan.choice.epoch_s * (1 + 1e-8));
      EXPECT_EQ(plan_from_json(to_json(plan)).choice, plan.choice);
      EXPECT_FALSE(explain(plan).empty());
    }
  }
}

}  // namespace
}  // namespace cutwater
