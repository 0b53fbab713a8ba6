// SPDX-License-Identifier: Apache-2.0
// Jobs that meet at a Redis server, as if they were on two machines: each has a cache of its own.
#include "cache/redis_seat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cache/test_redis.h"

namespace cutwater::redis {
namespace {

constexpr std::uint64_t kData = 17, kForm = 42, kOtherForm = 43;

void put(Cache& cache, SampleId sample, std::uint64_t form = kForm, std::uint64_t draw = 0) {
  ASSERT_TRUE(cache.put({kData, form, sample, draw}, 8, 1, [](std::span<std::uint8_t> place) {
    std::ranges::fill(place, std::uint8_t{1});
  }));
}

class RedisSeatTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/bootstrap.sh test installs it";
    server_ = std::make_unique<TestServer>();
    here_ = redis_cache(server_->url());
    there_ = redis_cache(server_->url());
  }
  static std::unique_ptr<CacheSeat> sit(Cache& cache, const char* name,
                                        std::int64_t samples = 100) {
    return cache.seat({name, kData, samples, {kForm}});
  }
  // What has arrived by the time that all of `expected` have.
  static std::multiset<SampleId> arrived(CacheSeat& seat, const std::set<SampleId>& expected) {
    std::multiset<SampleId> all;
    EXPECT_TRUE(comes_true([&] {
      std::vector<SampleId> samples;
      seat.arrivals(samples);
      all.insert(samples.begin(), samples.end());
      return std::ranges::includes(all, expected);
    }));
    return all;
  }
  // What is named as an epoch begins.
  static std::set<SampleId> at_once(CacheSeat& seat, std::uint64_t draw) {
    (void)seat.begin_epoch(draw);
    std::vector<SampleId> there;
    seat.arrivals(there);
    return {there.begin(), there.end()};
  }

  std::unique_ptr<TestServer> server_;
  std::shared_ptr<Cache> here_, there_;
};

TEST_F(RedisSeatTest, WhatOneMachinePutsArrivesAtTheOther) {
  put(*here_, 3);
  const auto seat = sit(*there_, "job");
  (void)seat->begin_epoch(7);
  put(*here_, 5);
  put(*there_, 6);
  put(*here_, 8, kOtherForm);  // of no use to this job
  put(*here_, 9, kForm, 8);    // another draw's
  put(*here_, 10, kForm, 7);   // its own draw's
  put(*here_, 1000);           // not of the data set
  put(*here_, 11);
  EXPECT_EQ(arrived(*seat, {3, 5, 6, 10, 11}), (std::multiset<SampleId>{3, 5, 6, 10, 11}));
  put(*here_, 12);
  EXPECT_EQ(arrived(*seat, {12}), (std::multiset<SampleId>{12}));
  // In the next epoch all are named again, those of the new draw among them: at once, so that they
  // count as what was there when it began.
  (void)seat->begin_epoch(8);
  std::vector<SampleId> there;
  seat->arrivals(there);
  EXPECT_EQ(std::multiset<SampleId>(there.begin(), there.end()),
            (std::multiset<SampleId>{3, 5, 6, 9, 11, 12}));
  put(*here_, 13);
  EXPECT_EQ(arrived(*seat, {13}), (std::multiset<SampleId>{13}));
}

// What others have made at fresh cuts of draws that this job has yet to come to.
TEST_F(RedisSeatTest, FreshFormsAreRememberedForTheEpochsToCome) {
  constexpr SampleId kSamples = 8;
  const auto seat = sit(*there_, "job", kSamples);
  (void)seat->begin_epoch(1);
  constexpr std::uint64_t kDraws = 20;
  for (std::uint64_t draw = 2; draw < kDraws; ++draw) put(*here_, 5, kForm, draw);
  put(*here_, 6);
  EXPECT_EQ(arrived(*seat, {6}), (std::multiset<SampleId>{6}));
  EXPECT_EQ(at_once(*seat, kDraws - 1), (std::set<SampleId>{5, 6}));
  EXPECT_EQ(at_once(*seat, 2), (std::set<SampleId>{6})) << "the oldest are forgotten";
}

// Whoever makes a sample again has not found it: others that have yet to see it can take it now.
TEST_F(RedisSeatTest, WhatHadGoneAndIsMadeAgainArrivesAgain) {
  const auto seat = sit(*there_, "job");
  (void)seat->begin_epoch(7);
  for (const SampleId id : {3, 4}) put(*here_, id);
  EXPECT_EQ(arrived(*seat, {3, 4}), (std::multiset<SampleId>{3, 4}));
  seat->had(7, 4);
  for (const SampleId id : {3, 4}) {
    here_->drop({kData, kForm, id, 0});
    put(*here_, id);
  }
  put(*here_, 5);
  EXPECT_EQ(arrived(*seat, {3, 5}), (std::multiset<SampleId>{3, 5})) << "4 was had";
}

