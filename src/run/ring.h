// SPDX-License-Identifier: Apache-2.0
// Ring: opens and reads that the kernel works on while our threads do something else (io_uring).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cutwater {

class Ring {
 public:
  // For up to `depth` operations in flight. Null where the build, the kernel or a sandbox has none.
  static std::unique_ptr<Ring> create(unsigned depth);
  // Why create() gives null here; empty where it does not.
  static std::string missing();

  Ring();
  ~Ring();  // REQUIRES: nothing is in flight
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Any thread. False: the kernel does not take it now. What the operation ends with comes out of
  // wait() beside its token. REQUIRES: what is read into outlives that; token > 0.
  bool open(const char* path, int flags, std::uint64_t token);
  bool read(int fd, std::span<std::uint8_t> into, std::uint64_t offset, std::uint64_t token);
  bool wait_until(std::chrono::steady_clock::time_point due, std::uint64_t token);
  // Ends a wait(), with nothing.
  void wake();

  struct Done {
    std::uint64_t token;
    std::int64_t result;  // what the system call would have returned, or -errno
  };
  // Waits until something is done, and returns all that is. One thread.
  std::vector<Done> wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cutwater
