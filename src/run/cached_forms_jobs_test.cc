// SPDX-License-Identifier: Apache-2.0
// Several forms and several jobs in one cache: each its own stream, whatever the others keep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>
#include <mutex>

#include "run/cached_forms.h"
#include "run/executor.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::MemorySource;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr std::string_view kChain = "pixels(40, 30) | window(1, 1, 20, 13) | jitter | opaque";
constexpr std::int64_t kSamples = 41;
constexpr std::size_t kPlenty = std::size_t{8} << 20;

// How many others are there, as a test says.
struct Others {
  std::atomic<int> all{0}, alike{0};
};

class TestSeat final : public CacheSeat {
 public:
  explicit TestSeat(const Others& others) : others_(others) {}
  std::uint64_t begin_epoch(std::uint64_t) override { return 0; }
  void had(std::uint64_t, SampleId) override {}
  void leave_epoch() override {}
  void arrivals(std::vector<SampleId>&) override {}
  int others() const override { return others_.all; }
  int others_alike() const override { return others_.alike; }
  bool start_making(SampleId) override { return true; }
  void made(SampleId) override {}

 private:
  const Others& others_;
};

// A memory cache that tells what was asked of it.
class ToldCache final : public Cache {
 public:
  explicit ToldCache(std::size_t bytes = kPlenty, bool is_shared = false)
      : inner_(memory_cache(bytes)), shared_(is_shared) {}

  CacheValue get(const CacheKey& key) override { return inner_->get(key); }
  bool has(const CacheKey& key) override { return inner_->has(key); }
  bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const override {
    return inner_->has_room(key, bytes, seconds);
  }
  bool put(const CacheKey& key, std::size_t size, double seconds, const Fill& fill) override {
    const std::lock_guard lock(mutex_);
    puts.push_back({key, seconds});
    return inner_->put(key, size, seconds, fill);
  }
  void drop(const CacheKey& key) override { inner_->drop(key); }
  std::unique_ptr<CacheSeat> seat(const JobOffer& offer) override {
    offers.push_back(offer);
    return std::make_unique<TestSeat>(others);
  }
  bool shared() const override { return shared_; }
  std::string trouble() const override { return trouble_text; }
  CacheStats stats() const override {
    CacheStats stats = inner_->stats();
    if (limit != 0) stats.limit = limit;
    return stats;
  }

  struct Put {
    CacheKey key;
    double seconds;
  };
  std::vector<Put> puts;
  std::vector<JobOffer> offers;
  Others others;
  std::string trouble_text;
  std::size_t limit = 0;  // not 0: what it says that it has

 private:
  const std::shared_ptr<Cache> inner_;
  const bool shared_;
  std::mutex mutex_;
};

What what_of(std::string_view chain = kChain, std::int64_t samples = kSamples,
             std::uint64_t seed = 5) {
  What what = what_from(std::make_shared<MemorySource>(samples), 4, chain);
  what.shuffle = true;
  what.seed = seed;
  return what;
}

HowFast with(std::shared_ptr<Cache> cache, std::string split = "", std::string cut = "") {
  HowFast how = with_threads(2);
  how.cache.cache = std::move(cache);
  how.cache.split = std::move(split);
  how.cache.cut = std::move(cut);
  return how;
}

std::vector<Seen> stream(const What& what, const HowFast& how = with_threads(2), int epochs = 2) {
  Loader loader(what, how);
  return test::epochs(loader, epochs);
}

CacheReport run(const What& what, const HowFast& how, int epochs = 2) {
  Loader loader(what, how);
  EXPECT_EQ(test::epochs(loader, epochs), stream(what, with_threads(2), epochs));
  loader.close();
  return *loader.stats().cache;
}

CacheReport::Form form_of(const CacheReport& report, const std::string& name) {
  for (const CacheReport::Form& form : report.forms)
    if (form.cut == name) return form;
  return {};
}

