// SPDX-License-Identifier: Apache-2.0
#include "cache/ready_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// Of the file behind a segment, what has pages.
std::uint64_t paged_bytes(const Segment& segment) {
  struct stat status {};
  EXPECT_EQ(fstat(segment.fd(), &status), 0);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

TEST(ReadyMemory, GivesPagesToAllOfIt) {
  const std::shared_ptr<Segment> segment = Segment::shared(32 * kMiB, 1);
  ASSERT_LT(paged_bytes(*segment), 8 * kMiB);
  ReadyMemory(segment, UINT64_MAX).wait();
  EXPECT_GE(paged_bytes(*segment), segment->shape().end());
}

TEST(ReadyMemory, GoesNoFurtherThanItMay) {
  const std::shared_ptr<Segment> segment = Segment::shared(32 * kMiB, 1);
  const std::uint64_t before = paged_bytes(*segment);
  ReadyMemory(segment, 9 * kMiB).wait();
  EXPECT_GE(paged_bytes(*segment), before + 9 * kMiB - 4096);
  EXPECT_LE(paged_bytes(*segment), before + 9 * kMiB + 4096);
}

TEST(ReadyMemory, ChangesNothingThatIsThere) {
  const std::shared_ptr<Segment> segment = Segment::shared(16 * kMiB, 1);
  const std::uint64_t begin = segment->shape().arena_at();
  ASSERT_TRUE(segment->secure(begin + kMiB));
  const std::span<std::uint8_t> value = segment->bytes(begin, kMiB);
  std::ranges::fill(value, std::uint8_t{7});
  const std::uint64_t secured = segment->header().secured;
  ReadyMemory(segment, UINT64_MAX).wait();
  EXPECT_TRUE(std::ranges::all_of(value, [](std::uint8_t byte) { return byte == 7; }));
  EXPECT_EQ(segment->header().secured, secured) << "that is the writer's";
}

TEST(ReadyMemory, EndsWithItsObject) {
  const std::shared_ptr<Segment> segment = Segment::shared(64 * kMiB, 1);
  { const ReadyMemory begun(segment, UINT64_MAX); }
  const std::uint64_t then = paged_bytes(*segment);
  EXPECT_EQ(segment.use_count(), 1) << "nobody is at it any more";
  EXPECT_EQ(paged_bytes(*segment), then);
}

}  // namespace
}  // namespace cutwater::cache
