// SPDX-License-Identifier: Apache-2.0
// Ready order: the same set, full batches, and nobody later than promised.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "run/epoch_run.h"
#include "run/test_run.h"

namespace cutwater {
namespace {

using test::RandomCase;
using ::testing::HasSubstr;

class ReadyRun : public testing::Test {
 protected:
  std::shared_ptr<BufferPool> pool_ = BufferPool::create(1 << 24);

  test::Outcome outcome(const What& what, const EpochOrder& order, const EpochStart& start,
                        const test::Drive& drive, unsigned seed) {
    const auto run = make_ready_run(what, *pool_, order, start);
    return test::RunDriver(*run, drive, seed).drive();
  }

  static Ticket claimed(EpochRun& run, Ticket ticket) {
    run.slot(ticket, "image", {DType::kU8, {1}});
    return ticket;
  }
  static std::int64_t batch_of(EpochRun& run, std::int64_t position) {
    for (const auto& finished : run.finished) {
      auto batch = finished;  // Result gives its value to a caller that may change it
      const auto& positions = batch.value().slab->positions;
      if (std::ranges::find(positions, position) != positions.end()) return batch.value().index;
    }
    return -1;
  }
};

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

TEST_F(ReadyRun, DeliversEverySampleOnceInFullBatches) {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const RandomCase one(seed);
    SCOPED_TRACE(one.text());
    What what = test::what_of(one.batch_size);
    what.drop_last = one.drop_last;
    what.max_late_batches = 1 + seed % 4;
    what.bad_samples.policy = OnError::kSkip;
    const EpochOrder order = EpochOrder::shuffled(one.size, seed, 4);
    const test::Outcome got = outcome(what, order, {4, 0, 0, {}}, one.drive, seed);

    std::vector<std::int64_t> good;
    for (std::int64_t position = 0; position < one.size; ++position)
      if (!one.drive.bad.contains(position)) good.push_back(position);
    EXPECT_EQ(got.failures.size(), good.empty() && one.size > 0 ? 1U : 0U);

    const std::vector<std::int64_t> delivered = sorted(got.positions());
    if (!one.drop_last) {
      EXPECT_EQ(delivered, good);
    } else {
      EXPECT_EQ(std::ssize(delivered), std::ssize(good) / one.batch_size * one.batch_size);
      EXPECT_TRUE(std::ranges::includes(good, delivered));
      EXPECT_EQ(std::ranges::adjacent_find(delivered), delivered.end()) << "twice";
    }
    for (std::size_t i = 0; i < got.batches.size(); ++i) {
      EXPECT_EQ(got.batches[i].index, static_cast<std::int64_t>(i));
      for (std::size_t k = 0; k < got.batches[i].ids.size(); ++k)
        EXPECT_EQ(got.batches[i].ids[k], order[got.batches[i].positions[k]]);
      if (i + 1 < got.batches.size()) {
        EXPECT_EQ(std::ssize(got.batches[i].ids), one.batch_size);
      }
    }
    if (HasFailure()) return;
  }
}

// The furthest that any sample came after its place, in batches.
std::int64_t latest(const test::Outcome& got, std::int64_t batch_size) {
  std::int64_t late = 0;
  for (const test::Delivered& batch : got.batches)
    for (const std::int64_t position : batch.positions)
      late = std::max(late, batch.index - position / batch_size);
  return late;
}
std::int64_t earliest(const test::Outcome& got, std::int64_t batch_size) {
  std::int64_t early = 0;
  for (const test::Delivered& batch : got.batches)
    for (const std::int64_t position : batch.positions)
      early = std::max(early, position / batch_size - batch.index);
  return early;
}

TEST_F(ReadyRun, NobodyIsLaterThanPromised) {
  std::int64_t worst = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    RandomCase one(seed);
    one.size += 40;
    SCOPED_TRACE(one.text());
    What what = test::what_of(one.batch_size);
    what.max_late_batches = 1 + seed % 4;
    what.bad_samples.policy = OnError::kSkip;
    const test::Outcome got = outcome(what, EpochOrder(one.size), {}, one.drive, seed);
    ASSERT_LE(latest(got, one.batch_size), what.max_late_batches);
    // Early: no further than batches may be open, and one sample a thread.
    const auto ahead = static_cast<std::int64_t>(one.drive.threads) / one.batch_size + 1;
    if (one.drive.bad.empty()) {
      ASSERT_LE(earliest(got, one.batch_size), one.drive.prefetch + ahead);
    }
    worst = std::max(worst, latest(got, one.batch_size));
  }
  EXPECT_GE(worst, 2) << "the cases must come near the bound";
}

// The same promise over an epoch that was stopped after some batches and resumed.
TEST_F(ReadyRun, NobodyIsLaterThanPromisedAfterResuming) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    RandomCase one(seed);
    one.size += 60;
    one.drive.bad.clear();
    SCOPED_TRACE(one.text());
    What what = test::what_of(one.batch_size);
    what.max_late_batches = 1 + seed % 3;
    test::Outcome got = outcome(what, EpochOrder(one.size), {}, one.drive, seed);

    const auto batches = static_cast<std::int64_t>(seed) % (one.size / one.batch_size);
    got.batches.resize(static_cast<std::size_t>(batches));
    std::vector<std::int64_t> done = sorted(got.positions());
    EpochStart start{0, batches, 0, {}};
    while (start.position < std::ssize(done) &&
           done[static_cast<std::size_t>(start.position)] == start.position)
      ++start.position;
    start.done_beyond.assign(done.begin() + start.position, done.end());

    const test::Outcome rest = outcome(what, EpochOrder(one.size), start, one.drive, seed + 1);
    ASSERT_LE(latest(rest, one.batch_size), what.max_late_batches);
    ASSERT_EQ(std::ssize(rest.positions()), one.size - std::ssize(done));
  }
}

