// SPDX-License-Identifier: Apache-2.0
// A shared cache whose daemon is killed, stopped, replaced or absent; whose jobs are; and what it
// costs to be shared. That it is a cache at all is in cache_contract_test.cc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "cache/connection.h"
#include "cache/test_daemon.h"
#include "cutwater/cache.h"
#include "cutwater/error.h"
#include "variant/form.h"

namespace cutwater::cache {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

CacheKey key_of(SampleId sample) { return {1, 2, sample, 0}; }

bool put(Cache& cache, SampleId sample, std::size_t size = 1000) {
  return cache.put(key_of(sample), size, 1, [&](std::span<std::uint8_t> place) {
    std::memset(place.data(), static_cast<int>(sample), place.size());
  });
}

bool holds(const CacheValue& value, SampleId sample, std::size_t size = 1000) {
  return std::ranges::equal(value.bytes(), Bytes(size, static_cast<std::uint8_t>(sample)));
}

wire::StatReply stat_of(const std::string& socket) {
  return Connection(socket, false).ask<wire::StatReply>(wire::Stat{});
}

TEST(SharedCache, JobsFindWhatOthersPut) {
  const TestFolder folder;
  const TestDaemon daemon(folder.socket(), kMiB);
  const auto one = shared_cache(folder.socket()), two = shared_cache(folder.socket());
  EXPECT_TRUE(put(*one, 7));
  EXPECT_TRUE(holds(two->get(key_of(7)), 7));
  EXPECT_FALSE(put(*two, 7));
  EXPECT_TRUE(one->shared());
  EXPECT_EQ(one->trouble(), "");
  two->drop(key_of(7));
  EXPECT_FALSE(one->get(key_of(7)));
}

TEST(SharedCache, WithoutADaemonItIsAMissInWords) {
  const TestFolder folder;
  const auto cache = shared_cache(folder.socket());
  EXPECT_FALSE(cache->get(key_of(1)));
  EXPECT_FALSE(put(*cache, 1));
  EXPECT_FALSE(cache->has_room(key_of(9), 1, 1));
  EXPECT_THAT(cache->trouble(), HasSubstr("nobody serves a cache at " + folder.socket()));
  EXPECT_THAT(cache->trouble(),
              HasSubstr("cutwater cache serve --memory 8GiB --socket " + folder.socket()));
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_EQ(cache->stats().refused, 1);
  const TestDaemon daemon(folder.socket(), kMiB);
  EXPECT_TRUE(until([&] { return cache->trouble().empty(); }));
  EXPECT_TRUE(put(*cache, 1));
  EXPECT_THROW(shared_cache(std::string(200, 'x')), Error);
}

TEST(SharedCache, AKilledDaemonLeavesWhatIsHeldAndIsFoundAgain) {
  const TestFolder folder;
  auto daemon = daemon_process(folder.socket(), kMiB);
  const auto cache = shared_cache(folder.socket());
  ASSERT_TRUE(put(*cache, 1));
  const CacheValue held = cache->get(key_of(1));
  daemon->end(SIGKILL);
  EXPECT_TRUE(until([&] { return !cache->get(key_of(1)); }));
  EXPECT_TRUE(until([&] { return !cache->trouble().empty(); }));
  EXPECT_FALSE(put(*cache, 2));
  daemon = daemon_process(folder.socket(), kMiB);
  EXPECT_TRUE(until([&] { return put(*cache, 1, 500); }));
  EXPECT_EQ(cache->trouble(), "");
  EXPECT_TRUE(holds(cache->get(key_of(1)), 1, 500));
  EXPECT_TRUE(holds(held, 1)) << "of the daemon that is no more";
}

TEST(SharedCache, AStoppedDaemonRefusesButWhatItHasIsRead) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  const auto cache = shared_cache(folder.socket());
  ASSERT_TRUE(put(*cache, 1));
  const std::size_t bytes = cache->stats().bytes;
  daemon->signal(SIGSTOP);
  // The first waits for its answer in vain; the one that is being filled, and all others do not.
  EXPECT_FALSE(put(*cache, 2));
  EXPECT_THAT(cache->trouble(), HasSubstr("has not answered for 2 s"));
  EXPECT_FALSE(put(*cache, 3));
  EXPECT_FALSE(cache->has_room(key_of(9), 1, 1));
  EXPECT_TRUE(holds(cache->get(key_of(1)), 1));
  daemon->signal(SIGCONT);
  EXPECT_TRUE(until([&] { return cache->trouble().empty(); }));
  EXPECT_TRUE(until([&] { return cache->stats().bytes == bytes; })) << "the place of 2 came back";
  EXPECT_TRUE(put(*cache, 2));
  EXPECT_EQ(stat_of(folder.socket()).clients, 1u) << "it is the same connection";
}

