// SPDX-License-Identifier: Apache-2.0
// Strict order: whatever the order in which samples are finished, the permutation without the bad
// ones, cut into batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/epoch_run.h"
#include "run/test_run.h"

namespace cutwater {
namespace {

using test::RandomCase;
using ::testing::HasSubstr;

class StrictRun : public testing::Test {
 protected:
  std::shared_ptr<BufferPool> pool_ = BufferPool::create(1 << 24);

  test::Outcome outcome(const What& what, const EpochOrder& order, const EpochStart& start,
                        const test::Drive& drive, unsigned seed) {
    const auto run = make_strict_run(what, *pool_, order, start);
    return test::RunDriver(*run, drive, seed).drive();
  }
};

// The good positions from `begin` on, cut into batches.
std::vector<std::vector<std::int64_t>> expected_batches(const RandomCase& one, const What& what,
                                                        std::int64_t begin) {
  std::int64_t end = one.size;
  if (what.drop_last && what.bad_samples.policy != OnError::kSkip) end -= one.size % one.batch_size;
  std::vector<std::vector<std::int64_t>> batches;
  for (std::int64_t position = begin; position < end; ++position) {
    if (one.drive.bad.contains(position)) continue;
    if (batches.empty() || std::ssize(batches.back()) == one.batch_size) batches.emplace_back();
    batches.back().push_back(position);
  }
  if (what.drop_last && !batches.empty() && std::ssize(batches.back()) < one.batch_size)
    batches.pop_back();
  return batches;
}

TEST_F(StrictRun, DeliversThePermutationWithoutTheBadOnes) {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    const RandomCase one(seed);
    SCOPED_TRACE(one.text());
    What what = test::what_of(one.batch_size);
    what.drop_last = one.drop_last;
    what.bad_samples.policy = OnError::kSkip;
    // From the start, and from anywhere.
    const std::int64_t begin = seed % 3 == 0 ? static_cast<std::int64_t>(seed) % (one.size + 1) : 0;
    const EpochStart start{4, begin == 0 ? 0 : 7, begin, {}};
    const EpochOrder order = EpochOrder::shuffled(one.size, seed, 4);
    const test::Outcome got = outcome(what, order, start, one.drive, seed);

    const auto expected = expected_batches(one, what, begin);
    const bool all_bad = begin == 0 && one.size > 0 && std::ssize(one.drive.bad) == one.size;
    EXPECT_EQ(got.failures.size(), all_bad ? 1U : 0U);
    ASSERT_EQ(got.batches.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(got.batches[i].index, start.next_batch + static_cast<std::int64_t>(i));
      EXPECT_EQ(got.batches[i].positions, expected[i]);
      for (std::size_t k = 0; k < expected[i].size(); ++k)
        EXPECT_EQ(got.batches[i].ids[k], order[expected[i][k]]);
    }
    if (HasFailure()) return;
  }
}

// The failure comes in the place of the batch that the bad sample would have been in.
TEST_F(StrictRun, RaiseStopsAtTheBadSamplesBatch) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomCase one(seed);
    SCOPED_TRACE(one.text());
    What what = test::what_of(one.batch_size);
    what.drop_last = one.drop_last;
    const EpochOrder order = EpochOrder::shuffled(one.size, seed, 0);
    const test::Outcome got = outcome(what, order, {}, one.drive, seed);

    const std::int64_t end = one.drop_last ? one.size - one.size % one.batch_size : one.size;
    const auto first_bad = one.drive.bad.begin();
    const bool fails = first_bad != one.drive.bad.end() && *first_bad < end;
    ASSERT_EQ(got.failures.size(), fails ? 1U : 0U);
    const std::int64_t good = fails ? *first_bad / one.batch_size * one.batch_size : end;
    std::vector<std::int64_t> expected;
    for (std::int64_t position = 0; position < good; ++position) expected.push_back(position);
    EXPECT_EQ(got.positions(), expected);
    if (fails) {
      EXPECT_EQ(got.failures[0].sample, order[*first_bad]);
    }
    if (HasFailure()) return;
  }
}

TEST_F(StrictRun, TheSkipBudgetEndsTheEpochAtTheSameSampleAlways) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    What what = test::what_of(4);
    what.bad_samples = {OnError::kSkip, 2, {}};
    const test::Drive drive{8, 3, {3, 9, 14, 15}};
    const test::Outcome got = outcome(what, EpochOrder(30), {2, 0, 0, {}}, drive, seed);
    ASSERT_EQ(got.failures.size(), 1U);
    EXPECT_EQ(got.failures[0].code, Code::kBadSample);
    EXPECT_EQ(
        got.failures[0].message(),
        "sample 14 (path), read: 3 bad samples in epoch 2 are more than max_errors allows; the "
        "last one: is broken");
    EXPECT_EQ(got.batches.size(), 3U) << "12 good ones come before sample 14";
  }
}

