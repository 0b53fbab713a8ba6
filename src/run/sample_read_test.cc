// SPDX-License-Identifier: Apache-2.0
// A read in steps: whoever does the waiting, and however it ends, the bytes and the errors are
// those of reading in one go.
#include "run/sample_read.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "run/ring.h"
#include "run/test_slow_source.h"
#include "source/limited.h"

namespace cutwater {
namespace {

using test::SlowSource;
using test::some_files;
using Next = SampleRead::Next;

std::string bytes_of(Result<Sample> sample) {
  const Tensor* image = sample.value().find(kImageField);
  return {reinterpret_cast<const char*>(image->view().bytes()), image->spec().bytes()};
}

std::shared_ptr<BufferPool> any_pool() { return BufferPool::create(1 << 20); }

// Does what the read asks for by plain calls; reads bring at most `most` bytes at a time.
Result<Sample> bring(SampleRead& read, std::size_t most, std::vector<Next>* asked = nullptr) {
  for (;;) {
    const Next next = read.advance();
    if (asked != nullptr) asked->push_back(next);
    switch (next) {
      case Next::kSample: return read.take(*any_pool());
      case Next::kMemory: read.give(Buffer(read.size())); break;
      case Next::kOpen: {
        const int fd = ::open(read.path().c_str(), File::kOpenFlags);
        read.done(fd < 0 ? -errno : fd);
        break;
      }
      case Next::kRead: {
        const ssize_t got =
            ::pread(read.fd(), read.rest().data(), std::min(most, read.rest().size()),
                    static_cast<off_t>(read.offset()));
        read.done(got < 0 ? -errno : got);
        break;
      }
      case Next::kWait: read.leave_to_me(); break;
    }
  }
}

TEST(SampleRead, CachedFilesAreThereAtOnce) {
  const TestFolder folder;
  const auto source = some_files(folder, 3, 100'000);
  std::vector<Next> asked;
  SampleRead read(*source->stored_bytes(), 1);
  Result<Sample> sample = bring(read, 1 << 20, &asked);
  EXPECT_EQ(bytes_of(std::move(sample)), image_of(*source, 1));
  EXPECT_EQ(asked.front(), Next::kMemory) << "a file just written can be opened without waiting";
  EXPECT_EQ(asked.back(), Next::kSample);
}

TEST(SampleRead, PiecesOfAnySizeMakeTheSameBytes) {
  const TestFolder folder;
  const auto source = std::make_shared<SlowSource>(some_files(folder, 2, 10'000));
  for (const std::size_t most : {1u, 999u, 9'999u, 10'000u, 1u << 20}) {
    SampleRead read(*source->stored_bytes(), 1);
    std::vector<Next> asked;
    EXPECT_EQ(bytes_of(bring(read, most, &asked)), image_of(*source, 1));
    ASSERT_EQ(asked[0], Next::kOpen);
    ASSERT_EQ(asked[1], Next::kMemory);
    EXPECT_EQ(asked.size(), 3 + (10'000 + most - 1) / most);
  }
}

TEST(SampleRead, WhatNobodyDoesItDoesItself) {
  const TestFolder folder;
  const auto source = std::make_shared<SlowSource>(some_files(folder, 1, 5'000));
  for (const std::int64_t result : {-EINTR, -EAGAIN, -ECANCELED}) {
    SampleRead read(*source->stored_bytes(), 0);
    EXPECT_EQ(read.advance(), Next::kOpen);
    read.done(result);
    EXPECT_EQ(read.advance(), Next::kMemory);
    read.give(Buffer(read.size()));
    EXPECT_EQ(read.advance(), Next::kRead);
    read.done(1000);  // a part of it came from elsewhere
    std::fill_n(read.rest().data(), 1000, std::uint8_t{0});
    EXPECT_EQ(read.advance(), Next::kRead);
    read.done(result);
    EXPECT_EQ(read.advance(), Next::kSample);
    EXPECT_EQ(bytes_of(read.take(*any_pool())).substr(1000), image_of(*source, 0).substr(1000));
  }
}

TEST(SampleRead, FailuresAreThoseOfReadingInOneGo) {
  const TestFolder folder;
  const auto source = std::make_shared<SlowSource>(
      some_files(folder, 5, 300), std::map<SampleId, SlowSource::Fault>{{0, test::gone},
                                                                        {1, test::is_a_folder},
                                                                        {2, test::ends_early},
                                                                        {3, test::unreadable},
                                                                        {4, test::absurdly_large}});
  const auto pool = BufferPool::create(1 << 20);
  for (SampleId id = 0; id < 5; ++id) {
    SampleRead read(*source->stored_bytes(), id);
    const Result<Sample> got = bring(read, 100), expected = source->read(id, *pool);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.failure().message(), expected.failure().message());
    EXPECT_EQ(got.failure().code, Code::kBadSample);
    EXPECT_EQ(got.failure().sample, id);
    EXPECT_EQ(got.failure().op, "read");
  }
}

// What comes over a slow link is waited for when it has been read, by whoever does that best.
TEST(SampleRead, SaysThatItHasToBeWaitedFor) {
  const TestFolder folder;
  const auto link = std::make_shared<Link>(1e-3);
  const auto source = limited(some_files(folder, 1, 100), link);
  SampleRead read(*source->stored_bytes(), 0);
  Next next = read.advance();
  for (; next == Next::kOpen || next == Next::kMemory || next == Next::kRead;
       next = read.advance()) {
    if (next == Next::kMemory)
      read.give(Buffer(read.size()));
    else
      read.leave_to_me();
  }
  ASSERT_EQ(next, Next::kWait);
  EXPECT_GT(read.due(), std::chrono::steady_clock::now() + std::chrono::hours(10));
  read.done(-ETIME);
  EXPECT_EQ(read.advance(), Next::kSample);
}

TEST(SampleRead, ClosesWhatWasOpenedForNothing) {
  const TestFolder folder;
  const auto source = std::make_shared<SlowSource>(some_files(folder, 1, 10));
  int fd = -1;
  {
    SampleRead read(*source->stored_bytes(), 0);
    ASSERT_EQ(read.advance(), Next::kOpen);
    fd = ::open(read.path().c_str(), File::kOpenFlags);
    read.done(fd);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

TEST(SampleRead, WhatComesFromOutsideIsNoSamplesFault) {
  const TestFolder folder;
  const auto source = some_files(folder, 1, 10);
  SampleRead read(*source->stored_bytes(), 0);
  read.fail(std::make_exception_ptr(std::bad_alloc()));
  EXPECT_EQ(read.take(*any_pool()).failure().code, Code::kIo);
}

TEST(Ring, OpensReadsAndEndsWaits) {
  const std::unique_ptr<Ring> ring = Ring::create(4);
  if (!ring) GTEST_SKIP() << Ring::missing();
  EXPECT_EQ(Ring::missing(), "");
  const auto only = [&] {
    std::vector<Ring::Done> done = ring->wait();
    EXPECT_EQ(done.size(), 1u);
    return done.at(0);
  };
  const TestFolder folder;
  const std::string path = folder.file("x", "content");
  ASSERT_TRUE(ring->open(path.c_str(), O_RDONLY, 11));
  const Ring::Done opened = only();
  EXPECT_EQ(opened.token, 11u);
  ASSERT_GE(opened.result, 0);
  const Fd fd(static_cast<int>(opened.result));

  std::vector<std::uint8_t> bytes(20);
  ASSERT_TRUE(ring->read(fd.get(), bytes, 3, 12));
  const Ring::Done read = only();
  EXPECT_EQ(read.token, 12u);
  EXPECT_EQ(read.result, 4);
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 4), "tent");

  ASSERT_TRUE(ring->open("/nonexistent/x", O_RDONLY, 13));
  EXPECT_EQ(only().result, -ENOENT);
  const auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
  ASSERT_TRUE(ring->wait_until(due, 14));
  EXPECT_EQ(only().token, 14u);
  EXPECT_GE(std::chrono::steady_clock::now(), due);
  ring->wake();
  EXPECT_TRUE(ring->wait().empty());
}

}  // namespace
}  // namespace cutwater