TEST(CachedSplit, IsHonouredAndTheSameForEverybody) {
  constexpr std::int64_t kMany = 1000;
  const What what = what_of("pixels(8, 8) | window(1, 1, 4, 4) | jitter", kMany);
  const auto cache = std::make_shared<ToldCache>();
  const CacheReport first = run(what, with(cache, "source=0.3,pixels:lz4=0.2,window=0.4"));
  // Five standard deviations of what is drawn.
  EXPECT_NEAR(form_of(first, "source").entries, 300, 73);
  EXPECT_NEAR(form_of(first, "pixels:lz4").entries, 200, 64);
  EXPECT_NEAR(form_of(first, "window").entries, 400, 78);
  EXPECT_NEAR(first.entries, 900, 48);
  EXPECT_EQ(first.cut, "window, pixels, source");
  EXPECT_THAT(first.why, HasSubstr("30 % of the samples at 'source'"));

  const CacheReport second = run(what, with(cache, "source=0.3,pixels:lz4=0.2,window=0.4"));
  EXPECT_EQ(second.entries, first.entries);
  EXPECT_GE(second.hits, 2 * first.entries);
  std::map<SampleId, std::uint64_t> form_of_sample;
  for (const ToldCache::Put& put : cache->puts)
    EXPECT_EQ(form_of_sample.try_emplace(put.key.sample, put.key.form).first->second, put.key.form);
}

TEST(CachedSplit, WhatCannotBeIsRefused) {
  const What what = what_of();
  const auto refused = [&](const char* split, const char* why) {
    EXPECT_THAT([&] { stream(what, with(memory_cache(kPlenty), split)); },
                ThrowsMessage<Error>(HasSubstr(why)))
        << split;
  };
  refused("jitter=0.5", "past the frontier");
  refused("resize=0.5", "no cut 'resize'");
  refused("pixels:gzip=0.5", "codec 'gzip' is not known");
  refused("pixels=0.5,window=0.6", "are more than all samples");
  refused("=0.5", "no cut ''");
  for (const char* text :
       {"pixels", "pixels=", "pixels=x", "pixels=2", "pixels=-1", "pixels=1,", ","})
    refused(text, "cache split: each part must be CUT=SHARE");
  EXPECT_THAT([&] { stream(what, with(memory_cache(kPlenty), "pixels=1", "pixels")); },
              ThrowsMessage<Error>(HasSubstr("a cut or a split, not both")));
}

TEST(CachedForms, FindsWhatOthersKeptAtAnyStableCut) {
  const What what = what_of();
  for (const char* cut : {"source", "pixels", "window"}) {
    const auto cache = std::make_shared<ToldCache>();
    run(what, with(cache, "", cut));
    const CacheReport second = run(what, with(cache, "window=0"));
    EXPECT_EQ(second.misses, 0) << cut;
    EXPECT_EQ(form_of(second, cut).hits, second.hits);
    // Where somebody asks for a later one, it is kept besides.
    const CacheReport third = run(what, with(cache, "", "window"), 3);
    EXPECT_EQ(third.misses, 0) << cut;
    EXPECT_GE(form_of(third, "window").hits, 2 * kSamples);
  }
}

TEST(CachedForms, AJobOffersAllThatItCanUse) {
  const What what = what_of();
  const auto cache = std::make_shared<ToldCache>();
  HowFast how = with(cache, "", "pixels");
  how.cache.codec = "lz4";
  how.cache.job = "mine";
  run(what, how, 1);
  ASSERT_EQ(cache->offers.size(), 1u);
  const JobOffer& offer = cache->offers[0];
  EXPECT_EQ(offer.name, "mine");
  EXPECT_EQ(offer.samples, kSamples);
  for (const ToldCache::Put& put : cache->puts) EXPECT_EQ(put.key.data, offer.data);
  const Codec lz4 = codec_named("lz4");
  for (Cut cut = 0; cut <= what.pipeline.frontier(); ++cut)
    EXPECT_THAT(offer.forms, Contains(form_number(what.pipeline.fingerprint(cut), {})));
  for (const Cut cut : {what.pipeline.cut_named("pixels"), what.pipeline.last_cut()})
    EXPECT_THAT(offer.forms, Contains(form_number(what.pipeline.fingerprint(cut), lz4)));
  run(what, with(cache), 1);
  EXPECT_NE(cache->offers[1].name, "");
}

