// SPDX-License-Identifier: Apache-2.0
// Samples held at a cut: the same stream as from their source, in less work.
#include "cutwater/hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_loader.h"

namespace cutwater {
namespace {

using test::faulty;
using test::FaultySource;
using test::MemorySource;
using test::Seen;
using test::test_table;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::string_view kChain = "pixels(6, 5) | window(1, 1, 4, 3) | jitter | opaque";

Pipeline chain() { return Pipeline::parse(kChain, test_table()); }

What what_of(std::shared_ptr<const Source> source, OnError policy = OnError::kRaise) {
  What what = what_from(std::move(source), 4, kChain);
  what.shuffle = true;
  what.seed = 5;
  what.bad_samples.policy = policy;
  return what;
}

std::vector<Seen> stream_of(std::shared_ptr<const Source> source, OnError policy = OnError::kRaise,
                            HowFast how = with_threads(2)) {
  Loader loader(what_of(std::move(source), policy), how);
  return test::epochs(loader, 2);
}

TEST(Hold, EveryStableCutGivesTheSameStream) {
  const auto source = std::make_shared<MemorySource>(23);
  const std::vector<Seen> expected = stream_of(source);
  for (Cut cut = 0; cut <= chain().frontier(); ++cut)
    for (const int threads : {1, 3}) {
      const auto held = hold_in_memory(source, chain(), cut, {.threads = threads});
      EXPECT_EQ(held->cut(), cut);
      EXPECT_EQ(held->identity(), source->identity());
      EXPECT_EQ(held->label(7), source->label(7));
      EXPECT_EQ(held->path(7), source->path(7));
      EXPECT_EQ(stream_of(held), expected) << "cut " << cut;
      HowFast unfused = with_threads(3);
      unfused.fuse = false;
      EXPECT_EQ(stream_of(held, OnError::kRaise, unfused), expected) << "cut " << cut;
    }
}

TEST(Hold, StepByStepIsTheSameAsAtOnce) {
  const auto source = std::make_shared<MemorySource>(9);
  const auto first = hold_in_memory(source, chain(), 1);
  EXPECT_EQ(stream_of(hold_in_memory(first, chain(), 2)), stream_of(source));
}

TEST(Hold, ReadsEverySampleOnce) {
  const auto source = faulty(17, {});
  const auto held = hold_in_memory(source, chain(), 2, {.threads = 2});
  stream_of(held);
  std::vector<SampleId> reads = source->reads();
  std::ranges::sort(reads);
  EXPECT_EQ(reads, test::counted_to(17));
}

TEST(Hold, BadSamplesAreTreatedAsEver) {
  const auto source = faulty(23, {0, 3, 4, 22});
  const auto held = hold_in_memory(source, chain(), 2, {.threads = 2});
  for (const OnError policy : {OnError::kSkip, OnError::kSubstitute})
    EXPECT_EQ(stream_of(held, policy), stream_of(source, policy));
  Loader loader(what_of(held, OnError::kSkip), with_threads(2));
  test::epochs(loader, 1);
  const std::vector<Failure> skipped = loader.stats().skipped;
  ASSERT_EQ(skipped.size(), 4u);
  EXPECT_EQ(skipped[1].message(), source->read(3, *BufferPool::create(0)).failure().message());
  EXPECT_THAT([&] { stream_of(held); }, ThrowsMessage<Error>(HasSubstr("is broken")));
}

TEST(Hold, AStateOfOneIsAStateOfTheOther) {
  const auto source = std::make_shared<MemorySource>(23);
  const auto held = hold_in_memory(source, chain(), 2);
  Loader before(what_of(source), with_threads(2)), after(what_of(held), with_threads(1));
  before.begin();
  ASSERT_TRUE(before.next() && before.next());
  after.restore(before.state());
  after.begin();
  EXPECT_EQ(test::rest_of_epoch(after), test::rest_of_epoch(before));
}

TEST(Hold, ABatchOutlivesTheSource) {
  std::optional<Batch> batch;
  std::vector<std::uint8_t> expected;
  {
    Loader loader(what_from(
        hold_in_memory(std::make_shared<MemorySource>(4, 1000), Pipeline(test_table()), 0), 4));
    loader.begin();
    batch = loader.next();
    for (const SampleId id : batch->ids)
      expected.insert(expected.end(), 1000, MemorySource::byte_of(id));
  }
  EXPECT_EQ(test::seen(*batch).fields.at(0), expected);
}

TEST(Hold, RefusesWhatIsRandomTooLargeOrPast) {
  const auto source = std::make_shared<MemorySource>(100);
  const auto hold = [&](Cut cut, HoldOptions options = {}) {
    return [=] { hold_in_memory(source, chain(), cut, options); };
  };
  EXPECT_THAT(hold(3), ThrowsMessage<Error>(HasSubstr("cut 3 ('jitter') lies past the frontier, "
                                                      "cut 2 ('window')")));
  EXPECT_THAT(hold(9),
              ThrowsMessage<Error>(HasSubstr("no cut 9; the pipeline's last one is cut 4")));
  HoldOptions small;
  small.memory_limit = 4096;
  small.threads = 1;
  EXPECT_THAT(hold(2, small),
              ThrowsMessage<Error>(AllOf(HasSubstr("of 100 samples at cut 'window'"),
                                         HasSubstr("more than the limit 4.0 KiB"))));
  const auto held = hold_in_memory(source, chain(), 2);
  EXPECT_THAT([&] { hold_in_memory(held, chain(), 1); },
              ThrowsMessage<Error>(HasSubstr("the source stands at cut 2 ('window') already")));
  EXPECT_THAT(
      [&] { Loader loader(what_from(held, 2, "pixels(6, 5) | window(0, 0, 4, 3) | jitter")); },
      ThrowsMessage<Error>(HasSubstr("of another pipeline")));
}

TEST(Hold, WhatBadSamplesTookDoesNotCount) {
  const auto source = faulty(100, {});
  const Pipeline refusing = Pipeline::parse("pixels(64, 64) | refuses", test_table());
  HoldOptions small;
  small.memory_limit = 3 * 64 * 64 * 4;
  small.threads = 2;
  const auto held = hold_in_memory(source, refusing, 2, small);
  EXPECT_EQ(held->read(99, *BufferPool::create(0)).failure().op, "refuses");
}

TEST(Hold, WhatIsNoSamplesFaultEndsIt) {
  const Pipeline surprising =
      Pipeline::parse("pixels(2, 2) | refuses(as_error=false)", test_table());
  EXPECT_THAT([&] { hold_in_memory(std::make_shared<MemorySource>(9), surprising, 2); },
              ThrowsMessage<Error>(HasSubstr("a surprise")));
}

TEST(Hold, TheCallerCanEndIt) {
  const auto source = faulty(100, {});
  FaultySource::Hold held(*source, {0, 1, 2, 3});
  HoldOptions options;
  options.threads = 2;
  options.while_waiting = [&] {
    held.release();
    throw Error(Code::kCancelled, "enough");
  };
  EXPECT_THAT([&] { hold_in_memory(source, chain(), 1, options); },
              ThrowsMessage<Error>(HasSubstr("enough")));
}

}  // namespace
}  // namespace cutwater
