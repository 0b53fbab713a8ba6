// SPDX-License-Identifier: Apache-2.0
// A job's seat that outlives daemons: what the job has had in its epoch is kept here, too, and told
// to each daemon that it comes to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/mutex.h"
#include "cutwater/cache.h"

namespace cutwater::cache {

// Any thread, as CacheSeat. While it has no seat, the job is alone: nothing arrives, and there are
// no others.
class LastingSeat {
 public:
  explicit LastingSeat(JobOffer offer);

  const JobOffer& offer() const { return offer_; }
  // A seat at the daemon that `where` stands for takes the place of the one before; the epoch goes
  // on where it is. REQUIRES: `where` is no other's while the seat lives.
  void sit(std::unique_ptr<CacheSeat> seat, const void* where);
  bool sits_at(const void* where) const;
  void stand() { sit(nullptr, nullptr); }

  std::uint64_t begin_epoch(std::uint64_t draw);
  void had(std::uint64_t draw, SampleId sample);
  void leave_epoch();
  void arrivals(std::vector<SampleId>& samples);
  int others() const;
  int others_alike() const;
  bool start_making(SampleId sample);
  void made(SampleId sample);

 private:
  const JobOffer offer_;
  mutable Mutex mutex_;
  std::unique_ptr<CacheSeat> seat_ CUTWATER_GUARDED_BY(mutex_);
  const void* where_ CUTWATER_GUARDED_BY(mutex_) = nullptr;
  bool begun_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::uint64_t draw_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::vector<bool> had_ CUTWATER_GUARDED_BY(mutex_);  // of this epoch, by sample
};

// The face of it for the job. In a fork it does nothing: the seat is the other process's.
std::unique_ptr<CacheSeat> face_of(std::shared_ptr<LastingSeat> seat);

}  // namespace cutwater::cache
