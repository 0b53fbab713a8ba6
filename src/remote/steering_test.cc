// SPDX-License-Identifier: Apache-2.0
#include "remote/steering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace cutwater::remote {
namespace {

using ::testing::HasSubstr;

constexpr double kStored = 1e5, kExcerpt = 4e4, kCost = 1e-3;
constexpr double kLonger = 1.0501;  // what a sample may take longer for fewer bytes
constexpr double kOfServer = 0.95;  // that is asked for at most

// As stored, or an excerpt that takes a millisecond of the server.
Steering steering(std::optional<double> link = std::nullopt, Cut from = 0) {
  Ways ways;
  ways.variants = {{from, "source", {}, false}, {from, "source", {}, true}};
  ways.priced = true;
  Steering made(ways, {link, 1});
  made.set_storage_threads(1);
  return made;
}

// Samples that come at this pace, having waited so long for the wire.
void learn(Steering& steering, int samples, double pace_s, double queued_s,
           double send_s_per_byte = 0) {
  wire::pb::Reply reply;
  reply.set_send_s_per_byte(static_cast<float>(send_s_per_byte));
  for (const double bytes : {kStored, kExcerpt}) reply.add_way_bytes(static_cast<float>(bytes));
  for (const double seconds : {0.0, kCost}) reply.add_way_s(static_cast<float>(seconds));
  for (int i = 0; i < samples; ++i) {
    steering.learn_link(queued_s, static_cast<std::size_t>(kStored), pace_s);
    steering.learn(reply);
  }
}

// A consumer that takes so long for each of a hundred samples and never waits.
Fetcher::Progress consumer(double sample_s) { return {100 * sample_s, 0, 100}; }

WayWork work(double bytes, double seconds) {
  WayWork made;
  for (int i = 0; i < 10; ++i) made.add(bytes, seconds);
  return made;
}

TEST(Steering, AsksForNothingWhileNothingIsKnown) {
  Steering steers = steering();
  EXPECT_TRUE(std::isinf(steers.price()));
  EXPECT_EQ(steers.pace_s(), 0);
  EXPECT_FALSE(steers.times());
  learn(steers, 100, 1e-3, 0);
  EXPECT_TRUE(std::isinf(steers.price())) << "whatever work takes, it may be what bounds the job";
}

TEST(Steering, SavesWhatTheServerHasTimeForThoughTheLinkIsNeverBusy) {
  Steering steers = steering();
  steers.note(consumer(5 * kCost));
  learn(steers, 100, 5 * kCost, 0);
  EXPECT_EQ(steers.price(), 0) << "the server is idle four fifths of the time";
  EXPECT_DOUBLE_EQ(steers.pace_s(), 5 * kCost);
  EXPECT_THAT(steers.decision(), HasSubstr("bound by consumer"));
  EXPECT_THAT(steers.decision(), HasSubstr("never busy"));
}

TEST(Steering, HardlyEverMakesTheServerWhatBounds) {
  Steering steers = steering();
  steers.note(consumer(kCost / 4));
  learn(steers, 200, kCost / 4, 0);
  EXPECT_GE(steers.price(), (kStored - kExcerpt) / kCost * 0.999) << "some at most, not all";
  EXPECT_GE(steers.pace_s(), kCost / 4);
  EXPECT_LE(steers.pace_s(), kCost / 4 * kLonger);
}

// A server's thread that sends has less time for ops: an excerpt that spares it more than it takes
// is wanted however busy it is.
TEST(Steering, CountsWhatSendingTakesOfTheServer) {
  const auto steered = [](double saved_s) {
    Steering steers = steering();
    steers.note(consumer(kCost / 4));
    learn(steers, 200, kCost / 4, 0, saved_s / (kStored - kExcerpt));
    return steers;
  };
  const double all_of_it = (kStored - kExcerpt) / kCost;
  EXPECT_LT(steered(1.2 * kCost).price(), all_of_it);
  EXPECT_GE(steered(0.5 * kCost).price(), 0.999 * all_of_it);
  EXPECT_NEAR(steered(0.5 * kCost).times()->before.storage_s,
              0.5 * kCost * kStored / (kStored - kExcerpt) / kOfServer, 1e-6);
  EXPECT_EQ(steered(0).times()->before.storage_s, 0);
}

// Also where the server has no time for anything else: one tensor of so few samples is too much.
TEST(Steering, WantsWhatSparesABusyServerTime) {
  constexpr double kSendSeconds = 1e-9;
  constexpr std::array<OffloadOption, 3> kOptions = {
      {{3e6, 0, 0}, {1e6, 1.5e-3, 0}, {6e5, 40e-3, 0}}};
  Ways ways;
  ways.variants = {{0, "source", {}, false}, {0, "source", {}, true}, {1, "crop", {}, false}};
  ways.priced = true;
  Steering steers(ways, {std::nullopt, 1});
  steers.set_storage_threads(1);
  steers.note(consumer(kCost));
  wire::pb::Reply reply;
  for (const OffloadOption& option : kOptions) {
    reply.add_way_bytes(static_cast<float>(option.bytes));
    reply.add_way_s(static_cast<float>(option.storage_s));
  }
  reply.set_send_s_per_byte(static_cast<float>(kSendSeconds));
  for (int i = 0; i < 190; ++i) steers.learn(reply);
  const auto gain = [&](std::size_t way) {
    return kOptions[0].bytes - kOptions[way].bytes - steers.price() * kOptions[way].storage_s;
  };
  EXPECT_GT(gain(1), 0);
  EXPECT_LT(gain(2), 0);
}

TEST(Steering, MeasuresALinkWhileAnswersWaitForIt) {
  Steering steers = steering();
  steers.note(consumer(kCost / 4));
  learn(steers, 200, 10e-3, 5e-3);  // 10 MB/s
  EXPECT_EQ(steers.price(), 0);
  EXPECT_NEAR(steers.pace_s(), 4e-3, 1e-4) << "of excerpts";
  EXPECT_THAT(steers.decision(),
              HasSubstr("bound by network as stored; a sample then takes 10.00 ms"));
  const FetchReport::Decided times = steers.times().value();
  EXPECT_NEAR(times.before.network_s, 10e-3, 1e-6);
  EXPECT_EQ(times.before.storage_s, 0);
  EXPECT_NEAR(times.after.network_s, 4e-3, 1e-6);
  EXPECT_NEAR(times.after.storage_s, kCost / kOfServer, 1e-6);
  for (const FetchReport::Times& one : {times.before, times.after})
    EXPECT_NEAR(one.consumer_s, kCost / 4, 1e-9);
}

// A server that was to save bytes for a slow link would bound the job for ever on a fast one.
TEST(Steering, NoticesThatALinkHasBecomeFaster) {
  Steering steers = steering();
  steers.note(consumer(kCost / 4));
  learn(steers, 400, 10e-3, 5e-3);  // 10 MB/s
  EXPECT_EQ(steers.price(), 0);
  learn(steers, 192, 1e-3, 0);
  EXPECT_EQ(steers.price(), 0) << "one quiet spell proves little";
  learn(steers, 40 * 192, 1e-3, 0);
  EXPECT_GT(steers.price(), 0) << "not everything is worth the server's time any more";
  EXPECT_LE(steers.pace_s(), kCost / 4 * kLonger);
  learn(steers, 400, 10e-3, 5e-3);
  EXPECT_EQ(steers.price(), 0) << "it is slow again";
  EXPECT_NEAR(steers.pace_s(), 4e-3, 1e-4);
}

// The consumer takes longer than excerpts on the link: that none waits there says nothing of it.
TEST(Steering, RemembersALinkThatHasLittleToDo) {
  Steering steers = steering();
  steers.note(consumer(5e-3));
  learn(steers, 400, 10e-3, 5e-3);  // 10 MB/s
  EXPECT_EQ(steers.price(), 0);
  EXPECT_DOUBLE_EQ(steers.pace_s(), 5e-3);
  const std::string decided = steers.decision();
  EXPECT_THAT(decided, HasSubstr("a sample then takes 10.00 ms of the link"));
  learn(steers, 40 * 192, 5e-3, 0);
  EXPECT_EQ(steers.decision(), decided);
}

// What waits while the trainer's threads never rest may wait for the trainer: it tells the least
// that the link can do. Once they rest, it is the link.
TEST(Steering, BelievesABusyTrainerNoSlowLink) {
  const auto link_ms = [](double busy_share) {
    Steering steers = steering();
    Fetcher::Progress progress;
    const auto go_on = [&](double pace_s) {
      for (int i = 0; i < 600; ++i) {
        progress.seconds += pace_s;
        progress.consumer_waited = progress.seconds;
        progress.samples += 1;
        progress.busy += busy_share * pace_s;
        steers.note(progress);
        learn(steers, 1, pace_s, 5e-3);
      }
    };
    go_on(4e-3);  // 25 MB/s
    go_on(40e-3);
    return 1e3 * steers.times()->before.network_s;
  };
  EXPECT_LE(link_ms(0.99), 4.1);
  EXPECT_GE(link_ms(0.99), 0.4) << "it has become faster, as far as anybody knows, but not at once";
  EXPECT_NEAR(link_ms(0.5), 40, 1);
}

TEST(Steering, TakesALinkThatWasNamedForWhatBounds) {
  Steering steers = steering(1e7);
  EXPECT_EQ(steers.price(), 0);
  learn(steers, 100, 1e-4, 0);
  EXPECT_EQ(steers.price(), 0);
  EXPECT_NEAR(steers.pace_s(), 4e-3, 1e-4);
}

TEST(Steering, IsTheSameForWhatIsStoredAtALaterCut) {
  Steering steers = steering(1e7, 2);
  learn(steers, 100, 1e-4, 0);
  EXPECT_EQ(steers.price(), 0);
  EXPECT_NEAR(steers.pace_s(), 4e-3, 1e-4);
}

TEST(Steering, IsNotMisledByWhatCameByAnotherPath) {
  WayWork made = work(kStored, 5e-3);
  for (int i = 0; i < 1000; ++i) made.add(0, 5e-3);
  EXPECT_DOUBLE_EQ(made.seconds / made.bytes, 5e-3 / kStored);
}

TEST(Steering, IsNotMisledByATrainerThatHasToShareItsCores) {
  Steering steers = steering();
  steers.note(consumer(kCost / 4));
  learn(steers, 24, kCost / 4, 0);
  const Fetcher::Progress first = consumer(kCost / 4), slow = consumer(10 * kCost);
  steers.note({first.seconds + slow.seconds, 0, first.samples + slow.samples});
  learn(steers, 200, 10 * kCost, 0);
  EXPECT_GT(steers.price(), 0);
  EXPECT_LE(steers.pace_s(), kCost / 4 * kLonger);
}

// The consumer waits all the time; a sample as stored takes the trainer 5 ms, an excerpt as much.
TEST(Steering, ATrainerThatIsBusyItselfIsNotHurried) {
  Steering steers = steering();
  steers.note({1, 1, 100}, {work(kExcerpt, 5e-3), work(kExcerpt, 5e-3)});
  learn(steers, 100, 5e-3, 0);
  EXPECT_EQ(steers.price(), 0);
  EXPECT_NEAR(steers.pace_s(), 5e-3, 1e-5);
  EXPECT_THAT(steers.decision(), HasSubstr("bound by cpu"));
}

// A server that leaves work undone is asked for less, and for more when it no longer does.
TEST(Steering, AsksForWhatTheServerGetsDone) {
  Steering steers = steering(1e9);
  steers.note({1, 1, 100}, {work(kExcerpt, 5e-3), work(kExcerpt, 2e-3)});
  const auto learn_all = [&](bool ran_less, int samples) {
    wire::pb::Reply reply;
    for (const double bytes : {kStored, kExcerpt}) reply.add_way_bytes(static_cast<float>(bytes));
    for (const double seconds : {0.0, 3 * kCost}) reply.add_way_s(static_cast<float>(seconds));
    reply.set_ran_less(ran_less);
    for (int i = 0; i < samples; ++i) steers.learn(reply);
    return steers.pace_s();
  };
  const double idle_s = learn_all(false, 400), busy_s = learn_all(true, 2000);
  const double again_s = learn_all(false, 8000);
  EXPECT_GT(busy_s, 1.3 * idle_s) << "the trainer does more itself";
  EXPECT_NEAR(again_s, idle_s, 0.01 * idle_s);
}

// Server and trainer are to be busy alike; the trainer is half of the time, and so waits for the
// server, which has less time than its threads promise. Until it no longer does.
TEST(Steering, AServerThatIsWaitedForIsAskedForLess) {
  Steering steers = steering(1e9);
  wire::pb::Reply reply;
  for (const double bytes : {kStored, kExcerpt}) reply.add_way_bytes(static_cast<float>(bytes));
  for (const double seconds : {0.0, 3 * kCost}) reply.add_way_s(static_cast<float>(seconds));
  Fetcher::Progress progress;
  const auto pace_after = [&](int decisions, double busy) {
    for (int i = 0; i < decisions; ++i) {
      progress.seconds += 1;
      progress.consumer_waited += 1;
      progress.samples += 192;
      progress.busy += busy;
      steers.note(progress, {work(kExcerpt, 5e-3), work(kExcerpt, 2e-3)});
      for (int k = 0; k < 192; ++k) steers.learn(reply);
    }
    return steers.pace_s();
  };
  const double first_s = pace_after(4, 1);
  EXPECT_NEAR(first_s, 2.70e-3, 0.15e-3) << "5 ms - 3 ms f here, 3 ms f / 0.95 there";
  EXPECT_GT(pace_after(10, 0.5), 1.3 * first_s) << "the trainer does more itself";
  EXPECT_NEAR(pace_after(40, 1), first_s, 0.01 * first_s);
}

// Of a file as stored, the trainer decodes what it needs: an excerpt spares it no work, only bytes.
TEST(Steering, WhatIsNeededOfAFileIsItsWork) {
  Steering steers = steering(1e9);
  wire::pb::Reply reply;
  for (const double bytes : {kStored, kExcerpt}) reply.add_way_bytes(static_cast<float>(bytes));
  EXPECT_NEAR(steers.work_bytes(reply, 100'000), kExcerpt, 1);
  reply.set_way(1);
  EXPECT_NEAR(steers.work_bytes(reply, 40'000), kExcerpt, 1);
  reply.set_way(0);
  reply.set_way_bytes(1, INFINITY);
  EXPECT_NEAR(steers.work_bytes(reply, 100'000), kStored, 1) << "there is no excerpt of it";
  EXPECT_NEAR(steers.work_bytes({}, 100'000), kStored, 1);
}

// As stored; an excerpt; a tensor that is larger than what is stored, and nearly done.
class BusyTrainer : public testing::Test {
 protected:
  static constexpr double kTensor = 1.5e5, kTensorCost = 2e-3;

  static Steering steering(double storage_threads) {
    Ways ways;
    ways.variants = {{}, {0, "source", {}, true}, {2, "crop", {}, false}};
    ways.priced = true;
    Steering made(ways, {1e9, 1});
    made.set_storage_threads(storage_threads);
    return made;
  }
  static void learn(Steering& steers, const std::vector<WayWork>& done) {
    steers.note({1, 1, 100}, done);
    wire::pb::Reply reply;
    for (const double bytes : {kStored, kExcerpt, kTensor})
      reply.add_way_bytes(static_cast<float>(bytes));
    for (const double seconds : {0.0, kCost, kTensorCost})
      reply.add_way_s(static_cast<float>(seconds));
    for (int i = 0; i < 100; ++i) steers.learn(reply);
  }
  // The way of a sample, as a server chooses it.
  static std::size_t chosen(const Steering& steers) {
    const std::array bytes{kStored, kExcerpt, kTensor}, seconds{0.0, kCost, kTensorCost};
    std::size_t best = 0;
    double least = INFINITY;
    for (std::size_t way = 0; way < bytes.size(); ++way) {
      const double worth = steers.worth().empty() ? 1 : steers.worth()[way];
      double weighs = worth * bytes[way];
      weighs += way == 0 ? steers.needed_worth() * kExcerpt : steers.price() * seconds[way];
      if (weighs < least) {
        least = weighs;
        best = way;
      }
    }
    return best;
  }
};

TEST_F(BusyTrainer, IsRelievedByWhatIsLargerButNearlyDone) {
  Steering steers = steering(4);
  learn(steers, {work(kExcerpt, 4e-3), work(kExcerpt, 3e-3), work(kTensor, 0.2e-3)});
  EXPECT_EQ(chosen(steers), 2U);
  EXPECT_LT(steers.pace_s(), 1.2 * kTensorCost / 4) << "the server bounds then, nearly always busy";
}

// Work on excerpts alone would be done in 1 ms; but the clock says 3.
TEST_F(BusyTrainer, WhatItTakesBesidesTheWorkCounts) {
  const auto pace = [](double busy_s) {
    Steering steers = steering(1);
    Made made;
    for (int i = 1; i <= 4; ++i) {
      made.samples += 100;
      made.bytes += 100 * kExcerpt;
      made.seconds += 100 * 1e-3;
      const double elapsed = 0.3 * i;
      steers.note({elapsed, elapsed, 100 * i, 100 * i * busy_s},
                  {work(kExcerpt, 1e-3), work(kExcerpt, 1e-3), work(kTensor, 0.2e-3)}, made);
      wire::pb::Reply reply;
      for (const double bytes : {kStored, kExcerpt, kTensor})
        reply.add_way_bytes(static_cast<float>(bytes));
      for (const double seconds : {0.0, kCost, kTensorCost})
        reply.add_way_s(static_cast<float>(seconds));
      for (int k = 0; k < 100; ++k) steers.learn(reply);
    }
    return steers.pace_s();
  };
  EXPECT_LT(pace(1e-3), 1.06e-3);
  EXPECT_GE(pace(3e-3), 2.19e-3) << "its threads never wait";
  EXPECT_LE(pace(30e-3), 3.2e-3) << "they cannot be busier than the clock";
}

// The few tensors that came without a codec took long, by chance; thousands with one did not.
TEST_F(BusyTrainer, IsNotMisledByTheFewThatCameWithoutACodec) {
  Ways ways;
  ways.variants = {{}, {2, "crop", {}, false}, {2, "crop", codec_named("lz4"), false}};
  ways.priced = true;
  Steering steers(ways, {1e9, 1});
  steers.set_storage_threads(4);
  steers.note({1, 1, 100}, {work(kExcerpt, 4e-3), work(kTensor, 5e-3), work(kExcerpt, 0.5e-3)});
  wire::pb::Reply reply;
  for (const double bytes : {kStored, kTensor, kExcerpt})
    reply.add_way_bytes(static_cast<float>(bytes));
  for (const double seconds : {0.0, 1e-3, 30e-3}) reply.add_way_s(static_cast<float>(seconds));
  for (int i = 0; i < 100; ++i) steers.learn(reply);
  EXPECT_LT(steers.pace_s(), 0.6e-3);
}

TEST_F(BusyTrainer, TriesWhatMightHelp) {
  Steering steers = steering(4);
  learn(steers, {work(kExcerpt, 4e-3), work(kExcerpt, 3e-3), WayWork{}});
  EXPECT_EQ(chosen(steers), 2U);
}

TEST_F(BusyTrainer, TakesExcerptsWhereTensorsDoNotHelp) {
  Steering steers = steering(4);
  learn(steers, {work(kExcerpt, 4e-3), work(kExcerpt, 1e-3), work(kTensor, 4e-3)});
  EXPECT_EQ(chosen(steers), 1U);
  EXPECT_NEAR(steers.pace_s(), 1e-3, 1e-5);
}

TEST_F(BusyTrainer, GetsNoMoreThanTheServerHasTimeFor) {
  Steering steers = steering(0.1);
  learn(steers, {work(kExcerpt, 4e-3), work(kExcerpt, 3e-3), work(kTensor, 0.2e-3)});
  EXPECT_GT(steers.pace_s(), 3e-3);
  EXPECT_GT(steers.price(), 0);
}

}  // namespace
}  // namespace cutwater::remote
