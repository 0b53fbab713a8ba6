// SPDX-License-Identifier: Apache-2.0
// An executor whose job has a seat at a cache: each sample once, whatever the seat says, and the
// seat is told the truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "run/executor.h"
#include "run/test_loader.h"
#include "run/test_seat.h"

namespace cutwater {
namespace {

using test::BookSeat;
using test::counted_to;
using test::faulty;
using test::FaultySource;
using test::LyingSeat;
using test::Resident;

ExecutorOptions with_seat(int threads, Resident& resident, CacheSeat& seat) {
  ExecutorOptions options;
  options.threads = threads;
  options.memory_limit = std::size_t{16} << 20;
  options.prefetch_batches = 3;
  options.keeper = &resident;
  options.seat = &seat;
  return options;
}

struct Got {
  std::vector<SampleId> ids;
  std::vector<std::int64_t> positions, counts;  // counts: of each batch

  void add(const FinishedBatch& batch) {
    const auto& slab = *batch.slab;
    ids.insert(ids.end(), slab.ids.begin(), slab.ids.begin() + batch.count);
    positions.insert(positions.end(), slab.positions.begin(), slab.positions.begin() + batch.count);
    counts.push_back(batch.count);
  }
};

// The rest of the epoch, or so many batches of it.
Got take(Executor& executor, std::size_t batches = SIZE_MAX) {
  Got got;
  while (got.counts.size() < batches) {
    const std::optional<FinishedBatch> batch = executor.next();
    if (!batch) break;
    got.add(*batch);
  }
  return got;
}

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::ranges::sort(values);
  return values;
}

struct SeatCase {
  What what;
  std::shared_ptr<FaultySource> source;
  std::set<SampleId> bad;
  std::int64_t size;
  int threads;
  std::size_t room;
  std::string text;

  explicit SeatCase(unsigned seed) : what(test::what_from(nullptr, 1)) {
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    constexpr std::array<std::int64_t, 9> kBatches = {1, 2, 3, 7, 16, 33, 64, 200, 512};
    size = 1 + below(600);
    threads = static_cast<int>(1 + below(4));
    room = static_cast<std::size_t>(below(3) * size / 2);
    what.batch_size = kBatches[static_cast<std::size_t>(below(std::ssize(kBatches)))];
    what.order = below(4) == 0 ? Order::kStrict : Order::kReady;
    what.shuffle = below(4) != 0;
    what.seed = seed;
    what.drop_last = below(2) == 0;
    what.max_late_batches = 1 + below(4);
    if (below(3) == 0) {
      what.bad_samples.policy = below(2) == 0 ? OnError::kSkip : OnError::kSubstitute;
      for (SampleId id = 1; id < size; ++id)  // 0 is good: never all of them
        if (below(12) == 0) bad.insert(id);
    }
    source = faulty(size, bad);
    what.source = source;
    text = "seed " + std::to_string(seed) + ": " + std::to_string(size) + " samples, batches of " +
           std::to_string(what.batch_size) + ", " + std::to_string(threads) + " threads, " +
           (what.order == Order::kStrict ? "strict" : "ready");
  }

  bool skips() const { return what.bad_samples.policy == OnError::kSkip; }
  EpochOrder order(std::uint32_t epoch) const {
    return what.shuffle ? EpochOrder::shuffled(size, what.seed, epoch) : EpochOrder(size);
  }
  // Positions that an epoch issues; of them, those that it delivers unless they are too few.
  std::int64_t issued() const {
    return what.drop_last && !skips() ? size - size % what.batch_size : size;
  }
  std::vector<std::int64_t> delivered(std::uint32_t epoch) const {
    const EpochOrder ids = order(epoch);
    std::vector<std::int64_t> positions;
    for (std::int64_t position = 0; position < issued(); ++position)
      if (!skips() || !bad.contains(ids[position])) positions.push_back(position);
    return positions;
  }

