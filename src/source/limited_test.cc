// SPDX-License-Identifier: Apache-2.0
// What comes over a link is the same, and not before it can be.
#include "source/limited.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/test_loader.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

using Clock = Link::Clock;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kRate = 1e6;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(Link, BytesGoOneAfterAnother) {
  const auto start = Clock::now();
  Link link(kRate);
  Clock::time_point last = start;
  for (int i = 1; i <= 10; ++i) {
    const Clock::time_point due = link.book(1000);
    EXPECT_GE(due - last, std::chrono::milliseconds(1));
    EXPECT_GE(due - start, i * std::chrono::milliseconds(1));
    last = due;
  }
  EXPECT_EQ(link.bytes(), 10'000u);
  link.wait_until(last);
  EXPECT_GE(Clock::now(), last);
}

TEST(Link, NobodyWaitsWhenItIsClosed) {
  Link link(1);
  const Clock::time_point due = link.book(1'000'000);
  link.close();
  EXPECT_THAT([&] { link.wait_until(due); }, ThrowsMessage<Error>(HasSubstr("was closed")));
}

TEST(LimitedSource, GivesTheSameNoFasterThanTheLink) {
  const auto source = std::make_shared<test::MemorySource>(20, 1000);
  const auto start = Clock::now();
  const auto link = std::make_shared<Link>(kRate);
  const auto slow = limited(source, link);
  EXPECT_EQ(slow->identity(), source->identity());
  EXPECT_EQ(slow->stored_bytes(), nullptr);
  const auto pool = BufferPool::create(1 << 20);
  for (SampleId id = 0; id < 20; ++id) {
    Result<Sample> one = source->read(id, *pool), other = slow->read(id, *pool);
    EXPECT_EQ(test::bytes_of(one.value().fields[0].tensor),
              test::bytes_of(other.value().fields[0].tensor));
  }
  EXPECT_GE(seconds_since(start), 20 * 1000 / kRate);
  EXPECT_EQ(link->bytes(), 20'000u);
}

// Files, which a loader reads in its own way, and two loaders that share the link.
TEST(LimitedSource, FilesOfSeveralLoadersShareTheLink) {
  const TestFolder folder;
  std::vector<std::string> paths;
  for (int i = 0; i < 12; ++i)
    paths.push_back(
        folder.file(std::to_string(i) + ".bin", std::string(2000, static_cast<char>(i))));
  const auto start = Clock::now();
  const auto link = std::make_shared<Link>(kRate);
  const What plain = test::what_from(open_files(paths), 4);
  What slow = plain;
  slow.source = limited(plain.source, link);
  ASSERT_NE(slow.source->stored_bytes(), nullptr);
  Loader expected(plain, test::with_threads(2));
  Loader one(slow, test::with_threads(2)), two(slow, test::with_threads(1));
  const std::vector<test::Seen> batches = test::epochs(expected, 1);
  EXPECT_EQ(test::epochs(one, 1), batches);
  EXPECT_EQ(test::epochs(two, 1), batches);
  EXPECT_GE(seconds_since(start), 2 * 12 * 2000 / kRate);
  EXPECT_GE(link->bytes(), 2u * 12 * 2000);
}

}  // namespace
}  // namespace cutwater
