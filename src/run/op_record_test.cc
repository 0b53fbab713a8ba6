// SPDX-License-Identifier: Apache-2.0
// A loader that profiles by the way: the same stream as without, and a record that is true.
#include "run/op_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/hold.h"
#include "cutwater/plan.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::MemorySource;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

constexpr std::string_view kChain = "pixels(40, 30) | window(1, 1, 20, 13) | jitter | opaque";
constexpr std::string_view kStill = "pixels(40, 30) | window(1, 1, 20, 13) | opaque";
constexpr std::int64_t kSamples = 41;

What what_of(std::string_view chain = kChain, std::set<SampleId> bad = {}) {
  What what = what_from(faulty(kSamples, std::move(bad)), 4, chain);
  what.shuffle = true;
  what.seed = 5;
  what.bad_samples.policy = OnError::kSkip;
  return what;
}

HowFast profiling(HowFast how) {
  how.profile = true;
  return how;
}

std::vector<Seen> stream(const What& what, const HowFast& how) {
  Loader loader(what, how);
  return test::epochs(loader, 3);
}

TEST(OpRecord, DrawsAllOfASmallDataSetOnce) {
  OpRecord record(300);
  for (SampleId id = 0; id < 300; ++id) EXPECT_TRUE(record.draw(id, 0));
  for (SampleId id = 0; id < 300; ++id) EXPECT_FALSE(record.draw(id, 1));
}

TEST(OpRecord, DrawsFewOfALargeOneAndNotTooManyInAll) {
  constexpr SampleId kMany = 100'000;
  OpRecord record(kMany);
  int first = 0, all = 0;
  std::set<SampleId> drawn;
  for (std::uint32_t epoch = 0; epoch < 5; ++epoch)
    for (SampleId id = 0; id < kMany; ++id) {
      if (!record.draw(id, epoch)) continue;
      ++(epoch == 0 ? first : all);
      EXPECT_TRUE(drawn.insert(id).second) << "twice: " << id;
    }
  EXPECT_NEAR(first, kMany / 64, 160);  // four standard deviations
  EXPECT_EQ(static_cast<std::size_t>(first + all), OpRecord::kMostSamples);
  EXPECT_EQ(record.content().drawn, drawn);
}

