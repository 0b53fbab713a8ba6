// SPDX-License-Identifier: Apache-2.0
// Samples for the cache in spare time: when there is some, what is made then, and what is left
// alone.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "run/executor.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::FaultySource;

// Lacks what a test says. Whoever asks waits until it does, so that a test knows where it is.
class Lacking final : public FormKeeper {
 public:
  std::optional<Kept> find(Turn, const ReadContext&, KeeperWork&) override {
    std::unique_lock lock(mutex_);
    ++looking_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !stalled_; });
    --looking_;
    return std::nullopt;
  }
  std::optional<Cut> wants(Turn, Cut from, From) override {
    return from == 0 ? std::optional<Cut>(0) : std::nullopt;
  }
  void keep(const Sample&, std::uint32_t, double, KeeperWork&) override {}
  bool keep_ahead(const Sample& sample, std::uint32_t, double, KeeperWork&) override {
    const std::lock_guard lock(mutex_);
    made_.push_back(sample.id);
    return true;
  }
  bool refills() const override { return true; }
  std::optional<SampleId> lacks() override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return over_ || !lacking_.empty(); });
    if (lacking_.empty()) return std::nullopt;
    const SampleId id = lacking_.front();
    lacking_.pop_front();
    return id;
  }

  void lack(std::deque<SampleId> ids) {
    const std::lock_guard lock(mutex_);
    lacking_ = std::move(ids);
    changed_.notify_all();
  }
  // It lacks nothing more: whoever waits for an answer has it.
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    stalled_ = false;
    changed_.notify_all();
  }
  void wait_until_asked(int times) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ >= times; });
  }
  // Threads that look for a sample wait until they may.
  void stall(bool stalled) {
    const std::lock_guard lock(mutex_);
    stalled_ = stalled;
    changed_.notify_all();
  }
  void wait_until_stalled() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stalled_ && looking_ > 0; });
  }
  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::vector<SampleId> made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<SampleId> lacking_;
  std::vector<SampleId> made_;
  int asked_ = 0, looking_ = 0;
  bool stalled_ = false, over_ = false;
};

constexpr std::size_t kSamples = 8;

// Another job is at some samples for ever.
class OthersAt final : public CacheSeat {
 public:
  explicit OthersAt(std::set<SampleId> ids) : ids_(std::move(ids)) {}
  std::uint64_t begin_epoch(std::uint64_t) override { return 0; }
  void had(std::uint64_t, SampleId) override {}
  void leave_epoch() override {}
  void arrivals(std::vector<SampleId>&) override {}
  int others() const override { return 1; }
  int others_alike() const override { return 0; }
  bool start_making(SampleId id) override { return !ids_.contains(id); }
  void made(SampleId id) override {
    const std::lock_guard lock(mutex_);
    ++made_[id];
    changed_.notify_all();
  }
  // Returns once so many have made a sample, or given it up.
  void wait_until_made(SampleId id, int times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_[id] >= times; });
  }

 private:
  const std::set<SampleId> ids_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<SampleId, int> made_;
};

// One thread, and one batch at a time, which is an epoch: it rests when a batch is there, and does
// not go on before that is handed out.
struct Trial {
  explicit Trial(std::set<SampleId> bad = {}, CacheSeat* seat = nullptr)
      : source(faulty(kSamples, std::move(bad))), what(test::what_from(source, kSamples)) {
    what.bad_samples.policy = OnError::kSkip;
    ExecutorOptions options;
    options.memory_limit = std::size_t{16} << 20;
    options.keeper = &keeper;
    options.seat = seat;
    executor.emplace(what, options);
  }
  ~Trial() { keeper.end(); }

  void wait_for_batch() {
    while (!executor->wait(std::chrono::hours(1))) {
    }
  }
  void take_epoch() {
    while (executor->next()) {
    }
  }
  // The second epoch's batch is there, and whoever has time asks what the keeper lacks.
  void begin_second_epoch() {
    executor->restart({});
    take_epoch();
    keeper.wait_until_asked(1);
  }

  std::shared_ptr<FaultySource> source;
  What what;
  Lacking keeper;
  std::optional<Executor> executor;
};

