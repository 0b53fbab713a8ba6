// SPDX-License-Identifier: Apache-2.0
// LastResort: a process that has been told to end, ends. What it waits for then may never come: a
// read that hangs, an op that takes hours.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

namespace cutwater::cli {

// From the first arm() on there is so much time until the destructor, then the process ends with
// status 1.
class LastResort {
 public:
  LastResort() = default;
  ~LastResort() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  void arm(std::chrono::duration<double> time) {
    if (thread_.joinable()) return;
    thread_ = std::thread([this, time] {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, time, [this] { return over_; })) return;
      say("cutwater: a read or an op does not come to its end; it is left\n");
      _exit(1);
    });
  }

 private:
  // Where nobody reads it, that is no reason to stay; nor is a lock that somebody has.
  static void say(std::string_view line) {
    pollfd err{STDERR_FILENO, POLLOUT, 0};
    if (poll(&err, 1, 0) == 1 && write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(1);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cutwater::cli