  void check(const Got& got, std::uint32_t epoch) const {
    const std::vector<std::int64_t> expected = delivered(epoch), all = sorted(got.positions);
    if (what.drop_last && skips()) {
      EXPECT_EQ(std::ssize(all), std::ssize(expected) / what.batch_size * what.batch_size);
      EXPECT_TRUE(std::ranges::includes(expected, all));
      EXPECT_EQ(std::ranges::adjacent_find(all), all.end()) << "twice";
    } else {
      EXPECT_EQ(all, expected);
    }
    if (what.order == Order::kStrict) {
      EXPECT_EQ(got.positions, all);
    }
    const EpochOrder ids = order(epoch);
    for (std::size_t i = 0; i < got.ids.size(); ++i) {
      const SampleId asked = ids[got.positions[i]];
      if (!bad.contains(asked)) {
        ASSERT_EQ(got.ids[i], asked);
      }
    }
    for (std::size_t batch = 0; batch + 1 < got.counts.size(); ++batch)
      ASSERT_EQ(got.counts[batch], what.batch_size);
  }
};

TEST(ExecutorSeat, EverySampleOnceWhateverTheSeatSays) {
  for (unsigned seed = 0; seed < 120; ++seed) {
    const SeatCase one(seed);
    SCOPED_TRACE(one.text);
    Resident resident(one.source, one.room);
    LyingSeat seat(resident, one.size, seed);
    {
      Executor executor(one.what, with_seat(one.threads, resident, seat));
      executor.restart({});
      for (std::uint32_t epoch = 0; epoch < 3; ++epoch) one.check(take(executor), epoch);
    }
    EXPECT_TRUE(seat.is_quiet());
    if (HasFailure()) return;
  }
}

TEST(ExecutorSeat, AnEpochStoppedAnywhereIsResumedWithTheRest) {
  for (unsigned seed = 0; seed < 150; ++seed) {
    SeatCase one(seed);
    if (one.what.drop_last && one.skips()) continue;  // what is dropped depends on time
    one.what.order = Order::kReady;
    SCOPED_TRACE(one.text);
    Resident resident(one.source, one.room);
    std::mt19937 random(seed);
    EpochStart start;
    Got all;
    for (int part = 0; part < 3; ++part) {
      LyingSeat seat(resident, one.size, seed + static_cast<unsigned>(part));
      const int threads = 1 + static_cast<int>(random() % 4);
      Executor executor(one.what, with_seat(threads, resident, seat));
      executor.restart(start);
      const std::size_t wanted = part == 2 ? SIZE_MAX : random() % 6;
      const Got got = take(executor, wanted);
      all.ids.insert(all.ids.end(), got.ids.begin(), got.ids.end());
      all.positions.insert(all.positions.end(), got.positions.begin(), got.positions.end());
      all.counts.insert(all.counts.end(), got.counts.begin(), got.counts.end());
      if (got.counts.size() < wanted) break;  // the epoch was over
      start.next_batch = std::ssize(all.counts);
      std::vector<std::int64_t> skipped = executor.skipped_positions();
      skipped.insert(skipped.end(), start.done_beyond.begin(), start.done_beyond.end());
      skipped.insert(skipped.end(), all.positions.begin(), all.positions.end());
      start.done_beyond = sorted(std::move(skipped));
    }
    one.check(all, 0);
    if (HasFailure()) return;
  }
}

TEST(ExecutorSeat, StrictOrderStaysAndAJobAloneKeepsTheOrder) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    What what = test::what_from(faulty(300, {}), 7);
    what.shuffle = true;
    what.order = order;
    Resident resident(what.source, 300);
    for (SampleId id = 0; id < 300; id += 3) resident.put(id);
    BookSeat seat(resident, order == Order::kStrict ? 5 : 0);
    Executor executor(what, with_seat(1, resident, seat));
    executor.restart({});
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
      std::vector<SampleId> expected;
      const EpochOrder permutation = EpochOrder::shuffled(300, 0, epoch);
      for (std::int64_t position = 0; position < 300; ++position)
        expected.push_back(permutation[position]);
      EXPECT_EQ(take(executor).ids, expected);
    }
  }
}

// Others at the cache need not keep for it what it will not ask for.
TEST(ExecutorSeat, AnEpochThatIsLeftIsOverForTheSeat) {
  What what = test::what_from(faulty(200, {}), 8);
  what.order = Order::kReady;
  what.shuffle = true;
  Resident resident(what.source, 100);
  BookSeat seat(resident, 2);
  Executor executor(what, with_seat(2, resident, seat));
  for (const std::size_t batches : {3, 24, 25}) {  // also where the next one has been begun
    executor.restart({});
    take(executor, batches);
    const int left = seat.left();
    executor.rest();
    executor.rest();
    EXPECT_EQ(seat.left(), left + 1);
    const auto begun = seat.draws().size();
    executor.restart({1, 0, 0, {}});
    EXPECT_EQ(sorted(take(executor).ids), counted_to(200));
    EXPECT_GT(seat.draws().size(), begun);
    EXPECT_EQ(seat.told(seat.draws()[begun]).size(), 200u);
  }
}

