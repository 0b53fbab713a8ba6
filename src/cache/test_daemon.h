// SPDX-License-Identifier: Apache-2.0
// Daemons for tests: in a thread, and as a process that can be stopped and killed.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "cache/server.h"
#include "cache/unix_socket.h"
#include "source/test_folder.h"

namespace cutwater::cache {

// Sanitizers make system calls of their own, and TSan lets no fork of a process with threads make
// some.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUTWATER_BY_CLANG_WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    defined(CUTWATER_BY_CLANG_WITH_ASAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// A folder that is the user's alone, with the place of a socket.
class TestFolder : public cutwater::TestFolder {
 public:
  std::string socket() const { return path("cache.sock"); }
};

class TestDaemon {
 public:
  TestDaemon(const std::string& socket, std::uint64_t limit,
             std::map<uid_t, std::uint64_t> quotas = {})
      : server_(options(socket, limit, std::move(quotas))), thread_([this] { server_.run(); }) {}
  TestDaemon(const TestDaemon&) = delete;
  TestDaemon& operator=(const TestDaemon&) = delete;
  ~TestDaemon() {
    server_.stop();
    thread_.join();
  }

 private:
  static ServeOptions options(const std::string& socket, std::uint64_t limit,
                              std::map<uid_t, std::uint64_t> quotas) {
    ServeOptions options;
    options.socket = socket;
    options.limit = limit;
    options.quotas = std::move(quotas);
    return options;
  }

  Server server_;
  std::thread thread_;
};

// Runs something in a process of its own, which is killed at the latest with this.
class TestProcess {
 public:
  explicit TestProcess(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    // Nothing of a test outlives it, and what hangs says where: tests/main.cc.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(kLongestSeconds);
    work();
    _exit(0);
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;
  ~TestProcess() {
    if (pid_ > 0) end(SIGKILL);
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const { kill(pid_, number); }
  // Waits for its end; its status, as waitpid has it.
  int end(int number = 0) {
    if (number != 0) signal(number);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  static constexpr unsigned kLongestSeconds = 180;  // less than a test may take

  pid_t pid_;
};

// Waits for what must come true; false when it has not by the deadline.
inline bool until(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// A word from a process to the one that has made it.
class TestSignal {
 public:
  TestSignal() {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    out_ = Descriptor(ends[0]);
    in_ = Descriptor(ends[1]);
  }
  void give(char word) const { (void)!write(in_.get(), &word, 1); }
  // 0: the process has ended without one, or says nothing.
  char take() {
    in_ = Descriptor();
    char word = 0;
    if (wait_readable(out_, std::chrono::seconds(20))) (void)!read(out_.get(), &word, 1);
    return word;
  }
  // Waits until all others have let go of it.
  void take_end() {
    in_ = Descriptor();
    char word = 0;
    (void)!read(out_.get(), &word, 1);
  }

 private:
  Descriptor out_, in_;
};

// A daemon in a process of its own, ready to be asked.
inline std::unique_ptr<TestProcess> daemon_process(const std::string& socket, std::uint64_t limit) {
  TestSignal ready;
  auto process = std::make_unique<TestProcess>([&] {
    ServeOptions options;
    options.socket = socket;
    options.limit = limit;
    Server server(options);
    ready.give('y');
    server.run();
  });
  EXPECT_EQ(ready.take(), 'y') << "the daemon did not start";
  return process;
}

}  // namespace cutwater::cache
