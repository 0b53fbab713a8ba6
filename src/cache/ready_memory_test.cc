// SPDX-License-Identifier: Apache-2.0
#include "cache/ready_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kPage = 4096;

// Pages of the arena that have been cleared, or written to.
std::size_t ready_pages(const Segment& segment) {
  const std::uint64_t begin = (segment.shape().arena_at() + kPage - 1) / kPage * kPage;
  const std::uint64_t bytes = (segment.shape().end() - begin) / kPage * kPage;
  std::vector<unsigned char> there(bytes / kPage);
  EXPECT_EQ(mincore(segment.bytes(begin, bytes).data(), bytes, there.data()), 0);
  return static_cast<std::size_t>(
      std::ranges::count_if(there, [](unsigned char page) { return (page & 1) != 0; }));
}
std::size_t all_pages(const Segment& segment) {
  return (segment.shape().end() - segment.shape().arena_at()) / kPage - 1;
}

class ReadyMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!segment_->make_ready(0, 1)) GTEST_SKIP() << "this kernel gives no pages in advance";
  }

  // The writer secures 64 MiB at a time: not all of it.
  const std::shared_ptr<Segment> segment_ = Segment::shared(96 * kMiB, 1);
};

TEST_F(ReadyMemoryTest, ClearsAllOfIt) {
  ASSERT_LT(ready_pages(*segment_), all_pages(*segment_) / 2);
  ReadyMemory(segment_, 0).wait();
  EXPECT_GE(ready_pages(*segment_), all_pages(*segment_));
}

TEST_F(ReadyMemoryTest, LeavesWhatTheMachineNeeds) {
  const std::size_t before = ready_pages(*segment_);
  ReadyMemory(segment_, UINT64_MAX).wait();
  EXPECT_EQ(ready_pages(*segment_), before);
}

TEST_F(ReadyMemoryTest, ChangesNothingThatIsThere) {
  const std::uint64_t begin = segment_->shape().arena_at();
  ASSERT_TRUE(segment_->secure(begin + kMiB));
  const std::span<std::uint8_t> value = segment_->bytes(begin, kMiB);
  std::ranges::fill(value, std::uint8_t{7});
  const std::uint64_t secured = segment_->header().secured;
  ASSERT_LT(secured, segment_->shape().end());
  ReadyMemory(segment_, 0).wait();
  EXPECT_TRUE(std::ranges::all_of(value, [](std::uint8_t byte) { return byte == 7; }));
  EXPECT_EQ(segment_->header().secured, secured) << "that is the writer's";
}

TEST_F(ReadyMemoryTest, EndsWithItsObject) {
  { const ReadyMemory begun(segment_, 0); }
  EXPECT_EQ(segment_.use_count(), 1) << "nobody is at it any more";
}

}  // namespace
}  // namespace cutwater::cache