TEST(ExecutorSeat, WithOthersResidentsComeEarly) {
  What what = test::what_from(faulty(1000, {}), 10);
  what.shuffle = true;
  what.order = Order::kReady;
  Resident resident(what.source, 1000);
  for (SampleId id = 0; id < 400; ++id) resident.put(id);
  BookSeat seat(resident, 3);
  Executor executor(what, with_seat(1, resident, seat));
  executor.restart({});
  const Got first = take(executor, 40);
  const auto residents = std::ranges::count_if(first.ids, [](SampleId id) { return id < 400; });
  EXPECT_GT(residents, 300) << "three in four, and those that come by chance; 160 by chance alone";
  const Got rest = take(executor);
  std::vector<SampleId> all = first.ids;
  all.insert(all.end(), rest.ids.begin(), rest.ids.end());
  EXPECT_EQ(sorted(all), counted_to(1000));
}

// Notes what it is told too early: what nobody has used yet could be gone before it is.
class WatchfulSeat final : public BookSeat {
 public:
  explicit WatchfulSeat(const Resident& resident) : BookSeat(resident, 2), resident_(resident) {}

  void had(std::uint64_t draw, SampleId sample) override {
    BookSeat::had(draw, sample);
    if (resident_.met(sample)) return;
    const std::lock_guard lock(mutex_);
    unmet_.insert(sample);
  }
  std::set<SampleId> unmet() const {
    const std::lock_guard lock(mutex_);
    return unmet_;
  }

 private:
  const Resident& resident_;
  std::set<SampleId> unmet_;
};

TEST(ExecutorSeat, TheSeatIsToldOfEverySampleOnce) {
  const std::set<SampleId> bad = {3, 4, 90, 199};
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    for (const Order order : {Order::kStrict, Order::kReady}) {
      What what = test::what_from(faulty(200, bad), 8);
      what.shuffle = true;
      what.order = order;
      what.bad_samples.policy = policy;
      Resident resident(what.source, 100);
      WatchfulSeat seat(resident);
      {
        Executor executor(what, with_seat(3, resident, seat));
        executor.restart({7, 0, 0, {}});
        take(executor);
      }
      EXPECT_EQ(seat.draws().front(), draw_number(0, 7));
      const std::map<SampleId, int> told = seat.told(draw_number(0, 7));
      EXPECT_EQ(told.size(), 200U);
      EXPECT_TRUE(std::ranges::all_of(told, [](const auto& one) { return one.second == 1; }));
      EXPECT_EQ(seat.unmet(), bad);
      EXPECT_TRUE(seat.is_quiet());
    }
  }
}

// The seat begins anew, and knows what was had before, and what will never be.
TEST(ExecutorSeat, ARestartReportsWhatIsDone) {
  const auto source = faulty(23, {});
  What what = test::what_from(source, 4);
  what.shuffle = true;
  what.order = Order::kReady;
  what.drop_last = true;
  const EpochOrder order = EpochOrder::shuffled(23, 0, 0);
  Resident resident(source, 0);
  BookSeat seat(resident, 1);
  Executor executor(what, with_seat(1, resident, seat));
  std::set<SampleId> all;
  for (SampleId id = 0; id < 23; ++id) all.insert(id);
  FaultySource::Hold hold(*source, all);  // jobs that draw alike do not begin with the same sample
  executor.restart({0, 2, 3, {4, 6, 7, 8, 19}});
  source->wait_for_reads(1);
  std::map<SampleId, int> expected;
  for (const std::int64_t position : {0, 1, 2, 4, 6, 7, 8, 19, 20, 21, 22})
    expected[order[position]] = 1;
  EXPECT_EQ(seat.told(draw_number(0, 0)), expected);
  hold.release();
  EXPECT_EQ(std::ssize(take(executor).ids), 12);
}

// Another job's samples: it makes them as soon as this one has asked for some others.
class OtherJob final : public BookSeat {
 public:
  OtherJob(Resident& resident, std::set<SampleId> its, int after)
      : BookSeat(resident, 1), resident_(resident), its_(std::move(its)), after_(after) {}

  int others_alike() const override { return 0; }  // so that heads come in their order
  bool start_making(SampleId sample) override {
    const bool granted = BookSeat::start_making(sample);
    const std::lock_guard lock(mutex_);
    if (its_.contains(sample)) return false;
    if (--after_ == 0)
      for (const SampleId id : its_) resident_.put(id);
    return granted;
  }

