// SPDX-License-Identifier: Apache-2.0
// A loader with a cache: the same stream as without, in less work and within the budget.
#include "run/cached_forms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/hold.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::FaultySource;
using test::MemorySource;
using test::Seen;
using test::test_table;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::string_view kChain = "pixels(40, 30) | window(1, 1, 20, 13) | jitter | opaque";
constexpr std::string_view kStill = "pixels(40, 30) | window(1, 1, 20, 13) | opaque";
constexpr std::int64_t kSamples = 41;
constexpr std::size_t kPlenty = std::size_t{4} << 20;

std::shared_ptr<FaultySource> source(std::set<SampleId> bad = {}) {
  return faulty(kSamples, std::move(bad));
}

What what_of(std::shared_ptr<const Source> from, std::string_view chain = kChain) {
  What what = what_from(std::move(from), 4, chain);
  what.shuffle = true;
  what.seed = 5;
  return what;
}

HowFast cached(std::size_t limit, std::string cut, std::string codec = "none", int threads = 2) {
  HowFast how = with_threads(threads);
  how.cache = {memory_cache(limit), std::move(cut), std::move(codec)};
  return how;
}

std::vector<Seen> stream(const What& what, const HowFast& how = with_threads(2), int epochs = 3) {
  Loader loader(what, how);
  return test::epochs(loader, epochs);
}

