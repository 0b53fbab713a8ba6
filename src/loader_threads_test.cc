// SPDX-License-Identifier: Apache-2.0
// When a loader works: ahead of its consumer, within its limits, until it is closed. Tests order
// events by holding up reads, never by time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <future>
#include <set>
#include <thread>

#include "cutwater/loader.h"
#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::FaultySource;
using test::MemorySource;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

std::shared_ptr<FaultySource> watched(std::int64_t size, std::int64_t bytes = 4) {
  return std::make_shared<FaultySource>(std::make_shared<MemorySource>(size, bytes));
}

std::set<SampleId> all_of(std::int64_t size) {
  const std::vector<SampleId> ids = test::counted_to(size);
  return {ids.begin(), ids.end()};
}

TEST(LoaderThreads, ClosingWakesAConsumerThatWaits) {
  const auto source = watched(8);
  Loader loader(what_from(source, 2), with_threads(2));
  const FaultySource::Hold hold(*source, all_of(8));
  loader.begin();
  std::future<void> consumer = std::async(std::launch::async, [&] { loader.next(); });
  source->wait_for_reads(2);  // both threads are held up in a read
  loader.close();
  EXPECT_THAT([&] { consumer.get(); }, ThrowsMessage<Error>(StrEq("the loader was closed")));
}

TEST(LoaderThreads, ClosingBeginsNoNewSampleAndTheDestructorWaitsForThoseInTheMaking) {
  const auto source = watched(8);
  std::optional<Loader> loader(std::in_place, what_from(source, 2), with_threads(2));
  FaultySource::Hold hold(*source, all_of(8));
  loader->begin();
  source->wait_for_reads(2);
  loader->close();
  std::jthread releaser([&] { hold.release(); });
  loader.reset();  // hangs where a thread is not woken
  EXPECT_EQ(source->reads().size(), 2U);
}

TEST(LoaderThreads, AfterClosingNextAlwaysThrows) {
  Loader loader(what_from(watched(8), 2), with_threads(2));
  loader.begin();
  ASSERT_TRUE(loader.next());
  loader.close();
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT([&] { loader.next(); }, ThrowsMessage<Error>(StrEq("the loader was closed"))) << i;
}

TEST(LoaderThreads, ClosedBeforeItBeganALoaderStaysClosed) {
  const auto source = watched(8);
  Loader loader(what_from(source, 2), with_threads(2));
  loader.close();
  EXPECT_THAT(
      [&] {
        loader.begin();
        loader.next();
      },
      ThrowsMessage<Error>(HasSubstr("the loader was closed")));
  EXPECT_TRUE(source->reads().empty());
}

// One sample a thread and the open batches: no consumer, no more reads.
TEST(LoaderThreads, ReadsNoFurtherAheadThanThePrefetchWindow) {
  for (const Order order : {Order::kStrict, Order::kReady})
    for (const std::int64_t prefetch : {1, 3}) {
      const auto source = watched(1000);
      {
        What what = what_from(source, 4);
        what.order = order;
        Loader loader(std::move(what), with_threads(3, prefetch));
        loader.begin();
        source->wait_for_reads(static_cast<std::size_t>(4 * prefetch));
        ASSERT_TRUE(loader.next());
        source->wait_for_reads(static_cast<std::size_t>(4 * prefetch + 4));
      }
      EXPECT_EQ(source->reads().size(), static_cast<std::size_t>(4 * prefetch + 4));
    }
}

TEST(LoaderThreads, TheNextEpochIsBegunBeforeThisOneEnds) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    const auto source = watched(8);
    What what = what_from(source, 3);
    what.order = order;
    Loader loader(std::move(what), with_threads(2, 5));
    loader.begin();
    source->wait_for_reads(8 + 3);  // nothing is consumed yet
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      if (epoch > 0) loader.begin();
      const std::vector<Seen> got = test::rest_of_epoch(loader);
      EXPECT_EQ(test::sorted_ids(got), test::counted_to(8)) << "batches never mix epochs";
      for (const Seen& batch : got) EXPECT_EQ(batch.epoch, epoch);
    }
  }
}

TEST(LoaderThreads, StrictWaitsForTheSlowSampleReadyDoesNot) {
  const auto source = watched(12);
  for (const Order order : {Order::kReady, Order::kStrict}) {
    What what = what_from(source, 2);
    what.order = order;
    Loader loader(std::move(what), with_threads(2, 4));
    FaultySource::Hold hold(*source, {0});
    loader.begin();
    if (order == Order::kReady) {
      EXPECT_EQ(test::seen(*loader.next()).ids, (std::vector<SampleId>{1, 2}));
    } else {
      EXPECT_FALSE(loader.wait(std::chrono::nanoseconds(0)));
    }
    hold.release();
    EXPECT_EQ(test::rest_of_epoch(loader).size(), order == Order::kReady ? 5U : 6U);
  }
}

TEST(LoaderThreads, WaitTellsWhetherNextWould) {
  const auto source = watched(4);
  Loader loader(what_from(source, 2), with_threads(1));
  EXPECT_TRUE(loader.wait(std::chrono::nanoseconds(0))) << "outside an epoch nothing is waited for";
  FaultySource::Hold hold(*source, {1});
  loader.begin();
  EXPECT_FALSE(loader.wait(std::chrono::nanoseconds(0)));
  hold.release();
  while (!loader.wait(std::chrono::seconds(1))) {
  }
  EXPECT_TRUE(loader.next());
}