// The smallest case: with max_late_batches = 1, batch 1 is the last one that position 0 may be in.
TEST_F(ReadyRun, AFreshBatchKeepsASlotForTheLate) {
  What what = test::what_of(1);
  what.max_late_batches = 1;
  const auto run = make_ready_run(what, *pool_, EpochOrder(3), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(run->issue());
  for (const std::size_t next : {1U, 2U, 0U}) run->complete(claimed(*run, tickets[next]));
  EXPECT_LE(batch_of(*run, 0), 1) << "positions 1 and 2 were ready first";
}

// A sample that has its slot but is slow to fill it is late all the same.
TEST_F(ReadyRun, ABatchIsNotOvertakenForEver) {
  What what = test::what_of(2);
  what.max_late_batches = 1;
  const auto run = make_ready_run(what, *pool_, EpochOrder(12), {});
  const Ticket slow = claimed(*run, run->issue());
  for (int i = 1; i < 12; ++i) run->complete(claimed(*run, run->issue()));
  run->complete(slow);
  EXPECT_LE(batch_of(*run, 0), 1);
}

// What a bad sample leaves of a batch at the very end comes before the full batches behind it.
TEST_F(ReadyRun, LeftOversKeepTheirPlace) {
  What what = test::what_of(2);
  what.max_late_batches = 1;
  what.bad_samples.policy = OnError::kSkip;
  const auto run = make_ready_run(what, *pool_, EpochOrder(8), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 8; ++i) tickets.push_back(claimed(*run, run->issue()));
  for (const std::size_t next : {0U, 2U, 3U, 4U, 5U, 6U, 7U}) run->complete(tickets[next]);
  run->fail(tickets[1], test::bad_sample(1));
  ASSERT_EQ(run->finished.size(), 4U);
  EXPECT_LE(batch_of(*run, 0), 1);
}

TEST_F(ReadyRun, AResumedEpochMakesWhatWasLeft) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomCase one(seed);
    one.drive.bad.clear();
    one.size += 10;
    std::mt19937 random(seed);
    const auto position = static_cast<std::int64_t>(random() % static_cast<unsigned>(one.size));
    std::vector<std::int64_t> beyond;
    std::vector<std::int64_t> left = {position};
    for (std::int64_t p = position + 1; p < one.size; ++p)
      (random() % 3 == 0 ? beyond : left).push_back(p);
    const test::Outcome got = outcome(test::what_of(one.batch_size), EpochOrder(one.size),
                                      {0, 2, position, beyond}, one.drive, seed);
    ASSERT_EQ(sorted(got.positions()), left) << one.text();
  }
}

TEST_F(ReadyRun, RaiseEndsTheEpochAtOnce) {
  const auto run_what = test::what_of(2);
  const auto run = make_ready_run(run_what, *pool_, EpochOrder(8), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(run->issue());
  run->complete(claimed(*run, tickets[2]));
  run->complete(claimed(*run, tickets[3]));
  run->fail(tickets[1], test::bad_sample(1));
  EXPECT_TRUE(run->failed());
  EXPECT_TRUE(run->all_issued());
  run->complete(claimed(*run, tickets[0]));  // was on its way: goes nowhere
  ASSERT_EQ(run->finished.size(), 2U);
  EXPECT_TRUE(run->finished[0].ok()) << "what was finished before is delivered";
  EXPECT_EQ(run->finished[1].failure().sample, 1);
}

TEST_F(ReadyRun, TheSkipBudgetAndAnEpochOfBadSamplesAreErrors) {
  What what = test::what_of(4);
  what.bad_samples = {OnError::kSkip, 1, {}};
  const test::Outcome many = outcome(what, EpochOrder(30), {}, {4, 2, {3, 9}}, 1);
  ASSERT_EQ(many.failures.size(), 1U);
  EXPECT_THAT(many.failures[0].message(),
              HasSubstr("2 bad samples in epoch 0 are more than max_errors allows"));

  what.bad_samples = {OnError::kSkip, {}, {}};
  const test::Outcome all = outcome(what, EpochOrder(2), {}, {4, 2, {0, 1}}, 1);
  ASSERT_EQ(all.failures.size(), 1U);
  EXPECT_EQ(all.failures[0].message(), "all 2 samples of the epoch are bad");
}

// What is left at the end is packed together; shapes that do not go together end the epoch, they do
// not hit the worker that came last with an exception.
TEST_F(ReadyRun, LeftOversOfTwoShapesAreAFailureOfTheEpoch) {
  What what = test::what_of(2);
  what.bad_samples.policy = OnError::kSkip;
  const auto run = make_ready_run(what, *pool_, EpochOrder(4), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(run->issue());
  run->slot(tickets[0], "image", {DType::kU8, {1}});
  run->slot(tickets[1], "image", {DType::kU8, {1}});
  run->slot(tickets[2], "image", {DType::kU8, {2}});
  run->slot(tickets[3], "image", {DType::kU8, {2}});
  run->complete(tickets[0]);
  run->complete(tickets[2]);
  run->fail(tickets[1], test::bad_sample(1));
  ASSERT_NO_THROW(run->fail(tickets[3], test::bad_sample(3)));
  ASSERT_EQ(run->finished.size(), 1U);
  ASSERT_FALSE(run->finished.front().ok());
  EXPECT_THAT(run->finished.front().failure().message(), HasSubstr("cannot be in one batch"));
}

}  // namespace
}  // namespace cutwater