TEST(CachedForms, WhatAHitSavesIsMeasured) {
  const auto cache = std::make_shared<ToldCache>();
  run(what_of(), with(cache, "", "window"));
  EXPECT_FALSE(cache->puts.empty());
  for (const ToldCache::Put& put : cache->puts) {
    EXPECT_GT(put.seconds, 0);
    EXPECT_LT(put.seconds, 10);
  }
}

// Past the frontier a sample is of one seed and epoch: whoever has both may have it.
TEST(CachedForms, FreshFormsAreSharedByThoseWhoDrawAlike) {
  const What what = what_of();
  const std::string fresh = "opaque (fresh)";
  const auto cache = std::make_shared<ToldCache>();
  cache->others.alike = cache->others.all = 1;
  const CacheReport first = run(what, with(cache, "", "window"), 3);
  EXPECT_GE(form_of(first, fresh).entries, 3 * kSamples);
  EXPECT_EQ(form_of(first, fresh).hits, 0);  // nobody sees one twice
  EXPECT_GE(form_of(first, "window").hits, 2 * kSamples);

  const CacheReport second = run(what, with(cache, "", "window"), 3);
  EXPECT_EQ(second.misses, 0);
  EXPECT_GE(form_of(second, fresh).hits, 3 * kSamples);

  const What other_seed = what_of(kChain, kSamples, 6);
  const CacheReport third = run(other_seed, with(cache, "", "window"), 3);
  EXPECT_EQ(form_of(third, fresh).hits, 0);
  EXPECT_GE(form_of(third, "window").hits, 3 * kSamples);
  for (const ToldCache::Put& put : cache->puts)
    EXPECT_EQ(put.key.draw != 0,
              put.key.form == form_number(what.pipeline.fingerprint(what.pipeline.last_cut()), {}));
}

TEST(CachedForms, WithoutAnybodyAlikeNothingFreshIsKept) {
  const auto cache = std::make_shared<ToldCache>();
  cache->others.all = 3;
  run(what_of(), with(cache, "", "window"));
  for (const ToldCache::Put& put : cache->puts) EXPECT_EQ(put.key.draw, 0u);
}

// A data set whose files can be changed.
class ChangedSource final : public MemorySource {
 public:
  ChangedSource(std::int64_t size, std::string stamp)
      : MemorySource(size), stamp_(std::move(stamp)) {}
  std::string stamp() const override { return stamp_; }

 private:
  const std::string stamp_;
};

TEST(CachedForms, TwoVersionsOfTheFilesNeverMeet) {
  const auto version = [](const std::string& stamp) {
    What what = what_of();
    what.source = std::make_shared<ChangedSource>(kSamples, stamp);
    return what;
  };
  for (const bool is_shared : {true, false}) {
    const auto cache = std::make_shared<ToldCache>(kPlenty, is_shared);
    HowFast how = with(cache, "", "pixels");
    how.cache.outlives_loader = !is_shared;
    run(version("one"), how, 1);
    const CacheReport other = run(version("two"), how, 1), same = run(version("one"), how, 1);
    EXPECT_GE(other.misses, kSamples);
    EXPECT_EQ(same.misses, 0);
  }
}

TEST(CachedForms, TwoDataSetsNeverMeet) {
  const auto cache = std::make_shared<ToldCache>();
  run(what_of(kChain, 41), with(cache, "", "pixels"), 1);
  EXPECT_GE(run(what_of(kChain, 42), with(cache, "", "pixels"), 1).misses, 42);
}