TEST(Refill, WhatIsLackingIsMadeAndCounted) {
  Trial trial;
  trial.begin_second_epoch();
  const std::vector<SampleId> reads = trial.source->reads();
  const Work before = trial.executor->work();
  trial.keeper.lack({3, 6});
  trial.keeper.wait_until_asked(3);
  EXPECT_EQ(trial.keeper.made(), (std::vector<SampleId>{3, 6}));
  EXPECT_EQ(trial.source->reads().size(), reads.size() + 2);
  const Work after = trial.executor->work();
  EXPECT_EQ(after.made_ahead, 2);
  EXPECT_EQ(after.bytes_read, before.bytes_read + 2 * 4);
  EXPECT_EQ(after.made_from(From::kSource), before.made_from(From::kSource));
}

TEST(Refill, NothingIsMadeInTheFirstEpoch) {
  Trial trial;
  trial.executor->restart({5, 0, 0, {}});
  trial.wait_for_batch();
  EXPECT_TRUE(trial.executor->next());
  EXPECT_EQ(trial.keeper.asked(), 0);
  EXPECT_FALSE(trial.executor->next());
  trial.keeper.wait_until_asked(1);
}

TEST(Refill, EpochsThatAreCutShortCountAsWell) {
  Trial trial;
  trial.executor->restart({});
  trial.wait_for_batch();
  trial.executor->restart({1, 0, 0, {}});
  trial.keeper.wait_until_asked(1);
}

TEST(Refill, NothingIsMadeWhileTheConsumerWaits) {
  Trial trial;
  trial.executor->restart({});
  trial.wait_for_batch();
  FaultySource::Hold hold(*trial.source, {5});
  trial.take_epoch();
  trial.source->wait_for_reads(kSamples + 6);
  EXPECT_FALSE(trial.executor->wait(std::chrono::nanoseconds(0)));
  EXPECT_EQ(trial.keeper.asked(), 0);
  hold.release();
  trial.keeper.wait_until_asked(1);
}

TEST(Refill, WhereTimeIsOverASampleIsGivenUp) {
  OthersAt seat({});
  Trial trial({}, &seat);
  trial.begin_second_epoch();
  FaultySource::Hold hold(*trial.source, {3});
  trial.keeper.lack({3});
  trial.source->wait_for_reads(2 * kSamples + 1);
  trial.keeper.stall(true);
  EXPECT_TRUE(trial.executor->next());  // the thread has work again, and does not get on with it
  trial.keeper.wait_until_stalled();
  hold.release();
  seat.wait_until_made(3, 3);  // in two epochs, and now
  EXPECT_EQ(trial.keeper.made(), std::vector<SampleId>());
  trial.keeper.stall(false);
  EXPECT_FALSE(trial.executor->next());
  trial.keeper.wait_until_asked(2);
}

TEST(Refill, CloseEndsItInTheMiddleOfARead) {
  Trial trial;
  trial.begin_second_epoch();
  FaultySource::Hold hold(*trial.source, {3});
  trial.keeper.lack({3, 4});
  trial.source->wait_for_reads(2 * kSamples + 1);
  trial.executor->close();
  hold.release();
  trial.executor.reset();
  EXPECT_EQ(trial.keeper.made(), std::vector<SampleId>());
  EXPECT_EQ(trial.source->reads().size(), 2 * kSamples + 1);
}

TEST(Refill, ABadSampleIsLeftAlone) {
  Trial trial({3});
  trial.begin_second_epoch();
  std::vector<SampleId> reads = trial.source->reads();
  trial.keeper.lack({3, 4});
  trial.keeper.wait_until_asked(3);
  EXPECT_EQ(trial.keeper.made(), std::vector<SampleId>{4});
  reads.push_back(4);
  EXPECT_EQ(trial.source->reads(), reads);
}

TEST(Refill, WhatAnotherJobMakesIsLeftToIt) {
  OthersAt seat({2, 5});
  Trial trial({}, &seat);
  trial.begin_second_epoch();
  std::vector<SampleId> reads = trial.source->reads();
  trial.keeper.lack({2, 5, 7});
  trial.keeper.wait_until_asked(4);
  EXPECT_EQ(trial.keeper.made(), std::vector<SampleId>{7});
  reads.push_back(7);
  EXPECT_EQ(trial.source->reads(), reads);
}

TEST(Refill, IsNotForTwoKeepersOfWhichOneMayHaveWhatTheOtherLacks) {
  Lacking first, second;
  const TwoKeepers both(first, second);
  EXPECT_FALSE(both.refills());
}

}  // namespace
}  // namespace cutwater
