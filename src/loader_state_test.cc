// SPDX-License-Identifier: Apache-2.0
// Where a loader stands: a checkpoint taken anywhere continues exactly there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cutwater/loader.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::FaultySource;
using test::MemorySource;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(LoaderState, ContinuesAtEveryBatch) {
  const auto make = [] {
    What what = what_from(faulty(23, {2, 3, 11, 22}), 4, "pixels(2, 3) | jitter");
    what.shuffle = true;
    what.seed = 3;
    what.bad_samples.policy = OnError::kSkip;
    return Loader(std::move(what), with_threads(2));
  };
  Loader whole = make();
  const std::vector<Seen> expected = test::epochs(whole, 2);
  std::size_t taken = 0;
  Loader walker = make();
  for (int epoch = 0; epoch < 2; ++epoch) {
    walker.begin();
    for (;;) {
      const LoaderState state = walker.state();
      Loader resumed = make();
      resumed.restore(state);
      EXPECT_EQ(resumed.state().position, state.position);
      resumed.begin();
      std::vector<Seen> got = test::rest_of_epoch(resumed);
      if (epoch == 0)
        for (Seen& batch : test::epochs(resumed, 1)) got.push_back(std::move(batch));
      ASSERT_EQ(got, std::vector<Seen>(expected.begin() + static_cast<std::ptrdiff_t>(taken),
                                       expected.end()))
          << "after " << taken << " batches";
      if (!walker.next()) break;
      ++taken;
    }
  }
  EXPECT_EQ(taken, expected.size());
}

TEST(LoaderState, ReadyMissesNothingAndRepeatsNothing) {
  for (std::size_t stop = 0; stop < 8; ++stop) {
    const auto source = faulty(31, {4});
    What what = what_from(source, 4);
    what.order = Order::kReady;
    what.bad_samples.policy = OnError::kSkip;
    Loader loader(what, with_threads(3));
    FaultySource::Hold hold(*source, {0});  // late: what comes before it is out of order
    loader.begin();
    std::vector<Seen> got;
    for (std::size_t i = 0; i < std::min<std::size_t>(stop, 2); ++i)
      got.push_back(test::seen(*loader.next()));
    if (stop > 2) {
      hold.release();
      while (got.size() < stop) {
        const std::optional<Batch> batch = loader.next();
        if (!batch) break;
        got.push_back(test::seen(*batch));
      }
    }
    const LoaderState state = loader.state();
    if (stop == 2) {
      EXPECT_EQ(state.position, 0);
      EXPECT_GE(state.done_beyond.size(), 2U) << "of four samples each";
    }
    What again = what_from(faulty(31, {4}), 4);
    again.order = Order::kReady;
    again.bad_samples.policy = OnError::kSkip;
    Loader resumed(std::move(again), with_threads(2));
    resumed.restore(state);
    resumed.begin();
    if (state.epoch == 0)
      for (Seen& batch : test::rest_of_epoch(resumed)) got.push_back(std::move(batch));
    std::vector<SampleId> good = test::counted_to(31);
    std::erase(good, 4);
    EXPECT_EQ(test::sorted_ids(got), good) << "stopped after " << stop;
  }
}

// A checkpoint may be taken after things went wrong: what was delivered stays delivered.
TEST(LoaderState, OfReadyOrderSurvivesTheEndOfWork) {
  const auto source = faulty(12, {});
  What what = what_from(source, 2);
  what.order = Order::kReady;
  Loader loader(std::move(what), with_threads(2));
  FaultySource::Hold hold(*source, {0});
  loader.begin();
  ASSERT_TRUE(loader.next());
  ASSERT_TRUE(loader.next());
  const LoaderState before = loader.state();
  EXPECT_EQ(before.position, 0);
  EXPECT_EQ(before.done_beyond, "f") << "1, 2, 3 and 4";
  loader.close();
  EXPECT_THROW(loader.next(), Error);
  const LoaderState after = loader.state();
  EXPECT_EQ(after.position, before.position);
  EXPECT_EQ(after.batch, before.batch);
  EXPECT_EQ(after.done_beyond, before.done_beyond);
}

TEST(LoaderState, AtTheEndIsTheStartOfTheNextEpoch) {
  Loader loader(what_from(std::make_shared<MemorySource>(6), 4), with_threads(1));
  EXPECT_EQ(loader.state().epoch, 0U);
  loader.begin();
  while (loader.next()) {
  }
  const LoaderState state = loader.state();
  EXPECT_EQ(state.epoch, 1U);
  EXPECT_EQ(state.position, 0);
  EXPECT_EQ(state.batch, 0);
}

TEST(LoaderState, IsRefusedByAnotherStream) {
  const auto make = [](std::int64_t size, std::int64_t batch, std::uint64_t seed,
                       const char* pipeline) {
    What what = what_from(std::make_shared<MemorySource>(size), batch, pipeline);
    what.seed = seed;
    return Loader(std::move(what), with_threads(1));
  };
  const LoaderState state = make(8, 2, 1, "").state();
  EXPECT_THAT(
      [&] { make(8, 4, 1, "").restore(state); },
      ThrowsMessage<Error>(StrEq("the saved state is of another stream, it differs in batch_size "
                                 "(saved 2, now 4); make the loader as it was when the state was "
                                 "saved")));
  EXPECT_THAT([&] { make(8, 2, 2, "").restore(state); },
              ThrowsMessage<Error>(HasSubstr("seed (saved 1, now 2)")));
  EXPECT_THAT([&] { make(9, 2, 1, "").restore(state); },
              ThrowsMessage<Error>(HasSubstr("samples (saved 8, now 9)")));
  EXPECT_THAT([&] { make(8, 2, 1, "pixels(1, 1)").restore(state); },
              ThrowsMessage<Error>(HasSubstr("pipeline (saved ")));
  make(8, 2, 1, "").restore(state);
}

TEST(LoaderState, IsRefusedWhenDamaged) {
  What what = what_from(std::make_shared<MemorySource>(8), 2);
  what.order = Order::kReady;
  Loader loader(std::move(what), with_threads(1));
  const LoaderState good = loader.state();
  std::vector<LoaderState> bad(6, good);
  bad[0].position = -1;
  bad[1].position = 9;
  bad[2].batch = -1;
  bad[3].done_beyond = "g";
  bad[4].done_beyond = "08";
  bad[5].position = 5;
  bad[5].done_beyond = "4";
  for (const LoaderState& state : bad)
    EXPECT_THAT([&] { loader.restore(state); },
                ThrowsMessage<Error>(HasSubstr("the saved state is damaged")));
}

}  // namespace
}  // namespace cutwater