TEST(LoaderThreads, StaysWithinItsMemory) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  for (const Order order : {Order::kStrict, Order::kReady}) {
    HowFast how = with_threads(3, 50);
    how.memory_limit = kLimit;
    const auto source = watched(200, 32 << 10);
    What what = what_from(source, 4);  // a batch is 128 KiB
    what.order = order;
    Loader loader(std::move(what), how);
    EXPECT_EQ(test::epochs(loader, 2).size(), 100U);
    const LoaderStats stats = loader.stats();
    EXPECT_LE(stats.memory_peak, kLimit);
    EXPECT_GT(stats.memory_peak, kLimit / 8) << "and uses it";
  }
}

TEST(LoaderThreads, WorkingMemoryIsWaitedForNotExceeded) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  HowFast how = with_threads(6, 2);
  how.memory_limit = kLimit;
  // Each sample needs 2 x 270 kB on the way, six threads would need three times the limit.
  Loader loader(what_from(watched(40), 2, "pixels(300, 300) | opaque | window(0, 0, 2, 2)"), how);
  EXPECT_EQ(test::epochs(loader, 2).size(), 40U);
  EXPECT_LE(loader.stats().memory_peak, kLimit + (kLimit >> 2))
      << "blocks are a quarter too large at most";
}

TEST(LoaderThreads, ASampleThatCanNeverFitIsABadSample) {
  HowFast how = with_threads(2);
  how.memory_limit = std::size_t{1} << 20;
  Loader loader(what_from(watched(4), 2, "pixels(1000, 1000) | opaque | window(0, 0, 2, 2)"), how);
  loader.begin();
  EXPECT_THAT(
      [&] { loader.next(); },
      ThrowsMessage<Error>(HasSubstr("bytes of working memory, more than memory_limit 1048576")));
}

TEST(LoaderThreads, ABatchIsTheUsersForEver) {
  std::vector<std::pair<Batch, Seen>> kept;
  {
    Loader loader(what_from(watched(60, 5000), 4), with_threads(3));
    for (int epoch = 0; epoch < 2; ++epoch) {
      loader.begin();
      while (std::optional<Batch> batch = loader.next())
        kept.emplace_back(*batch, test::seen(*batch));
    }
  }
  EXPECT_EQ(kept.size(), 30U);
  for (const auto& [batch, then] : kept) EXPECT_EQ(test::seen(batch), then);
}

TEST(LoaderThreads, RestartingAgainAndAgainLosesNothing) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    What what = what_from(watched(50), 4);
    what.order = order;
    what.shuffle = true;
    Loader loader(std::move(what), with_threads(4));
    for (int i = 0; i < 100; ++i) {
      loader.begin();
      for (int k = 0; k < i % 4; ++k) ASSERT_TRUE(loader.next());
    }
    loader.begin();
    EXPECT_EQ(test::sorted_ids(test::rest_of_epoch(loader)), test::counted_to(50));
  }
}

// The two methods that any thread may call, from before the first epoch on.
TEST(LoaderThreads, StatsAndCloseMayComeFromAnyThread) {
  Loader loader(what_from(watched(40), 4), with_threads(2));
  std::atomic<bool> done = false;
  std::jthread watcher([&] {
    while (!done) EXPECT_GE(loader.stats().samples, 0);
  });
  test::epochs(loader, 3);
  std::jthread closer([&] { loader.close(); });
  closer.join();
  done = true;
  EXPECT_THAT(
      [&] {
        loader.begin();
        loader.next();
      },
      ThrowsMessage<Error>(HasSubstr("the loader was closed")));
}

TEST(LoaderThreads, MovesWithItsWork) {
  Loader first(what_from(watched(12), 4), with_threads(2));
  first.begin();
  ASSERT_TRUE(first.next());
  Loader second = std::move(first);
  EXPECT_EQ(test::rest_of_epoch(second).size(), 2U);
}

// A source of somebody else's may throw where it should return: that ends the epoch, not the
// process.
class ThrowingSource : public MemorySource {
 public:
  using MemorySource::MemorySource;
  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    if (id == 2) throw Error(Code::kBadSample, "thrown");
    return MemorySource::read(id, into);
  }
};

TEST(LoaderDeathTest, ASourceThatThrowsFailsTheSampleOnly) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Loader loader(what_from(std::make_shared<ThrowingSource>(6), 2), with_threads(2));
        loader.begin();
        loader.next();
        try {
          loader.next();
        } catch (const Error& error) {
          std::_Exit(std::string_view(error.what()) == "sample 2 (memory/2), read: thrown" ? 0 : 1);
        }
        std::_Exit(2);
      },
      testing::ExitedWithCode(0), "");
}

TEST(LoaderThreads, AForkedChildIsToldToMakeItsOwn) {
  Loader loader(what_from(watched(12), 4), with_threads(2));
  loader.begin();
  ASSERT_TRUE(loader.next());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    try {
      loader.begin();
    } catch (const Error& error) {
      _exit(std::string_view(error.what()).find("make the loader after the fork") !=
                    std::string_view::npos
                ? 7
                : 8);
    }
    _exit(9);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

}  // namespace
}  // namespace cutwater
