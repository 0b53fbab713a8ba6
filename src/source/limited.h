// SPDX-License-Identifier: Apache-2.0
// A source behind a link of a certain rate: what is read through it arrives no earlier than it
// would there. For measurements.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/mutex.h"
#include "cutwater/source.h"

namespace cutwater {

// The link, shared by all sources that read through it. Bytes go one after another; what was not
// used while nobody read is lost, but for the last kAhead: as if it had been read ahead, so that
// nobody is put to sleep for less. Any thread.
class Link {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kAhead{2};

  explicit Link(double bytes_per_second)
      : bytes_per_second_(bytes_per_second), free_(Clock::now()) {}

  // When the last of these bytes will be through.
  Clock::time_point book(std::uint64_t bytes);
  // Waits until then. Throws Error(kCancelled) after close().
  void wait_until(Clock::time_point due);
  void close();  // nobody waits any more

  std::uint64_t bytes() const;  // that were booked
  double rate() const { return bytes_per_second_; }

 private:
  const double bytes_per_second_;
  mutable Mutex mutex_;
  Condition closed_changed_;
  Clock::time_point free_ CUTWATER_GUARDED_BY(mutex_);
  std::uint64_t bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
};

// The same samples, read through the link. Reads in flight stay in flight: the link works on them
// while threads do something else.
std::shared_ptr<const Source> limited(std::shared_ptr<const Source> source,
                                      std::shared_ptr<Link> link);

}  // namespace cutwater