TEST(SharedCache, WhatIsBeingFilledWhileTheDaemonStopsIsGivenBack) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  const auto cache = shared_cache(folder.socket());
  const std::size_t bytes = cache->stats().bytes;
  EXPECT_FALSE(cache->put(key_of(1), 1000, 1, [&](std::span<std::uint8_t>) {
    daemon->signal(SIGSTOP);
    EXPECT_FALSE(put(*cache, 2));
  }));
  daemon->signal(SIGCONT);
  EXPECT_TRUE(until([&] { return cache->trouble().empty(); }));
  EXPECT_TRUE(until([&] { return cache->stats().bytes == bytes; }));
  EXPECT_TRUE(put(*cache, 1));
}

TEST(SharedCache, AKilledJobGivesBackWhatItHeld) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  const std::uint64_t bytes = stat_of(folder.socket()).bytes;
  TestSignal ready;
  TestProcess job([&] {
    const auto cache = shared_cache(folder.socket());
    put(*cache, 1, 100'000);
    const CacheValue held = cache->get(key_of(1));
    const auto seat = cache->seat({"job", 1, 1000, {2}});
    cache->put(key_of(2), 200'000, 1, [&](std::span<std::uint8_t>) {
      ready.give(held ? 'y' : 'n');
      pause();
    });
  });
  EXPECT_EQ(ready.take(), 'y');
  shared_cache(folder.socket())->drop(key_of(1));
  EXPECT_GT(stat_of(folder.socket()).bytes, bytes + 300'000) << "one is held, one is being filled";
  job.end(SIGKILL);
  EXPECT_TRUE(until([&] { return stat_of(folder.socket()).bytes == bytes; }));
}

TEST(SharedCache, AForkDoesNotKeepAKilledJobsConnection) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  TestSignal ready, over;
  TestProcess job([&] {
    const auto cache = shared_cache(folder.socket());
    if (fork() == 0) {  // has a copy of the socket, and lives until the test is over
      over.take_end();
      _exit(0);
    }
    ready.give('y');
    pause();
  });
  EXPECT_EQ(ready.take(), 'y');
  EXPECT_EQ(stat_of(folder.socket()).clients, 1u);
  job.end(SIGKILL);
  EXPECT_TRUE(until([&] { return stat_of(folder.socket()).clients == 0; }));
}