TEST(CachedForms, EveryCutCodecBudgetAndThreadCountGivesTheSameStream) {
  for (const std::string_view chain : {kChain, kStill}) {
    const What what = what_of(source(), chain);
    const std::vector<Seen> expected = stream(what);
    for (Cut cut = 0; cut <= what.pipeline.frontier(); ++cut)
      for (const char* codec : {"none", "lz4", "zstd:1", "delta-zstd:1", "shuffle-zstd:1"})
        for (const std::size_t limit : {std::size_t{100}, std::size_t{20'000}, kPlenty})
          for (const int threads : {1, 3})
            EXPECT_EQ(stream(what, cached(limit, std::to_string(cut), codec, threads)), expected)
                << chain << " cut " << cut << " " << codec << " " << limit;
    EXPECT_EQ(stream(what, cached(kPlenty, "")), expected);
  }
}

TEST(CachedForms, TheReadyOrderHasTheSameSamples) {
  What what = what_of(source());
  const auto samples = [](const std::vector<Seen>& batches) {
    std::multiset<std::pair<SampleId, std::vector<std::uint8_t>>> all;
    for (const Seen& batch : batches)
      for (std::size_t i = 0; i < batch.ids.size(); ++i) {
        const std::size_t size = batch.fields[0].size() / batch.ids.size();
        const auto* const begin = batch.fields[0].data() + i * size;
        all.insert({batch.ids[i], {begin, begin + size}});
      }
    return all;
  };
  const auto expected = samples(stream(what));
  what.order = Order::kReady;
  for (const std::size_t limit : {std::size_t{20'000}, kPlenty})
    EXPECT_EQ(samples(stream(what, cached(limit, "pixels", "none", 3))), expected);
}

// One thread: several may read a sample twice, at the end of an epoch and the beginning of the
// next.
TEST(CachedForms, WhatIsKeptIsNotReadAgain) {
  const auto from = source();
  Loader loader(what_of(from), cached(kPlenty, "window", "none", 1));
  test::epochs(loader, 4);
  loader.close();
  EXPECT_EQ(from->reads().size(), static_cast<std::size_t>(kSamples));
  const CacheReport cache = *loader.stats().cache;
  EXPECT_EQ(cache.misses, kSamples);
  EXPECT_GE(cache.hits, 3 * kSamples);
  EXPECT_EQ(cache.entries, kSamples);
  EXPECT_EQ(cache.cut, "window");
  ASSERT_EQ(cache.forms.size(), 1u);
  EXPECT_EQ(cache.forms[0].cut, "window");
  EXPECT_EQ(cache.forms[0].entries, kSamples);
  EXPECT_EQ(cache.forms[0].hits, cache.hits);
  EXPECT_GE(cache.forms[0].bytes, static_cast<std::size_t>(kSamples * 20 * 13 * 3));
}

TEST(CachedForms, APartThatFitsIsKeptAndTheRestRunsInOnePart) {
  const auto from = source();
  Loader loader(what_of(from), cached(20'000, "window"));
  test::epochs(loader, 4);
  loader.close();
  const LoaderStats stats = loader.stats();
  EXPECT_GT(stats.cache->entries, 5);
  EXPECT_LT(stats.cache->entries, kSamples);
  EXPECT_LE(stats.cache->bytes, 20'000u);
  EXPECT_LE(stats.cache->misses, static_cast<std::int64_t>(from->reads().size()));
  EXPECT_GE(stats.cache->hits + stats.cache->misses, 4 * kSamples);
}

TEST(CachedForms, TimesOfOpsAddUpWhateverWayASampleWent) {
  const What what = what_of(source());
  Loader loader(what, cached(20'000, "window"));
  test::epochs(loader, 3);
  loader.close();
  const LoaderStats stats = loader.stats();
  const std::int64_t made = stats.cache->hits + stats.cache->misses;
  ASSERT_EQ(stats.ops.size(), what.pipeline.steps().size());
  for (const NamedOpTime& op : stats.ops) {
    const auto calls = static_cast<std::int64_t>(op.calls);
    const auto all = op.name == "pixels" || op.name == "window" ? stats.cache->misses : made;
    EXPECT_LE(calls, all) << op.name;
    EXPECT_GE(calls, all - stats.threads) << op.name;  // close() may have cut some short
  }
}

TEST(CachedForms, BadSamplesAreAsBadAsWithout) {
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    What what = what_of(source({0, 3, 4, 5, 39, 40}));
    what.bad_samples.policy = policy;
    Loader plain(what, with_threads(2));
    const std::vector<Seen> expected = test::epochs(plain, 3);
    for (const std::size_t limit : {std::size_t{20'000}, kPlenty}) {
      Loader loader(what, cached(limit, "window"));
      EXPECT_EQ(test::epochs(loader, 3), expected);
      const LoaderStats a = plain.stats(), b = loader.stats();
      ASSERT_EQ(a.skipped.size(), b.skipped.size());
      ASSERT_EQ(a.substituted.size(), b.substituted.size());
      for (std::size_t i = 0; i < a.skipped.size(); ++i)
        EXPECT_EQ(a.skipped[i].message(), b.skipped[i].message());
    }
  }
  const What bad = what_of(source(), "pixels(4, 4) | refuses | jitter");
  const auto reason = [&](const HowFast& how) -> std::string {
    try {
      stream(bad, how);
    } catch (const Error& error) {
      return error.failure().op + ": " + error.failure().reason;
    }
    return "none";
  };
  EXPECT_EQ(reason(cached(kPlenty, "refuses", "none", 1)), reason(with_threads(1)));
}

TEST(CachedForms, AStateSavedWithoutGoesOnWith) {
  const What what = what_of(source());
  Loader plain(what, with_threads(2)), loader(what, cached(kPlenty, "pixels", "lz4"));
  test::epochs(loader, 1);
  plain.begin();
  for (int i = 0; i < 3; ++i) (void)plain.next();
  loader.restore(plain.state());
  const std::vector<Seen> expected = test::rest_of_epoch(plain);
  loader.begin();
  EXPECT_EQ(test::rest_of_epoch(loader), expected);
}

TEST(CachedForms, TwoPipelinesInOneCacheNeverMeet) {
  const auto from = source();
  const What one = what_of(from, "pixels(20, 20) | opaque"),
             two = what_of(from, "pixels(20, 21) | opaque");
  const std::vector<Seen> first = stream(one), second = stream(two);
  const HowFast how = cached(kPlenty, "pixels");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(stream(one, how), first);
    EXPECT_EQ(stream(two, how), second);
  }
  EXPECT_EQ(how.cache.cache->stats().entries, 2 * kSamples);
}

TEST(CachedForms, ASecondLoaderFindsWhatTheFirstHasKept) {
  const auto from = source();
  const HowFast how = cached(kPlenty, "window");
  const std::vector<Seen> first = stream(what_of(from), how, 1);
  const std::size_t reads = from->reads().size();
  EXPECT_EQ(stream(what_of(from), how, 1), first);
  EXPECT_EQ(from->reads().size(), reads);
}

TEST(CachedForms, LittleMemoryIsEnough) {
  const auto from = std::make_shared<MemorySource>(30, 200'000);
  const What what = what_of(from, "pixels(300, 200) | window(5, 5, 250, 150) | jitter");
  HowFast how = with_threads(4);
  how.memory_limit = std::size_t{1} << 20;
  const std::vector<Seen> expected = stream(what, how);
  for (const char* cut : {"source", "pixels", "window"})
    for (const char* codec : {"none", "lz4"})
      for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{16} << 20}) {
        how.cache = {memory_cache(limit), cut, codec};
        EXPECT_EQ(stream(what, how), expected);
      }
}

TEST(CachedForms, AHeldSourceIsKeptAtItsCutOrALaterOne) {
  const What what = what_of(source());
  const std::vector<Seen> expected = stream(what);
  What held = what;
  held.source = hold_in_memory(what.source, what.pipeline, 1);
  for (const char* cut : {"pixels", "window", ""})
    EXPECT_EQ(stream(held, cached(kPlenty, cut)), expected);
  EXPECT_THAT([&] { stream(held, cached(kPlenty, "source")); },
              ThrowsMessage<Error>(HasSubstr("stands at cut 1 ('pixels') already")));
}

TEST(CachedForms, FreshCutsUnknownCutsAndUnknownCodecsAreRefused) {
  const What what = what_of(source());
  EXPECT_THAT([&] { stream(what, cached(kPlenty, "jitter")); },
              ThrowsMessage<Error>(HasSubstr("past the frontier, cut 2 ('window')")));
  EXPECT_THAT([&] { stream(what, cached(kPlenty, "resize")); },
              ThrowsMessage<Error>(HasSubstr("no cut 'resize'")));
  EXPECT_THAT([&] { stream(what, cached(kPlenty, "window", "gzip")); },
              ThrowsMessage<Error>(HasSubstr("codec 'gzip' is not known")));
  EXPECT_THAT(
      [] { (void)cache_named("4000TiB"); },
      ThrowsMessage<Error>(testing::AllOf(HasSubstr("cache 4000.0 TiB is more than the"),
                                          HasSubstr("of memory that this process may use"))));
}

// A cache that spoils what is kept in it, or keeps nothing.
class BrokenCache final : public Cache {
 public:
  explicit BrokenCache(bool keeps) : keeps_(keeps) {}

  CacheValue get(const CacheKey& key) override {
    const CacheValue value = inner_->get(key);
    if (!value) return value;
    const auto spoiled = std::make_shared<Buffer>(value.bytes().size());
    std::ranges::copy(value.bytes(), spoiled->span().begin());
    std::ranges::fill(spoiled->span().subspan(256), std::uint8_t{0});  // the pixels
    return {spoiled->view(), spoiled};
  }
  bool has(const CacheKey&) override { return false; }
  bool has_room(const CacheKey&, std::size_t, double) const override { return true; }
  void drop(const CacheKey& key) override { inner_->drop(key); }
  std::unique_ptr<CacheSeat> seat(const JobOffer& offer) override { return inner_->seat(offer); }
  bool put(const CacheKey& key, std::size_t size, double seconds, const Fill& fill) override {
    if (!keeps_) throw Error(Code::kIo, "the machine that held it is gone");
    return inner_->put(key, size, seconds, fill);
  }
  bool shared() const override { return false; }
  bool can_be_searched() const override { return false; }
  CacheStats stats() const override { return inner_->stats(); }

 private:
  const bool keeps_;
  const std::shared_ptr<Cache> inner_ = memory_cache(kPlenty);
};

TEST(CachedForms, WhatIsDamagedIsMadeAgainAndSaid) {
  const What what = what_of(source());
  HowFast how = cached(kPlenty, "window", "zstd:1");
  how.cache.cache = std::make_shared<BrokenCache>(true);
  Loader loader(what, how);
  EXPECT_EQ(loader.cache_damage(), "");
  EXPECT_EQ(test::epochs(loader, 3), stream(what));
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.cache->hits, 0);
  EXPECT_GE(stats.cache->damaged, 2 * kSamples);
  EXPECT_EQ(stats.cache->trouble, "") << "it works, and is used";
  EXPECT_EQ(loader.cache_trouble(), "");
  EXPECT_THAT(loader.cache_damage(),
              testing::AllOf(HasSubstr("gave other bytes than were kept in it"),
                             HasSubstr(" times; those samples were made anew")));
  EXPECT_EQ(stats.bytes_read, static_cast<std::uint64_t>(4 * stats.reads));
}

TEST(CachedForms, ACacheThatCannotKeepEndsNothing) {
  const What what = what_of(source());
  HowFast how = cached(kPlenty, "window");
  how.cache.cache = std::make_shared<BrokenCache>(false);
  Loader loader(what, how);
  EXPECT_EQ(test::epochs(loader, 3), stream(what));
  const CacheReport cache = *loader.stats().cache;
  EXPECT_EQ(cache.entries, 0);
  EXPECT_GE(cache.refused, 3 * kSamples);
}

// Full of what is worth more than it says beforehand.
class FullCache final : public Cache {
 public:
  CacheValue get(const CacheKey&) override { return {}; }
  bool has(const CacheKey&) override { return false; }
  bool has_room(const CacheKey&, std::size_t, double seconds) const override { return seconds > 0; }
  void drop(const CacheKey&) override {}
  std::unique_ptr<CacheSeat> seat(const JobOffer&) override { return nullptr; }
  bool put(const CacheKey&, std::size_t, double, const Fill&) override { return false; }
  bool shared() const override { return false; }
  CacheStats stats() const override { return {}; }
};

TEST(CachedForms, WhatWasRefusedIsNotMadeForNothingAgain) {
  const What what = what_of(source());
  HowFast how = cached(kPlenty, "window");
  how.cache.cache = std::make_shared<FullCache>();
  Loader loader(what, how);
  EXPECT_EQ(test::epochs(loader, 3), stream(what));
  EXPECT_EQ(loader.stats().cache->refused, kSamples) << "in the first epoch, and never again";
}

// Takes its time to read.
class DearSource final : public MemorySource {
 public:
  using MemorySource::MemorySource;
  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    for (volatile int i = 0; i < 3'000'000;) i = i + 1;
    return MemorySource::read(id, into);
  }
};

// Whoever has no room for pixels keeps the stored bytes, which are fewer.
TEST(CachedCut, PrefersTheCutThatSavesMostWithinTheRoom) {
  constexpr std::string_view kLarge = "pixels(200, 300) | jitter";
  const What what = what_of(std::make_shared<MemorySource>(500, 10), kLarge);
  const CutChoice roomy = CutTrials("cache", what, {}, 1e12, true).choose(std::size_t{1} << 30);
  EXPECT_EQ(roomy.cut, 1) << roomy.why;
  EXPECT_THAT(roomy.why, HasSubstr("samples: it holds all samples"));
  const What dear = what_of(std::make_shared<DearSource>(500, 10), kLarge);
  const CutChoice tight = CutTrials("cache", dear, {}, 1e12, true).choose(std::size_t{1} << 20);
  EXPECT_EQ(tight.cut, 0) << tight.why;
  EXPECT_THAT(tight.why, HasSubstr("it holds all samples"));
}

TEST(CachedCut, BadSamplesDoNotCount) {
  std::set<SampleId> all;
  for (SampleId id = 0; id < kSamples; ++id) all.insert(id);
  EXPECT_THAT(CutTrials("cache", what_of(source(all)), {}, 5e9, true).choose(kPlenty).why,
              HasSubstr("no sample that was tried is good"));
  all.erase(all.begin(), std::next(all.begin(), 30));
  EXPECT_THAT(CutTrials("cache", what_of(source(all)), {}, 5e9, true).choose(kPlenty).why,
              HasSubstr("chosen on"));
}

// Equal jobs with equal seeds do not make the same samples at the same time.
TEST(CachedForms, EachJobBeginsElsewhereToLookForWhatIsLacking) {
  const What what = what_of(std::make_shared<MemorySource>(100'000));
  const auto pool = BufferPool::create(kPlenty);
  const Sample sample = what.source->read(0, {*pool}).value();
  std::set<SampleId> begin_at;
  for (const char* job : {"one", "two", "three", "four"}) {
    CacheUse use;
    use.cache = memory_cache(kPlenty);
    use.job = job;
    CachedForms forms(what, use, one_form({0, "given"}, Codec{}));
    EXPECT_FALSE(forms.lacks()) << "nobody knows how large samples are";
    KeeperWork work;
    forms.keep(sample, 0, 1, work);
    const std::optional<SampleId> id = forms.lacks();
    ASSERT_TRUE(id);
    begin_at.insert(*id);
  }
  EXPECT_GT(begin_at.size(), 1U);
}

}  // namespace
}  // namespace cutwater
