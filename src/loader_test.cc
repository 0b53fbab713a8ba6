// SPDX-License-Identifier: Apache-2.0
// What a loader delivers. loader_state_test.cc: where it stands; loader_threads_test.cc: when it
// works.
#include "cutwater/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::MemorySource;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

TEST(Loader, BatchesHoldTheirSamples) {
  Loader loader(what_from(std::make_shared<MemorySource>(10), 4), with_threads(2));
  loader.begin();
  const std::int64_t sizes[] = {4, 4, 2};
  SampleId id = 0;
  for (std::int64_t index = 0; index < 3; ++index) {
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_EQ(batch->index, index);
    EXPECT_EQ(batch->size(), sizes[index]);
    const Batch::FieldView* image = batch->find("image");
    const Batch::FieldView* label = batch->find("label");
    ASSERT_TRUE(image != nullptr && label != nullptr);
    EXPECT_EQ(batch->find("sound"), nullptr);
    EXPECT_EQ(image->spec, (TensorSpec{DType::kU8, {sizes[index], 4}}));
    EXPECT_EQ(label->spec, (TensorSpec{DType::kI64, {sizes[index]}}));
    for (std::int64_t i = 0; i < sizes[index]; ++i, ++id) {
      EXPECT_EQ(batch->ids[static_cast<std::size_t>(i)], id);
      for (std::int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(image->data[4 * i + k], MemorySource::byte_of(id));
      std::int64_t value = 0;
      std::memcpy(&value, label->data + 8 * i, sizeof value);
      EXPECT_EQ(value, 10 * id);
    }
  }
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next()) << "the end stays the end";
}

TEST(Loader, TheStreamDoesNotDependOnThreadsOrPrefetch) {
  for (const bool drop_last : {false, true})
    for (const std::set<SampleId>& bad : {std::set<SampleId>{}, {0, 7, 8, 9, 36}}) {
      std::vector<Seen> expected;
      for (const int threads : {1, 2, 7})
        for (const std::int64_t prefetch : {1, 4}) {
          What what = what_from(faulty(37, bad), 5, "pixels(2, 3) | jitter");
          what.shuffle = true;
          what.seed = 11;
          what.drop_last = drop_last;
          what.bad_samples.policy = OnError::kSkip;
          Loader loader(std::move(what), with_threads(threads, prefetch));
          const std::vector<Seen> got = test::epochs(loader, 3);
          if (expected.empty()) expected = got;
          ASSERT_EQ(got, expected) << threads << " threads";
        }
      EXPECT_GT(expected.size(), 15U);
    }
}

TEST(Loader, EpochsAndSeedsDiffer) {
  const auto first_epochs = [](std::uint64_t seed) {
    What what = what_from(std::make_shared<MemorySource>(50), 10);
    what.shuffle = true;
    what.seed = seed;
    Loader loader(std::move(what), with_threads(2));
    return std::pair(test::ids_of(test::epochs(loader, 1)), test::ids_of(test::epochs(loader, 1)));
  };
  const auto [zero, one] = first_epochs(1);
  EXPECT_NE(zero, one);
  EXPECT_NE(zero, first_epochs(2).first);
  EXPECT_EQ(std::pair(zero, one), first_epochs(1));
}

TEST(Loader, ReadyDeliversTheSameSet) {
  for (const int threads : {1, 2, 7}) {
    What what = what_from(faulty(37, {3, 30}), 5);
    what.order = Order::kReady;
    what.shuffle = true;
    what.bad_samples.policy = OnError::kSkip;
    Loader loader(std::move(what), with_threads(threads));
    std::vector<SampleId> good = test::counted_to(37);
    std::erase_if(good, [](SampleId id) { return id == 3 || id == 30; });
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
      const std::vector<Seen> got = test::epochs(loader, 1);
      EXPECT_EQ(test::sorted_ids(got), good);
      for (const Seen& batch : got) {
        EXPECT_EQ(batch.epoch, epoch);
        for (std::size_t i = 0; i < batch.ids.size(); ++i)
          EXPECT_EQ(batch.fields[0][4 * i], MemorySource::byte_of(batch.ids[i]));
      }
    }
  }
}

TEST(Loader, BeginInTheMiddleDropsTheRest) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    What what = what_from(std::make_shared<MemorySource>(40), 3);
    what.order = order;
    Loader loader(std::move(what), with_threads(3));
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
      loader.begin();
      const std::optional<Batch> batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->epoch, epoch);
      EXPECT_EQ(batch->index, 0);
    }
    loader.begin();
    EXPECT_EQ(test::sorted_ids(test::rest_of_epoch(loader)), test::counted_to(40));
  }
}

