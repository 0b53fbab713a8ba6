// SPDX-License-Identifier: Apache-2.0
// What every back end of Cache that knows jobs promises them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "cache/cache_contract.h"

namespace cutwater {
namespace {

class CacheSeats : public CacheContract {
 protected:
  static constexpr std::uint64_t kData = 1, kForm = 1;
  static constexpr std::int64_t kSamples = 1000;
  static constexpr std::size_t kSize = 10'000;

  void SetUp() override {
    if (!keeps_books()) GTEST_SKIP() << "its server evicts by rules of its own";
    cache_ = make(kMiB);
    ASSERT_TRUE(cache_->seat(offer("first")));
  }
  static JobOffer offer(std::string name, std::uint64_t data = kData) {
    return {std::move(name), data, kSamples, {kForm, 5}};
  }
  std::unique_ptr<CacheSeat> seat(std::uint64_t data = kData) {
    auto seat = cache_->seat(offer("job", data));
    EXPECT_TRUE(seat);
    return seat;
  }
  bool put_one(SampleId sample, std::uint64_t draw = 0, double seconds = 1) {
    return put(*cache_, {kData, kForm, sample, draw}, bytes_of(sample, kSize), seconds);
  }
  bool has(SampleId sample, std::uint64_t draw = 0) {
    return static_cast<bool>(cache_->get({kData, kForm, sample, draw}));
  }
  // Samples from 0 on that are there now, until one is refused.
  SampleId fill(std::uint64_t draw = 0) {
    SampleId count = 0;
    while (put_one(count, draw)) ++count;
    return count;
  }
  static std::set<SampleId> arrivals(CacheSeat& seat) {
    std::vector<SampleId> samples;
    seat.arrivals(samples);
    return {samples.begin(), samples.end()};
  }
  std::shared_ptr<Cache> cache_;
};

TEST_P(CacheSeats, WhatJobsHaveYetToSeeStays) {
  const auto one = seat();
  one->begin_epoch(7);
  const SampleId count = fill();
  for (SampleId id = 0; id < count; id += 2) one->had(7, id);
  const SampleId more = count / 4;
  for (SampleId id = count; id < count + more; ++id) EXPECT_TRUE(put_one(id)) << id;
  for (SampleId id = 1; id < count; id += 2) EXPECT_TRUE(has(id)) << id;
  for (SampleId id = count; id < count + more; ++id) EXPECT_TRUE(has(id)) << id;
  EXPECT_EQ(cache_->stats().evicted, more);
}

// However little the others save, and though they were seen.
TEST_P(CacheSeats, WhatSavesNothingHasOnlyRoomThatIsFree) {
  const auto one = seat();
  one->begin_epoch(7);
  SampleId count = 0;
  while (put_one(count, 0, 1e-7)) ++count;
  for (SampleId id = 0; id < count; ++id) one->had(7, id);
  const CacheKey next{kData, kForm, count + 1, 0};
  EXPECT_FALSE(cache_->has_room(next, kSize, 0));
  cache_->drop({kData, kForm, count / 2, 0});
  EXPECT_TRUE(cache_->has_room(next, kSize, 0));
}

// Otherwise a job alone would drive out what it has had with what it is about to have.
TEST_P(CacheSeats, WhoMakesAValueDoesNotWantItAnyMore) {
  const auto one = seat();
  one->begin_epoch(7);
  const SampleId count = fill();
  for (SampleId id = 0; id < count; ++id) one->had(7, id);
  EXPECT_TRUE(one->start_making(count));
  EXPECT_FALSE(put_one(count));
  one->made(count);
  const auto two = seat();
  two->begin_epoch(8);
  for (SampleId id = 0; id < count; ++id) two->had(8, id);
  EXPECT_TRUE(one->start_making(count));
  EXPECT_TRUE(put_one(count)) << "the other job wants it";
}

TEST_P(CacheSeats, WhatSavesMoreDrivesOutWhatSavesLess) {
  const SampleId count = fill();
  EXPECT_FALSE(put_one(count, 0, 1.1));
  // Not all values need be looked at each time, but all in the end.
  for (SampleId id = count; id < 2 * count; ++id)
    EXPECT_TRUE(put_one(id, 0, 10) || put_one(id, 0, 10)) << id;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(put_one(2 * count, 0, 10));
  for (SampleId id = 0; id < count; ++id) EXPECT_FALSE(has(id));
}

TEST_P(CacheSeats, FreshValuesGoWhenAllThatDrawAlikeHaveHadThem) {
  const auto one = seat(), two = seat(), stranger = seat();
  one->begin_epoch(7);
  two->begin_epoch(7);
  stranger->begin_epoch(8);
  EXPECT_FALSE(put_one(0, 9)) << "nobody draws like that";
  const SampleId count = fill(7);
  EXPECT_GT(count, 50);
  for (SampleId id = 0; id < count; ++id) {
    one->had(7, id);
    two->had(7, id);
  }
  for (SampleId id = 0; id < count; ++id) EXPECT_TRUE(put_one(id)) << id;
  for (SampleId id = 0; id < count; ++id) EXPECT_FALSE(has(id, 7)) << id;
}

TEST_P(CacheSeats, FreshValuesOfAnEpochThatIsOverGo) {
  const auto one = seat();
  one->begin_epoch(7);
  const SampleId count = fill(7);
  one->begin_epoch(8);
  EXPECT_FALSE(put_one(count, 7));
  for (SampleId id = 0; id < count; ++id) EXPECT_TRUE(put_one(id, 8)) << id;
  for (SampleId id = 0; id < count; ++id) EXPECT_FALSE(has(id, 7)) << id;
}

TEST_P(CacheSeats, ArrivalsNameWhatIsOfUse) {
  const auto one = seat(), alike = seat(), stranger = seat();
  alike->begin_epoch(7);
  stranger->begin_epoch(8);
  EXPECT_TRUE(put_one(1));
  EXPECT_TRUE(put_one(2, 7));
  EXPECT_TRUE(put_one(3, 8));
  EXPECT_TRUE(put(*cache_, {kData, 5, 4, 0}, bytes_of(4, 10)));
  EXPECT_TRUE(put(*cache_, {kData, 6, 5, 0}, bytes_of(5, 10)));
  EXPECT_TRUE(put(*cache_, {kData + 1, kForm, 6, 0}, bytes_of(6, 10)));
  one->begin_epoch(7);
  EXPECT_EQ(arrivals(*one), (std::set<SampleId>{1, 2, 4}));
  EXPECT_EQ(arrivals(*one), std::set<SampleId>{});
  EXPECT_TRUE(put_one(10));
  EXPECT_TRUE(put_one(11, 8));
  EXPECT_EQ(arrivals(*one), (std::set<SampleId>{10}));
  EXPECT_EQ(arrivals(*stranger), (std::set<SampleId>{1, 3, 4, 10, 11}));
  for (int i = 0; i < 500; ++i) {  // more than any ring of such a cache remembers
    EXPECT_TRUE(put_one(20));
    cache_->drop({kData, kForm, 20, 0});
  }
  EXPECT_TRUE(put_one(21));
  EXPECT_EQ(arrivals(*one).count(21), 1u);
  one->begin_epoch(8);
  EXPECT_EQ(arrivals(*one), (std::set<SampleId>{1, 3, 4, 10, 11, 21}));
}

TEST_P(CacheSeats, OthersAreTheJobsInAnEpoch) {
  const auto one = seat(), elsewhere = seat(kData + 1);
  auto two = seat(), three = seat();
  EXPECT_EQ(one->others(), 0);
  for (CacheSeat* job : {one.get(), two.get(), elsewhere.get()}) job->begin_epoch(7);
  three->begin_epoch(8);
  EXPECT_EQ(one->others(), 2);
  EXPECT_EQ(one->others_alike(), 1);
  EXPECT_EQ(elsewhere->others(), 0);
  for (SampleId id = 0; id < kSamples; ++id) three->had(7, id);  // not its epoch
  for (SampleId id = -1; id <= kSamples; ++id) three->had(8, id / 2);
  EXPECT_EQ(one->others(), 2);
  for (SampleId id = 0; id < kSamples; ++id) three->had(8, id);
  EXPECT_EQ(one->others(), 1);
  three->begin_epoch(7);
  EXPECT_EQ(one->others_alike(), 2);
  two.reset();
  EXPECT_EQ(one->others(), 1);
  one->begin_epoch(0);
  three->begin_epoch(0);
  EXPECT_EQ(one->others(), 1);
  EXPECT_EQ(one->others_alike(), 0);
}

TEST_P(CacheSeats, OneMakesASampleAndOthersKnow) {
  const auto one = seat(), elsewhere = seat(kData + 1);
  auto two = seat();
  EXPECT_TRUE(one->start_making(3));
  EXPECT_TRUE(one->start_making(3)) << "it is this job that is at it";
  EXPECT_FALSE(two->start_making(3));
  EXPECT_TRUE(two->start_making(4));
  EXPECT_TRUE(elsewhere->start_making(3));
  two->made(3);
  EXPECT_FALSE(two->start_making(3)) << "only who makes it can say that it is made";
  one->made(3);
  EXPECT_TRUE(two->start_making(3));
  EXPECT_FALSE(one->start_making(3));
  two.reset();
  EXPECT_TRUE(one->start_making(3));
  EXPECT_TRUE(one->start_making(4));
}

TEST_P(CacheSeats, WhoBeginsAtAboutTheSameTimeGetsTheSameNumber) {
  const auto one = seat(), two = seat(), three = seat();
  const std::uint64_t first = one->begin_epoch(1);
  EXPECT_EQ(two->begin_epoch(2), first);
  for (SampleId id = 0; id < 100; ++id) one->had(1, id);
  EXPECT_EQ(three->begin_epoch(3), first);
  for (SampleId id = 0; id < kSamples; ++id) {
    one->had(1, id);
    two->had(2, id);
  }
  const std::uint64_t second = one->begin_epoch(4);
  EXPECT_NE(second, first);
  EXPECT_EQ(two->begin_epoch(5), second);
  EXPECT_EQ(three->begin_epoch(6), second);
}

TEST_P(CacheSeats, AJobThatLeavesLeavesNothing) {
  const CacheStats before = cache_->stats();
  {
    const auto one = seat();
    one->begin_epoch(7);
    EXPECT_TRUE(put_one(1, 7));
  }
  EXPECT_FALSE(has(1, 7));
  EXPECT_EQ(cache_->stats().bytes, before.bytes);
  EXPECT_EQ(cache_->stats().entries, 0);
}

// Three jobs of two threads each go through their epochs at once, in a cache for a tenth of them.
TEST_P(CacheSeats, JobsInManyThreads) {
  std::atomic<int> wrong{0}, hits{0};
  const auto work = [&](CacheSeat& job, std::uint64_t number, SampleId half) {
    for (std::uint64_t draw = 1; draw <= 3; ++draw) {
      if (half == 0) job.begin_epoch(draw);
      for (SampleId i = 0; i < kSamples / 2; ++i) {
        const SampleId id =
            (i * 7 + static_cast<SampleId>(number) * 300) % (kSamples / 2) * 2 + half;
        const CacheKey key{kData, kForm, id, id % 3 == 0 ? draw : 0};
        if (const CacheValue value = cache_->get(key)) {
          ++hits;
          if (!std::ranges::equal(value.bytes(), bytes_of(id, kSize))) ++wrong;
        } else if (job.start_making(id)) {
          if (cache_->has_room(key, kSize, 1)) put(*cache_, key, bytes_of(id, kSize));
          job.made(id);
        }
        job.had(draw, id);
        if (i % 50 != 0) continue;
        for (const SampleId arrived : arrivals(job))
          if (arrived < 0 || arrived >= kSamples) ++wrong;
        if (job.others() > 2 || job.others_alike() > 2) ++wrong;
      }
    }
  };
  std::vector<std::unique_ptr<CacheSeat>> jobs;
  for (int i = 0; i < 3; ++i) jobs.push_back(seat());
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < jobs.size(); ++number)
    for (const SampleId half : {0, 1})
      threads.emplace_back([&, number, half] { work(*jobs[number], number, half); });
  for (std::thread& thread : threads) thread.join();
  jobs.clear();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
  const CacheStats stats = cache_->stats();
  EXPECT_GT(stats.evicted, 0);
  EXPECT_LE(stats.bytes, stats.limit);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, CacheSeats, testing::ValuesIn(kBackEnds),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace cutwater
