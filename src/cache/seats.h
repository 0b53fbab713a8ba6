// SPDX-License-Identifier: Apache-2.0
// The job's half of a seat: everything but sitting down and leaving happens in the segment, without
// the writer, without a lock and without a system call. What the writer makes of it: keeper.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/reader.h"

namespace cutwater::cache {

// A seat that Keeper::join() has given. `begun` is called after each begin_epoch() (the memory back
// end sweeps then); `leave` once, at the end: it brings Keeper::leave() about. Neither may throw;
// either may be empty. Holds the reader, and so its link.
std::unique_ptr<CacheSeat> make_seat(std::shared_ptr<Reader> reader, int seat,
                                     std::function<void()> begun, std::function<void()> leave);

// Taken, has begun an epoch, and has not yet had all of it.
bool in_epoch(const SeatRecord& seat);

// The seat that has said that it makes this sample; -1: none, as far as the marks tell.
int maker_of(const Segment& segment, std::uint64_t data, SampleId sample);

// Who will use which value, as far as the seats tell at one moment. For readers: a seat may be left
// and its seen bits be gone while this is asked, so what it says is advice. The writer, who must
// not trust the segment, has its own books (Keeper::uses).
class Audience {
 public:
  explicit Audience(const Segment& segment);

  // Residents::Uses: jobs that have yet to see it, and later epochs.
  double uses(const CacheKey& key) const;
  // Whether any job sits at this data set.
  bool sits_at(std::uint64_t data) const;

 private:
  struct Listener {
    int seat = 0;
    const SeatRecord* record = nullptr;
    std::uint64_t data = 0;
    bool in_epoch = false;
    std::span<const Word> seen;
  };
  bool wants(const Listener& listener, const CacheKey& key) const;

  const Segment& segment_;
  std::vector<Listener> listeners_;
};

std::uint64_t seen_words(std::int64_t samples);  // of seen bits, 64 in each

// Fresh values are of use to jobs that draw alike; stable ones to all.
inline bool draws_alike(std::uint64_t value_draw, std::uint64_t job_draw) {
  return value_draw == 0 || value_draw == job_draw;
}

}  // namespace cutwater::cache