TEST_F(StrictRun, TheBudgetMayBeAShareOfTheDataSet) {
  for (const auto& [share, fails] :
       {std::pair{0.1, false}, {0.09, true}, {0.0, true}, {1.0, false}}) {
    What what = test::what_of(5);
    what.bad_samples = {OnError::kSkip, {}, share};
    const test::Outcome got = outcome(what, EpochOrder(20), {}, {4, 2, {3, 8}}, 1);
    EXPECT_EQ(!got.failures.empty(), fails) << share;
  }
}

TEST_F(StrictRun, AnEpochOfBadSamplesIsAnError) {
  What what = test::what_of(4);
  what.bad_samples.policy = OnError::kSkip;
  const test::Outcome got = outcome(what, EpochOrder(3), {}, {2, 2, {0, 1, 2}}, 1);
  EXPECT_TRUE(got.batches.empty());
  ASSERT_EQ(got.failures.size(), 1U);
  EXPECT_EQ(got.failures[0].message(), "all 3 samples of the epoch are bad");
}

TEST_F(StrictRun, OtherFailuresEndTheEpochUnderEveryPolicy) {
  for (const OnError policy : {OnError::kRaise, OnError::kSkip, OnError::kSubstitute}) {
    What what = test::what_of(2);
    what.bad_samples.policy = policy;
    const auto run = make_strict_run(what, *pool_, EpochOrder(4), {});
    const Ticket ticket = run->issue();
    run->fail(ticket, {Code::kInternal, "a defect", 0, {}, {}});
    ASSERT_EQ(run->finished.size(), 1U);
    EXPECT_EQ(run->finished.front().failure().code, Code::kInternal);
    EXPECT_TRUE(run->all_issued());
    EXPECT_TRUE(run->failed());
  }
}

TEST_F(StrictRun, ListsWhatItLeftOut) {
  What what = test::what_of(2);
  what.bad_samples.policy = OnError::kSkip;
  const auto run = make_strict_run(what, *pool_, EpochOrder(4), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(run->issue());
  run->fail(tickets[2], test::bad_sample(2));
  EXPECT_TRUE(run->skipped_positions().empty()) << "only once all before it are known";
  run->fail(tickets[0], test::bad_sample(0));
  EXPECT_THAT(run->skipped_positions(), testing::ElementsAre(0));
  run->slot(tickets[1], "image", {DType::kU8, {1}});
  run->complete(tickets[1]);
  EXPECT_THAT(run->skipped_positions(), testing::ElementsAre(0, 2));
  const std::vector<Failure> skipped = run->take_skipped();
  ASSERT_EQ(skipped.size(), 2U);
  EXPECT_EQ(skipped[0].sample, 0);
  EXPECT_EQ(skipped[1].sample, 2);
  EXPECT_TRUE(run->take_skipped().empty());
}

// A sample that moves down into a batch of another shape ends the epoch like any other mismatch;
// the worker that brings it must not be hit by an exception.
TEST_F(StrictRun, AShapeThatDoesNotFitAfterAMoveIsAFailureOfTheEpoch) {
  What what = test::what_of(2);
  what.bad_samples.policy = OnError::kSkip;
  const auto run = make_strict_run(what, *pool_, EpochOrder(4), {});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(run->issue());
  run->slot(tickets[1], "image", {DType::kU8, {1}});
  run->slot(tickets[2], "image", {DType::kU8, {2}});  // alone in its batch so far
  run->complete(tickets[1]);
  run->complete(tickets[2]);
  ASSERT_NO_THROW(run->fail(tickets[0], test::bad_sample(0)));
  ASSERT_EQ(run->finished.size(), 1U);
  ASSERT_FALSE(run->finished.front().ok());
  EXPECT_THAT(run->finished.front().failure().message(),
              HasSubstr("samples 1 and 2 cannot be in one batch"));
}

TEST_F(StrictRun, AnEmptyEpochIsOver) {
  for (const std::int64_t size : {0, 3}) {
    What what = test::what_of(4);
    what.drop_last = true;
    const auto run = make_strict_run(what, *pool_, EpochOrder(size), {});
    EXPECT_TRUE(run->all_issued());
    EXPECT_TRUE(run->over());
  }
}

}  // namespace
}  // namespace cutwater