// The server evicts without a word; but it says how many keys it has.
TEST_F(RedisSeatTest, NoMoreIsNamedThanTheServerHoldsAndTheLatestIs) {
  constexpr SampleId kMany = 60, kGone = 50;
  const auto seat = sit(*there_, "job");
  std::set<SampleId> all;
  for (SampleId id = 0; id < kMany; ++id) {
    put(*here_, id);
    all.insert(id);
  }
  std::uint64_t draw = 1;
  (void)seat->begin_epoch(draw);
  EXPECT_EQ(arrived(*seat, all).size(), all.size());
  for (SampleId id = 0; id < kGone; ++id) here_->drop({kData, kForm, id, 0});
  put(*here_, 0);
  // Eleven, and the two lists of the board, which are keys, too.
  const std::set<SampleId> latest{0, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59};
  EXPECT_TRUE(comes_true([&] { return at_once(*seat, ++draw) == latest; }));
}

TEST_F(RedisSeatTest, NothingIsNamedThatAServerHadBeforeItWasEmptied) {
  const auto seat = sit(*there_, "job");
  (void)seat->begin_epoch(1);
  for (const SampleId id : {3, 4, 5}) put(*here_, id);
  EXPECT_EQ(arrived(*seat, {3, 4, 5}), (std::multiset<SampleId>{3, 4, 5}));
  server_->ask({"FLUSHALL"});
  server_->ask({"MSET", "one", "other's", "two", "other's", "three", "other's"});
  put(*here_, 6);
  EXPECT_EQ(arrived(*seat, {6}), (std::multiset<SampleId>{6}));
  EXPECT_EQ(at_once(*seat, 2), (std::set<SampleId>{6}));
}

TEST_F(RedisSeatTest, NothingIsNamedThatAServerHadBeforeItDied) {
  const auto seat = sit(*there_, "job");
  std::uint64_t draw = 1;
  (void)seat->begin_epoch(draw);
  put(*here_, 3);
  EXPECT_EQ(arrived(*seat, {3}), (std::multiset<SampleId>{3}));
  server_->kill();
  server_->start();
  EXPECT_TRUE(comes_true([&] { return at_once(*seat, ++draw).empty(); }));
}

TEST_F(RedisSeatTest, MoreThanOneReadCanBring) {
  constexpr SampleId kMany = 9000;
  for (SampleId id = 0; id < kMany; ++id) put(*here_, id);
  const auto seat = sit(*there_, "job", kMany);
  (void)seat->begin_epoch(1);
  std::set<SampleId> all;
  for (SampleId id = 0; id < kMany; ++id) all.insert(id);
  EXPECT_EQ(arrived(*seat, all).size(), all.size());
}

TEST_F(RedisSeatTest, JobsKnowEachOther) {
  const auto one = sit(*here_, "one", 2);
  EXPECT_EQ(one->others(), 0);
  auto two = sit(*there_, "two", 2);
  const std::uint64_t tide = two->begin_epoch(5);
  EXPECT_TRUE(comes_true([&] { return one->others() == 1; }));
  EXPECT_EQ(one->begin_epoch(5), tide);  // whoever begins at about the same time
  EXPECT_TRUE(comes_true([&] { return one->others_alike() == 1; }));
  EXPECT_NE(one->begin_epoch(6), tide);
  EXPECT_EQ(one->others_alike(), 0);
  EXPECT_TRUE(comes_true([&] { return two->others() == 1 && two->others_alike() == 0; }));
  // Who has had all is no longer in an epoch; who has gone is no longer there.
  two->had(5, 0);
  two->had(5, 0);
  two->had(4, 1);
  two->had(5, 99);
  EXPECT_EQ(one->others(), 1);
  two->had(5, 1);
  EXPECT_TRUE(comes_true([&] { return one->others() == 0; }));
  (void)two->begin_epoch(6);
  EXPECT_TRUE(comes_true([&] { return one->others_alike() == 1; }));
  two.reset();
  EXPECT_TRUE(comes_true([&] { return one->others() == 0; }));
  EXPECT_TRUE(comes_true([&] { return server_->ask({"HLEN", "cutwater:{11}:jobs"}).number == 1; }));
}

// A job that was killed leaves its note: its pulse no longer changes.
TEST_F(RedisSeatTest, ADeadJobIsForgotten) {
  const auto seat = sit(*here_, "one");
  server_->ask({"HSET", "cutwater:{11}:jobs", "dead#1", encode(JobNote{1, 5, 9, 0, true})});
  server_->ask({"HSET", "cutwater:{11}:jobs", "odd", "not a note"});
  EXPECT_TRUE(comes_true([&] { return seat->others() == 1; }));
  EXPECT_TRUE(comes_true([&] { return seat->others() == 0; }));
}

TEST(RedisNotes, AreReadAsWritten) {
  const auto note = decode_note(encode(JobNote{1, UINT64_MAX, 3, 4, true}));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->draw, UINT64_MAX);
  EXPECT_EQ(note->age_ms, 4u);
  EXPECT_TRUE(note->in_epoch);
  for (const char* const text : {"", "1", "1 2 3 4 ", "1 2 3 4 5", "a b c d e ", "1 2 3 -4 1 "})
    EXPECT_FALSE(decode_note(text)) << text;
  const auto arrival = decode_arrival(encode(Arrival{1, 2, 3}));
  ASSERT_TRUE(arrival);
  EXPECT_EQ(arrival->sample, 3);
  EXPECT_FALSE(decode_arrival("short"));
}

}  // namespace
}  // namespace cutwater::redis
