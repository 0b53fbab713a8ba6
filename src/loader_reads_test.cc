// SPDX-License-Identifier: Apache-2.0
// Many reads in flight: the same stream, the same errors, no hang, whatever is in the ring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>

#include "cutwater/loader.h"
#include "run/ring.h"
#include "run/test_loader.h"
#include "run/test_slow_source.h"
#include "source/test_tar.h"

namespace cutwater {
namespace {

using test::Seen;
using test::SlowSource;
using test::some_files;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class LoaderReads : public TarTest {
 protected:
  void SetUp() override {
    if (const std::string why = Ring::missing(); !why.empty()) GTEST_SKIP() << why;
  }

  static HowFast in_flight(int reads, int threads = 2) {
    HowFast how = with_threads(threads);
    how.reads_in_flight = reads;
    return how;
  }
  static What shuffled(std::shared_ptr<const Source> source, std::int64_t batch = 4) {
    What what = what_from(std::move(source), batch);
    what.shuffle = true;
    what.seed = 9;
    return what;
  }
};

const std::map<SampleId, SlowSource::Fault> kFaults = {{3, test::gone},
                                                       {4, test::is_a_folder},
                                                       {11, test::ends_early},
                                                       {20, test::unreadable},
                                                       {21, test::absurdly_large}};

TEST_F(LoaderReads, TheStreamIsTheSame) {
  const auto source = std::make_shared<SlowSource>(some_files(folder_, 37, 3000));
  Loader plain(shuffled(source), in_flight(0));
  const std::vector<Seen> expected = test::epochs(plain, 3);
  EXPECT_EQ(plain.stats().reads_queued, 0u);
  for (const int threads : {1, 3})
    for (const int reads : {1, 5, 64}) {
      Loader loader(shuffled(source), in_flight(reads, threads));
      EXPECT_EQ(test::epochs(loader, 3), expected) << threads << " threads, " << reads << " reads";
      EXPECT_GE(loader.stats().reads_queued, 3u * 37u) << "an open and a read each";
      EXPECT_GE(loader.stats().bytes_read, 3u * 37u * 3000u);
    }
}

TEST_F(LoaderReads, AlsoFromShards) {
  std::string bytes;
  for (int i = 0; i < 30; ++i)
    bytes += member(std::to_string(i) + ".jpg", std::string(2000, static_cast<char>('a' + i))) +
             member(std::to_string(i) + ".cls", std::to_string(i % 7));
  const auto shard = open(bytes + kEnd);
  Loader plain(shuffled(shard), in_flight(0)),
      ring(shuffled(std::make_shared<SlowSource>(shard)), in_flight(8));
  EXPECT_EQ(test::epochs(ring, 2), test::epochs(plain, 2));
  EXPECT_GE(ring.stats().reads_queued, 50u) << "what threads have counted last may come later";
}

TEST_F(LoaderReads, ReadyOrderDeliversEachOnce) {
  What what = shuffled(std::make_shared<SlowSource>(some_files(folder_, 37, 3000)));
  what.order = Order::kReady;
  Loader loader(std::move(what), in_flight(16, 3));
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(test::sorted_ids(test::epochs(loader, 1)), test::counted_to(37));
}

TEST_F(LoaderReads, BadSamplesAreTreatedAsEver) {
  const auto source = std::make_shared<SlowSource>(some_files(folder_, 37, 300), kFaults);
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute}) {
    What what = shuffled(source);
    what.bad_samples.policy = policy;
    Loader plain(what, in_flight(0)), ring(what, in_flight(8));
    EXPECT_EQ(test::epochs(ring, 2), test::epochs(plain, 2));
    const auto messages = [](const Loader& loader) {
      std::vector<std::string> all;
      for (const Failure& failure : loader.stats().skipped) all.push_back(failure.message());
      for (const Failure& failure : loader.stats().substituted) all.push_back(failure.message());
      return all;
    };
    EXPECT_EQ(messages(ring), messages(plain));
    EXPECT_EQ(messages(ring).size(), kFaults.size());
  }
  Loader strict(what_from(source, 37), in_flight(8));
  strict.begin();
  EXPECT_THAT([&] { strict.next(); }, ThrowsMessage<Error>(HasSubstr("No such file")));
}

// Reads in flight hold memory that only a thread can free. If one waited for it, all would.
TEST_F(LoaderReads, LittleMemoryIsEnough) {
  const auto source = std::make_shared<SlowSource>(some_files(folder_, 40, 100'000));
  for (const int threads : {1, 2, 5}) {
    HowFast how = in_flight(32, threads);
    how.memory_limit = 1 << 20;  // a quarter of it, two files, may be read at a time
    Loader loader(shuffled(source, 2), how);
    EXPECT_EQ(test::sorted_ids(test::epochs(loader, 1)), test::counted_to(40));
    EXPECT_LE(loader.stats().memory_peak, std::size_t{1} << 20);
  }
}

TEST_F(LoaderReads, SubstitutesDoNotWaitForReadsInFlight) {
  std::map<SampleId, SlowSource::Fault> faults;
  for (SampleId id = 0; id < 40; id += 2) faults[id] = test::gone;
  What what = shuffled(std::make_shared<SlowSource>(some_files(folder_, 40, 100'000), faults), 2);
  what.bad_samples.policy = OnError::kSubstitute;
  HowFast how = in_flight(32, 1);
  how.memory_limit = 1 << 20;
  Loader loader(std::move(what), how);
  EXPECT_EQ(test::ids_of(test::epochs(loader, 1)).size(), 40u);
}

TEST_F(LoaderReads, ClosesAndRestartsInMidFlight) {
  const auto source = std::make_shared<SlowSource>(some_files(folder_, 64, 20'000));
  Loader whole(shuffled(source), in_flight(0));
  whole.set_epoch(7);
  const std::vector<Seen> expected = test::epochs(whole, 1);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (int batches = 0; batches < 8; ++batches) {
    Loader loader(shuffled(source), in_flight(32, 1 + batches % 3));
    for (std::uint32_t restarts = 0; restarts < 3; ++restarts) {
      loader.set_epoch(7 + restarts);
      loader.begin();
      for (int i = 0; i < batches; ++i) ASSERT_TRUE(loader.next());
    }
    if (batches % 2 == 0) {
      loader.set_epoch(7);
      loader.begin();
      EXPECT_EQ(test::rest_of_epoch(loader), expected);
      loader.begin();
    }
    if (batches % 3 == 0) loader.close();
  }
  EXPECT_LE(descriptors(), before);
}

TEST_F(LoaderReads, FilesInMemoryNeedNoRing) {
  // Just written: in the page cache, unless the file system cannot say.
  Loader loader(shuffled(some_files(folder_, 20, 3000)), in_flight(8));
  EXPECT_EQ(test::sorted_ids(test::epochs(loader, 1)), test::counted_to(20));
}

TEST(LoaderOptions, RefusesImpossibleReads) {
  HowFast how;
  how.reads_in_flight = -1;
  EXPECT_THAT([&] { Loader loader(what_from(test::faulty(4, {}), 2), how); },
              ThrowsMessage<Error>(HasSubstr("reads_in_flight must be in 0..4096, got -1")));
}

}  // namespace
}  // namespace cutwater
