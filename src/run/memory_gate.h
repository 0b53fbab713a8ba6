// SPDX-License-Identifier: Apache-2.0
// MemoryGate: lets a sample's work start when its memory fits beside all other's. Each sample asks
// once, for everything it will need, so those inside never wait and the gate always opens again.
#pragma once

#include <cstddef>

#include "core/mutex.h"

namespace cutwater {

class MemoryGate {
 public:
  explicit MemoryGate(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Before a file is read: files being read take a quarter of the limit at most, so there is always
  // room for one of them to be decoded. Throws Error(kCancelled) after close().
  void begin_read(std::size_t bytes);
  bool try_begin_read(std::size_t bytes);  // false: it would wait
  void force_read(std::size_t bytes);      // where waiting might be for oneself
  void end_read(std::size_t bytes);

  // Before a sample is worked on. Waits for room. Throws Error(kInvalidArgument) when there can
  // never be enough, Error(kCancelled) after close().
  void enter(std::size_t bytes);
  void leave(std::size_t bytes);
  // For work that nobody waits for: false if it would wait, or take more than a quarter of the
  // limit together with what is there.
  bool try_enter(std::size_t bytes);
  // Memory held by open batches: counts against the limit, but never waits here.
  void set_batch_bytes(std::size_t bytes);
  void close();

 private:
  bool read_fits(std::size_t bytes) const CUTWATER_REQUIRES(mutex_) {
    return read_bytes_ == 0 || read_bytes_ + bytes <= limit_bytes_ / 4;
  }

  const std::size_t limit_bytes_;
  Mutex mutex_;
  Condition changed_;
  std::size_t read_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::size_t inside_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::size_t batch_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
};

}  // namespace cutwater