TEST(Loader, StartsAtTheEpochThatWasSet) {
  What what = what_from(std::make_shared<MemorySource>(20), 5);
  what.shuffle = true;
  Loader loader(what, with_threads(2)), other(what, with_threads(1));
  const std::vector<Seen> expected = test::epochs(loader, 4);
  other.set_epoch(2);
  EXPECT_EQ(other.next_epoch(), 2U);
  EXPECT_EQ(other.state().epoch, 2U);
  const std::vector<Seen> got = test::epochs(other, 2);
  EXPECT_EQ(got, std::vector<Seen>(expected.begin() + 8, expected.end()));
  other.set_epoch(0);
  EXPECT_EQ(test::epochs(other, 1), std::vector<Seen>(expected.begin(), expected.begin() + 4));
}

// ---- bad samples ------------------------------------------------------------------------------

TEST(Loader, RaiseNamesTheSampleAndTheNextEpochIsAsIfNothingWere) {
  const auto source = faulty(10, {5});
  Loader loader(what_from(source, 2), with_threads(2));
  for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
    loader.begin();
    for (int i = 0; i < 2; ++i) {
      const std::optional<Batch> batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->epoch, epoch);
    }
    EXPECT_THAT([&] { loader.next(); },
                ThrowsMessage<Error>(StrEq("sample 5 (memory/5), read: is broken")));
    EXPECT_FALSE(loader.next()) << "the epoch has ended";
  }
}

TEST(Loader, SkippedSamplesAreListedOnce) {
  What what = what_from(faulty(10, {5, 7}), 2);
  what.bad_samples.policy = OnError::kSkip;
  Loader loader(std::move(what), with_threads(3));
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(test::ids_of(test::epochs(loader, 1)),
              (std::vector<SampleId>{0, 1, 2, 3, 4, 6, 8, 9}));
  const LoaderStats stats = loader.stats();
  ASSERT_EQ(stats.skipped.size(), 2U);
  EXPECT_EQ(stats.skipped[0].message(), "sample 5 (memory/5), read: is broken");
  EXPECT_EQ(stats.skipped[1].sample, 7);
}

TEST(Loader, ASubstituteIsTheNextGoodSample) {
  What what = what_from(faulty(8, {2, 3, 7}), 4);
  what.bad_samples.policy = OnError::kSubstitute;
  for (const Order order : {Order::kStrict, Order::kReady}) {
    what.order = order;
    Loader loader(what, with_threads(2));
    const std::vector<Seen> got = test::epochs(loader, 1);
    EXPECT_EQ(test::sorted_ids(got), (std::vector<SampleId>{0, 0, 1, 4, 4, 4, 5, 6}))
        << "round the end";
    if (order == Order::kStrict) {
      EXPECT_EQ(test::ids_of(got), (std::vector<SampleId>{0, 1, 4, 4, 4, 5, 6, 0}));
    }
    for (const Seen& batch : got)
      for (std::size_t i = 0; i < batch.ids.size(); ++i)
        EXPECT_EQ(batch.fields[0][4 * i], MemorySource::byte_of(batch.ids[i]));
    std::set<SampleId> substituted;  // the next epoch is on its way, too: each at least once
    for (const Failure& failure : loader.stats().substituted) substituted.insert(failure.sample);
    EXPECT_THAT(substituted, ElementsAre(2, 3, 7));
    EXPECT_TRUE(loader.stats().skipped.empty());
  }
}

TEST(Loader, WithoutAnySubstituteTheEpochFails) {
  What what = what_from(faulty(3, {0, 1, 2}), 2);
  what.bad_samples.policy = OnError::kSubstitute;
  Loader loader(std::move(what), with_threads(1));
  loader.begin();
  EXPECT_THAT([&] { loader.next(); }, ThrowsMessage<Error>(HasSubstr("is broken")));
}

TEST(Loader, AnEpochOfBadSamplesIsAnError) {
  What what = what_from(faulty(3, {0, 1, 2}), 2);
  what.bad_samples.policy = OnError::kSkip;
  Loader loader(std::move(what), with_threads(2));
  loader.begin();
  EXPECT_THAT([&] { loader.next(); },
              ThrowsMessage<Error>(StrEq("all 3 samples of the epoch are bad")));
}

TEST(Loader, ABadOpNamesItselfAndThePath) {
  Loader loader(what_from(std::make_shared<MemorySource>(4), 2, "pixels(2, 2) | refuses"),
                with_threads(2));
  loader.begin();
  EXPECT_THAT([&] { loader.next(); },
              ThrowsMessage<Error>(StrEq("sample 0 (memory/0), refuses: cannot be")));
}

// ---- edges ------------------------------------------------------------------------------------

TEST(Loader, AnEmptyEpochEndsAtOnceAgainAndAgain) {
  for (const Order order : {Order::kStrict, Order::kReady})
    for (const std::int64_t size : {0, 3}) {
      What what = what_from(std::make_shared<MemorySource>(size), 4);
      what.drop_last = true;
      what.order = order;
      Loader loader(std::move(what), with_threads(2));
      EXPECT_EQ(loader.batches_per_epoch(), 0);
      for (int epoch = 0; epoch < 5; ++epoch) {
        loader.begin();
        EXPECT_FALSE(loader.next());
      }
      EXPECT_EQ(loader.state().epoch, 5U);
    }
}