TEST(CachedForms, TroubleIsSaidAndHowManyJobsThereAre) {
  const auto cache = std::make_shared<ToldCache>();
  Loader loader(what_of(), with(cache, "", "pixels"));
  cache->others.all = 2;
  EXPECT_EQ(loader.stats().cache->jobs, 3);
  EXPECT_THAT(loader.cache_trouble(), IsEmpty());
  cache->trouble_text = "the other end is gone";
  EXPECT_EQ(loader.cache_trouble(), "the other end is gone");
  EXPECT_EQ(loader.stats().cache->trouble, "the other end is gone");
  EXPECT_THAT(Loader(what_of(), with_threads(1)).cache_trouble(), IsEmpty());
}

// Takes its time to read, though less than the pixels take.
class DearSource final : public MemorySource {
 public:
  using MemorySource::MemorySource;
  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    for (volatile int i = 0; i < 60'000;) i = i + 1;
    return MemorySource::read(id, into);
  }
};

// What does not fit is missed by one job only, so a later cut pays in little room; but what is
// there must outlast the distance between the jobs.
TEST(CachedCut, IsALaterOneForManyJobs) {
  What what = what_of("pixels(200, 300) | jitter");
  what.source = std::make_shared<DearSource>(1'000'000, 10);
  what.order = Order::kReady;
  constexpr std::size_t kRoom = std::size_t{2} << 30;  // for all as stored, one in ninety as pixels
  // The first cut, samples tried, seconds to read; of each cut bytes, and seconds to make and
  // finish.
  const std::vector<double> numbers = {0, 16, 1e-4, 200, 1e-6, 2e-4, 180'000, 2.1e-4, 1e-5};
  const auto chosen = [&](int jobs) {
    return CutTrials::from_numbers(what, numbers)->choose(kRoom, jobs);
  };
  EXPECT_EQ(chosen(1).cut, 0);
  EXPECT_EQ(chosen(64).cut, 1);
  EXPECT_THAT(chosen(64).why, HasSubstr("samples for 64 jobs: it"));
  what.batch_size = 100'000;
  EXPECT_EQ(chosen(64).cut, 0);
  what.batch_size = 4;

  // A job comes, and goes. From here on it is measured.
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what takes how long is another matter here";
#endif
  const auto cache = std::make_shared<ToldCache>();
  cache->limit = kRoom;
  Loader loader(what, with(cache));
  EXPECT_EQ(loader.stats().cache->cut, "source");
  for (const auto& [others, cut] : {std::pair{63, "pixels"}, {0, "source"}, {63, "pixels"}}) {
    cache->others.all = others;
    loader.begin();
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(loader.next());
    EXPECT_EQ(loader.stats().cache->cut, cut);
  }

  // In the strict order nobody takes what others have just made.
  cache->others.all = 63;
  what.order = Order::kStrict;
  EXPECT_EQ(Loader(what, with(cache)).stats().cache->cut, "source");
  cache->others.alike = 63;
  EXPECT_EQ(Loader(what, with(cache)).stats().cache->cut, "pixels");
}

// Files are worth keeping where they come slowly, pixels where they do not.
TEST(CachedCut, IsChosenAgainWhenReadsTakeAnotherTime) {
  What what = what_of("pixels(200, 300) | jitter");
  what.source = std::make_shared<DearSource>(1'000'000, 10);
  const auto cache = std::make_shared<ToldCache>();
  cache->limit = std::size_t{90} << 30;  // for all as stored, half as pixels
  const std::vector<double> numbers = {0, 16, 1e-6, 200, 1e-6, 2e-4, 180'000, 2.1e-4, 1e-5};
  FormPlan plan;
  plan.trials = CutTrials::from_numbers(what, numbers);
  CacheUse use;
  use.cache = cache;
  CachedForms forms(what, use, plan);
  const auto cut = [&] {
    (void)forms.wants({0, 0}, 0, From::kSource);
    return forms.report({}, 0).cut;
  };
  EXPECT_EQ(cut(), "pixels");
  const auto reads = [&](int count, double seconds) {
    for (int i = 0; i < count; ++i) forms.learn_read(seconds);
  };
  reads(1000, 0.9e-4);
  EXPECT_EQ(cut(), "pixels") << "not by half as much again";
  reads(50, 1e-2);
  reads(1, 1e-6);
  reads(50, 1e-2);
  EXPECT_EQ(cut(), "pixels") << "for a moment";
  reads(50, 1e-2);
  EXPECT_EQ(cut(), "source");
  EXPECT_THAT(forms.report({}, 0).why, HasSubstr("of 10.200 ms per sample"));
  reads(100, 1e-6);
  EXPECT_EQ(cut(), "pixels");
}

struct TimedReads final : FormKeeper {
  std::optional<Kept> find(Turn, const ReadContext&, KeeperWork&) override { return {}; }
  std::optional<Cut> wants(Turn, Cut, From) override { return {}; }
  void keep(const Sample&, std::uint32_t, double, KeeperWork&) override {}
  void learn_read(double seconds) override { reads += seconds > 0 ? 1 : 0; }
  std::atomic<int> reads = 0;
};

TEST(CachedCut, TheEngineTellsWhatReadsTake) {
  TimedReads one, other;
  TwoKeepers both(one, other);
  ExecutorOptions options;
  options.threads = 2;
  options.memory_limit = kPlenty;
  options.keeper = &both;
  const What what = what_of();
  {
    Executor executor(what, options);
    executor.restart({});
    while (executor.next()) {
    }
  }
  EXPECT_GE(one.reads, kSamples);
  EXPECT_EQ(one.reads, other.reads);
}

// Who chooses by the same figures chooses the same.
TEST(CachedCut, JobsMeasureOnceForAll) {
  const auto source = test::faulty(kSamples, {});
  What what = what_of();
  what.source = source;
  const auto cache = std::make_shared<ToldCache>(kPlenty, true);
  const std::string first = Loader(what, with(cache)).stats().cache->why;
  const std::size_t reads = source->reads().size();
  EXPECT_GT(reads, 0u);
  EXPECT_EQ(Loader(what, with(cache)).stats().cache->why, first);
  EXPECT_EQ(source->reads().size(), reads);
  EXPECT_EQ(cache->stats().entries, 1);
  what.pipeline = Pipeline::parse("pixels(9, 9) | jitter", test::test_table());
  (void)Loader(what, with(cache));
  EXPECT_GT(source->reads().size(), reads);
}

TEST(CachedCut, FiguresThatCannotBeAreNotTaken) {
  const What what = what_of();
  const CutTrials trials("cache", what, {}, 1e12, true);
  const std::vector<double> good = trials.numbers();
  const std::optional<CutTrials> again = CutTrials::from_numbers(what, good);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->choose(kPlenty).why, trials.choose(kPlenty).why);
  EXPECT_FALSE(CutTrials::from_numbers(what, {}));
  EXPECT_FALSE(CutTrials::from_numbers(what, std::span(good).first(good.size() - 1)));
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const double wrong : {-1.0, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
      std::vector<double> bad = good;
      bad[i] = wrong;
      EXPECT_FALSE(CutTrials::from_numbers(what, bad));
    }
}

TEST(CacheFirst, IsTheFirstKeyThatHasAValue) {
  const auto cache = memory_cache(kPlenty);
  const auto fill = [](std::span<std::uint8_t> place) { place[0] = 7; };
  const std::vector<CacheKey> keys = {{1, 1, 1, 0}, {1, 2, 1, 0}, {1, 3, 1, 0}};
  EXPECT_FALSE(cache->get_first(keys).value);
  ASSERT_TRUE(cache->put(keys[2], 1, 1, fill));
  EXPECT_EQ(cache->get_first(keys).place, 2u);
  ASSERT_TRUE(cache->put(keys[1], 1, 1, fill));
  EXPECT_EQ(cache->get_first(keys).place, 1u);
  EXPECT_TRUE(cache->get_first(keys).value);
}

}  // namespace
}  // namespace cutwater