TEST(SharedCache, AForkIsAClientOfItsOwn) {
  if (kSanitized) GTEST_SKIP();
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  auto cache = shared_cache(folder.socket());
  ASSERT_TRUE(put(*cache, 1));
  CacheValue held = cache->get(key_of(1));
  auto seat = cache->seat({"job", 1, 10, {2}});
  seat->begin_epoch(0);
  TestProcess child([&] {
    const bool found = holds(cache->get(key_of(1)), 1) && put(*cache, 2);
    const bool two = stat_of(folder.socket()).clients == 2;
    seat->had(0, 1);
    seat.reset();
    held = {};
    cache.reset();
    _exit(found && two ? 0 : 1);
  });
  EXPECT_EQ(child.end(), 0);
  EXPECT_TRUE(holds(cache->get(key_of(2)), 2));
  cache->drop(key_of(1));
  for (SampleId sample = 10; put(*cache, sample, 10'000); ++sample) {
  }
  EXPECT_TRUE(holds(held, 1)) << "the child let go its copy, not this one";
  EXPECT_EQ(
      all_rows(*std::make_unique<Connection>(folder.socket(), false), wire::Listed::kJobs).size(),
      1u);
}

TEST(SharedCache, SeatsComeBackWithWhatTheJobHasHad) {
  const TestFolder folder;
  auto daemon = daemon_process(folder.socket(), kMiB);
  const auto cache = shared_cache(folder.socket());
  const auto seat = cache->seat({"tom", 1, 100, {2}});
  seat->begin_epoch(5);
  for (SampleId sample = 0; sample < 30; ++sample) seat->had(5, sample);
  seat->had(4, 99);   // of an epoch that is over
  seat->had(5, 100);  // there is none
  const auto jobs = [&] {
    Connection connection(folder.socket(), false);
    return all_rows(connection, wire::Listed::kJobs);
  };
  ASSERT_EQ(jobs().size(), 1u);
  EXPECT_EQ(jobs()[0].entries, 30);
  daemon->end(SIGKILL);
  EXPECT_TRUE(until([&] { return !cache->trouble().empty(); }));
  for (SampleId sample = 30; sample < 40; ++sample) seat->had(5, sample);
  EXPECT_TRUE(seat->start_making(50)) << "alone, it makes its samples itself";
  EXPECT_EQ(seat->others(), 0);
  daemon = daemon_process(folder.socket(), kMiB);
  EXPECT_TRUE(until([&] { return jobs().size() == 1 && jobs()[0].entries == 40; }));
  EXPECT_EQ(wire::name_of(jobs()[0].name), "tom");
  EXPECT_EQ(jobs()[0].limit, static_cast<std::uint64_t>(getpid()));
  ASSERT_TRUE(until([&] { return put(*cache, 60); }));
  std::vector<SampleId> arrived;
  seat->arrivals(arrived);
  EXPECT_EQ(arrived, std::vector<SampleId>{60});
}

TEST(SharedCache, ADaemonOfAnotherVersionIsNamed) {
  const TestFolder folder;
  const Listener listener(folder.socket());
  std::thread daemon([&] {
    ASSERT_TRUE(wait_readable(listener.socket(), kAnswerTime));
    const Descriptor client(accept(listener.socket().get(), nullptr, nullptr));
    std::array<std::uint8_t, 64> room;
    ASSERT_TRUE(wait_readable(client, kAnswerTime));
    EXPECT_TRUE(wire::read<wire::Hello>(receive_packet(client, room).packet));
    wire::HelloReply reply;
    reply.head.version = 9;
    reply.status = wire::Status::kOtherVersion;
    EXPECT_TRUE(send_packet(client, wire::bytes_of(reply)));
  });
  EXPECT_THAT([&] { Connection(folder.socket(), true); },
              testing::ThrowsMessage<Error>(HasSubstr("speaks version 9")));
  daemon.join();
}

// The daemon's memory, as somebody who may do anything sees it.
Descriptor memory_of(pid_t daemon) {
  const std::filesystem::path fds = "/proc/" + std::to_string(daemon) + "/fd";
  for (const auto& fd : std::filesystem::directory_iterator(fds))
    if (std::filesystem::read_symlink(fd).string().find("cutwater-cache") != std::string::npos)
      return Descriptor(open(fd.path().c_str(), O_RDWR | O_CLOEXEC));
  return {};
}

TEST(SharedCache, AFlippedByteIsFoundAndTheValueMadeAnew) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  const auto cache = shared_cache(folder.socket());
  Sample sample{7, 3, {}};
  const TensorSpec spec{DType::kU8, {20, 30, 3}, Layout::kPixels};
  Buffer image(spec.bytes());
  std::memset(image.span().data(), 0x5a, image.span().size());
  sample.fields.push_back({"image", Tensor(spec, std::move(image))});
  const FormWriter form(sample, {}, Checksum::kXxh3);
  const auto write_form = [&](std::span<std::uint8_t> place) { form.write(place); };
  const auto read_back = [&] {
    const CacheValue value = cache->get(key_of(7));
    FormSource from{value.bytes(), value.hold()};
    from.checksum = Checksum::kXxh3;
    return read_form(from, 7, 3);
  };
  ASSERT_TRUE(cache->put(key_of(7), form.size(), 1, write_form));
  EXPECT_EQ(read_back().fields.size(), 1u);

  const Descriptor memory = memory_of(daemon->pid());
  ASSERT_TRUE(memory);
  Bytes all(kMiB);
  const ssize_t read = pread(memory.get(), all.data(), all.size(), 0);
  const Bytes pixels(100, 0x5a);
  const auto found = std::search(all.begin(), all.begin() + read, pixels.begin(), pixels.end());
  ASSERT_NE(found, all.begin() + read);
  ASSERT_EQ(pwrite(memory.get(), "!", 1, found - all.begin() + 50), 1);
  EXPECT_THROW(read_back(), Error);
  EXPECT_EQ(cache->stats().damaged, 0);
  cache->drop(key_of(7));
  EXPECT_EQ(cache->stats().damaged, 1);
  EXPECT_FALSE(cache->get(key_of(7)));
  ASSERT_TRUE(cache->put(key_of(7), form.size(), 1, write_form));
  EXPECT_EQ(read_back().fields.size(), 1u);
}

// A hit must make no system call: in this mode any but read, write and exit kills the process.
void expect_no_system_call(Cache& cache) {
  if (kSanitized) GTEST_SKIP();
  ASSERT_TRUE(put(cache, 1));
  TestSignal verdict;
  // A fork of its own, as this process has to go on. It makes a connection with the first get.
  TestProcess child([&] {
    bool right = holds(cache.get(key_of(1)), 1) && !cache.get(key_of(2));
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(2);
    for (int i = 0; i < 10'000; ++i)
      right = right && holds(cache.get(key_of(1)), 1) && !cache.get(key_of(2));
    verdict.give(right ? 'y' : 'n');
    syscall(SYS_exit, 0);
  });
  EXPECT_EQ(verdict.take(), 'y') << "a system call was made";
}

TEST(SharedCache, AHitMakesNoSystemCall) {
  const TestFolder folder;
  const auto daemon = daemon_process(folder.socket(), kMiB);
  expect_no_system_call(*shared_cache(folder.socket()));
}

TEST(MemoryCache, AHitMakesNoSystemCall) { expect_no_system_call(*memory_cache(kMiB)); }

}  // namespace
}  // namespace cutwater::cache