TEST(Loader, CountsItsBatches) {
  struct {
    std::int64_t size, batch;
    bool drop_last;
    std::int64_t batches;
  } const table[] = {
      {0, 4, false, 0}, {1, 4, false, 1}, {8, 4, false, 2}, {9, 4, false, 3}, {9, 4, true, 2}};
  for (const auto& row : table) {
    What what = what_from(std::make_shared<MemorySource>(row.size), row.batch);
    what.drop_last = row.drop_last;
    Loader loader(std::move(what), with_threads(2));
    EXPECT_EQ(loader.batches_per_epoch(), row.batches);
    EXPECT_EQ(std::ssize(test::epochs(loader, 1)), row.batches);
  }
}

// An empty file is a tensor like any other: without ops it arrives as one of no bytes.
TEST(Loader, DeliversEmptyTensors) {
  for (const Order order : {Order::kStrict, Order::kReady}) {
    What what = what_from(std::make_shared<MemorySource>(4, 0), 2);
    what.order = order;
    Loader loader(std::move(what), with_threads(1));
    loader.begin();
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    const Batch::FieldView* image = batch->find("image");
    ASSERT_NE(image, nullptr) << "the field is missing from the batch";
    EXPECT_EQ(image->spec, (TensorSpec{DType::kU8, {2, 0}}));
  }
}

TEST(Loader, StatsAddUp) {
  Loader loader(what_from(std::make_shared<MemorySource>(20), 8, "pixels(2, 2) | jitter"),
                with_threads(2));
  EXPECT_EQ(loader.stats().bound_by, "nothing yet");
  EXPECT_EQ(loader.stats().samples, 0);
  for (int epoch = 0; epoch < 2; ++epoch) test::epochs(loader, 1);
  loader.close();
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.samples, 40);
  EXPECT_EQ(stats.batches, 6);
  EXPECT_GE(stats.bytes_read, 40U * 4) << "the next epoch is on its way, too";
  EXPECT_EQ(stats.bytes_read % 4, 0U);
  EXPECT_EQ(stats.threads, 2);
  EXPECT_EQ(stats.memory_limit, std::size_t{16} << 20);
  EXPECT_GT(stats.memory_peak, 0U);
  EXPECT_GE(stats.elapsed_seconds, stats.first_batch_seconds);
  EXPECT_GE(stats.first_batch_seconds, 0);
  ASSERT_EQ(stats.ops.size(), 2U);
  EXPECT_EQ(stats.ops[0].name, "pixels");
  EXPECT_EQ(stats.ops[1].name, "jitter");
  for (const NamedOpTime& op : stats.ops) {
    EXPECT_GE(op.calls, 40U);
    EXPECT_LE(op.calls, stats.bytes_read / 4) << "close() may have cut one short";
  }
  EXPECT_TRUE(stats.skipped.empty());
  EXPECT_NE(stats.bound_by, "nothing yet");
}

TEST(Loader, RefusesOptionsByName) {
  const auto source = std::make_shared<MemorySource>(4);
  struct {
    std::function<void(What&, HowFast&)> change;
    const char* message;
  } const table[] = {
      {[](What& what, HowFast&) { what.source.reset(); }, "a loader needs a source"},
      {[](What& what, HowFast&) { what.batch_size = 0; }, "batch_size must be at least 1, got 0"},
      {[](What& what, HowFast&) { what.max_late_batches = 0; },
       "max_late_batches must be at least 1, got 0"},
      {[](What& what, HowFast&) { what.bad_samples.max_count = -1; },
       "max_errors must not be negative, got -1"},
      {[](What& what, HowFast&) { what.bad_samples.max_share = 1.5; },
       "max_errors as a share must be in 0..1, got 1.500000"},
      {[](What&, HowFast& how) { how.threads = 0; }, "num_workers must be in 1..1024, got 0"},
      {[](What&, HowFast& how) { how.prefetch_batches = 0; },
       "prefetch must be at least 1 batch, got 0"},
      {[](What&, HowFast& how) { how.memory_limit = 1000; },
       "memory_limit must be at least 1 MiB, got 1000 bytes"},
  };
  for (const auto& row : table) {
    What what = what_from(source, 2);
    HowFast how = with_threads(1);
    row.change(what, how);
    EXPECT_THAT([&] { Loader(what, how); }, ThrowsMessage<Error>(StrEq(row.message)));
  }
}

TEST(Loader, ABatchThatCanNeverFitSaysSo) {
  HowFast how = with_threads(2);
  how.memory_limit = std::size_t{1} << 20;
  Loader loader(what_from(std::make_shared<MemorySource>(64, 100'000), 32), how);
  loader.begin();
  EXPECT_THAT([&] { loader.next(); },
              ThrowsMessage<Error>(
                  HasSubstr("a batch of 32 x uint8 100000 takes 3200000 bytes, more than "
                            "memory_limit 1048576; raise memory_limit or lower batch_size")));
}

}  // namespace
}  // namespace cutwater