 private:
  Resident& resident_;
  const std::set<SampleId> its_;
  int after_;
};

// One batch is the whole epoch, and the next has no room before this one is handed out: until then,
// what the seat was asked is what this epoch asked.
struct OneBatch {
  std::shared_ptr<FaultySource> source = faulty(40, {});
  What what = test::what_from(source, 40);
  Resident resident{std::make_shared<test::MemorySource>(40), 40};

  explicit OneBatch(Order order) { what.order = order; }
  ExecutorOptions options(int threads, CacheSeat& seat) {
    ExecutorOptions options = with_seat(threads, resident, seat);
    options.prefetch_batches = 1;
    return options;
  }
};

void wait_for_batch(Executor& executor) {
  while (!executor.wait(std::chrono::hours(1))) {
  }
}

TEST(ExecutorSeat, WhatAnotherJobMakesIsLeftToIt) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    OneBatch one(order);
    OtherJob seat(one.resident, {5, 6}, 6);
    Executor executor(one.what, one.options(1, seat));
    executor.restart({});
    wait_for_batch(executor);
    EXPECT_EQ(seat.asked(5), 1);
    EXPECT_EQ(sorted(take(executor).ids), counted_to(40));
    const std::vector<SampleId> reads = one.source->reads();
    EXPECT_EQ(std::ranges::count_if(reads, [](SampleId id) { return id == 5 || id == 6; }), 0);
  }
}

TEST(ExecutorSeat, AlsoToOneThatTakesItsTime) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    OneBatch one(order);
    OtherJob seat(one.resident, {5}, 20);
    Executor executor(one.what, one.options(1, seat));
    executor.restart({});
    wait_for_batch(executor);
    EXPECT_GT(seat.asked(5), 2);
    EXPECT_EQ(sorted(take(executor).ids), counted_to(40));
    const std::vector<SampleId> reads = one.source->reads();
    EXPECT_EQ(std::ranges::count(reads, 5), 0);
  }
}

TEST(ExecutorSeat, ButNobodyWaitsForAJobThatNeverDoes) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    OneBatch one(order);
    const std::vector<SampleId> all = counted_to(40);
    OtherJob seat(one.resident, {all.begin(), all.end()}, 1);
    Executor executor(one.what, one.options(1, seat));
    executor.restart({});
    wait_for_batch(executor);
    for (const SampleId id : all) {
      EXPECT_GE(seat.asked(id), 2) << id;
      EXPECT_LE(seat.asked(id), 9) << id;
    }
    EXPECT_EQ(sorted(take(executor).ids), all);
  }
}

TEST(ExecutorSeat, CloseInTheMiddleTakesEveryWordBack) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    What what = test::what_from(faulty(400, {}), 4);
    what.shuffle = true;
    what.order = seed % 2 == 0 ? Order::kReady : Order::kStrict;
    Resident resident(what.source, 100);
    LyingSeat seat(resident, 400, seed);
    {
      Executor executor(what, with_seat(3, resident, seat));
      executor.restart({});
      take(executor, seed % 7);
      if (seed % 3 == 0) executor.restart({});
      if (seed % 3 == 1) executor.close();
    }
    EXPECT_TRUE(seat.is_quiet()) << seed;
  }
}

// Jobs of their own seeds at one cache, all at once.
TEST(ExecutorSeat, ThreeJobsHaveEverySampleOnceEach) {
  const auto source = std::make_shared<test::MemorySource>(500);
  Resident resident(source, 150);
  std::vector<std::vector<Got>> got(3);
  std::vector<std::thread> jobs;
  for (std::size_t job = 0; job < got.size(); ++job)
    jobs.emplace_back([&, job] {
      What what = test::what_from(source, 16);
      what.shuffle = true;
      what.seed = job;
      what.order = Order::kReady;
      BookSeat seat(resident, 2);
      Executor executor(what, with_seat(2, resident, seat));
      executor.restart({});
      for (int epoch = 0; epoch < 4; ++epoch) got[job].push_back(take(executor));
    });
  for (std::thread& job : jobs) job.join();
  for (const auto& epochs : got)
    for (const Got& epoch : epochs) EXPECT_EQ(sorted(epoch.ids), counted_to(500));
  EXPECT_GT(resident.hits(), 0U);
}

}  // namespace
}  // namespace cutwater