TEST(OpRecord, TheStreamIsThatWithoutIt) {
  for (const std::string_view chain : {kChain, kStill, std::string_view("")})
    for (const std::set<SampleId>& bad : {std::set<SampleId>{}, {0, 7, 8, 40}}) {
      const What what = what_of(chain, bad);
      const std::vector<Seen> expected = stream(what, with_threads(2));
      for (const int threads : {1, 2, 7}) {
        EXPECT_EQ(stream(what, profiling(with_threads(threads))), expected);
        HowFast unfused = profiling(with_threads(threads));
        unfused.fuse = false;
        EXPECT_EQ(stream(what, unfused), expected);
        for (Cut cut = 0; cut <= what.pipeline.frontier(); ++cut)
          for (const std::size_t limit : {std::size_t{20'000}, std::size_t{4} << 20}) {
            HowFast cached = profiling(with_threads(threads));
            cached.cache = {memory_cache(limit), std::to_string(cut), "none"};
            EXPECT_EQ(stream(what, cached), expected) << chain << " cut " << cut;
          }
      }
    }
}

TEST(OpRecord, ReadyOrderAndSubstitutesHaveTheSameSamples) {
  What what = what_of(kChain, {3, 4, 40});
  what.order = Order::kReady;
  what.bad_samples.policy = OnError::kSubstitute;
  Loader plain(what, with_threads(3)), profiled(what, profiling(with_threads(3)));
  EXPECT_EQ(test::sorted_ids(test::epochs(plain, 2)), test::sorted_ids(test::epochs(profiled, 2)));
  EXPECT_THAT(profiled.profile().bad, SizeIs(3));
}

TEST(OpRecord, KnowsWhatEverySampleWeighs) {
  Loader loader(what_of(), profiling(with_threads(3)));
  test::epochs(loader, 2);
  const Profile profile = loader.profile();
  EXPECT_EQ(std::set(profile.ids.begin(), profile.ids.end()).size(), profile.ids.size());
  EXPECT_THAT(profile.ids, SizeIs(kSamples));
  ASSERT_THAT(profile.cuts, SizeIs(5));
  EXPECT_THAT(profile.cuts[0].bytes, Each(4 + 8));  // with the label
  EXPECT_THAT(profile.cuts[1].bytes, Each(40 * 30 * 3 + 8));
  for (const std::size_t k : {2, 3, 4})
    EXPECT_THAT(profile.cuts[k].bytes, Each(20 * 13 * 3 + 8)) << k;
  EXPECT_EQ(profile.relative_error, 0);  // all of them
  EXPECT_EQ(profile.threads, 3);
  EXPECT_FALSE(profile.reads_files);
  EXPECT_GT(profile.engine_s, 0);
}

TEST(OpRecord, TimesAreSumsOverOps) {
  Loader loader(what_of(), profiling(with_threads(2)));
  test::epochs(loader, 1);
  const Profile profile = loader.profile();
  for (std::size_t i = 0; i < profile.ids.size(); ++i) {
    double sum = 0;
    for (const CutProfile& cut : profile.cuts) {
      sum += cut.op_s[i];
      EXPECT_DOUBLE_EQ(cut.prefix_s[i], sum);
    }
    for (const CutProfile& cut : profile.cuts) {
      if (!cut.stable) continue;
      EXPECT_NEAR(cut.finish_s[i], sum - cut.prefix_s[i], 1e-15);
      EXPECT_EQ(cut.first_s[i], cut.finish_s[i]);
      EXPECT_EQ(cut.memory_s[i], cut.finish_s[i]);
    }
  }
  EXPECT_THAT(profile.cuts[0].op_s, Each(0));
  for (const CutProfile& cut : profile.cuts) {
    EXPECT_THAT(cut.variants, SizeIs(cut.stable ? 1 : 0));
    EXPECT_THAT(cut.finish_s, SizeIs(cut.stable ? profile.ids.size() : 0));
    if (!cut.stable) continue;
    EXPECT_TRUE(cut.variants[0].codec.is_none());
    EXPECT_EQ(cut.variants[0].bytes, cut.bytes);
  }
}

TEST(OpRecord, APlanCanBeMadeOfIt) {
  Loader loader(what_of(kChain, {7}), profiling(with_threads(2)));
  test::epochs(loader, 2);
  const Plan plan = make_plan(loader.profile(), {.epochs = 5});
  EXPECT_EQ(plan.samples, kSamples - 1);
  EXPECT_GE(plan.alternatives.size(), 3U);
}

TEST(OpRecord, BadSamplesAreNamedAndLeftOut) {
  Loader loader(what_of(kChain, {3, 30}), profiling(with_threads(2)));
  test::epochs(loader, 2);
  const Profile profile = loader.profile();
  std::vector<SampleId> bad;
  for (const Failure& failure : profile.bad) {
    bad.push_back(failure.sample);
    EXPECT_EQ(failure.path, "memory/" + std::to_string(failure.sample));
    EXPECT_EQ(failure.reason, "is broken");
  }
  EXPECT_THAT(bad, ElementsAre(3, 30));
  EXPECT_THAT(profile.ids, SizeIs(kSamples - 2));
  for (const std::int64_t id : profile.ids) EXPECT_TRUE(id != 3 && id != 30);
}

TEST(OpRecord, StatsCountSamplesAsWithoutIt) {
  const auto calls = [](const HowFast& how) {
    Loader loader(what_of(), how);
    test::epochs(loader, 1);
    loader.close();
    std::vector<std::pair<std::string, bool>> named;
    for (const NamedOpTime& op : loader.stats().ops)
      named.emplace_back(op.name, op.calls >= static_cast<std::uint64_t>(kSamples));
    return named;
  };
  EXPECT_EQ(calls(profiling(with_threads(2))), calls(with_threads(2)));
}

// As a whole, the image is larger than the limit; only the window of it is made as a rule.
TEST(OpRecord, WhereOpByOpTakesTooMuchMemorySamplesRunAsUsual) {
  const What what = what_of("pixels(1000, 600) | window(1, 1, 20, 13) | jitter");
  HowFast how = with_threads(3);
  how.memory_limit = std::size_t{1} << 20;
  const std::vector<Seen> expected = stream(what, how);
  EXPECT_EQ(stream(what, profiling(how)), expected);
  Loader loader(what, profiling(how));
  test::epochs(loader, 1);
  EXPECT_THAT([&] { loader.profile(); }, ThrowsMessage<Error>(HasSubstr("raise memory_limit")));
}

TEST(OpRecord, ManyThreadsShareLittleMemory) {
  const What what = what_of("pixels(300, 300) | window(1, 1, 200, 200) | jitter | opaque");
  HowFast how = with_threads(8);
  const std::vector<Seen> expected = stream(what, how);
  how.memory_limit = std::size_t{1} << 20;
  EXPECT_EQ(stream(what, profiling(how)), expected);
}

TEST(OpRecord, IsOffUnlessAskedFor) {
  Loader loader(what_of(), with_threads(1));
  test::epochs(loader, 1);
  EXPECT_THAT([&] { loader.profile(); },
              ThrowsMessage<Error>(HasSubstr("make it with profile=True")));
}

TEST(OpRecord, IsEmptyBeforeTheFirstBatch) {
  const Loader loader(what_of(), profiling(with_threads(1)));
  EXPECT_THAT([&] { loader.profile(); }, ThrowsMessage<Error>(HasSubstr("take batches first")));
}

TEST(OpRecord, PreparedDataAreRefused) {
  What what = what_of();
  what.source = hold_in_memory(what.source, what.pipeline, 1, {});
  EXPECT_THAT([&] { Loader(what, profiling(with_threads(1))); },
              ThrowsMessage<Error>(HasSubstr("samples come prepared from cut 'pixels' on")));
}

}  // namespace
}  // namespace cutwater
