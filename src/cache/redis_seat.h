// SPDX-License-Identifier: Apache-2.0
// A job's seat at a Redis cache: what jobs on all machines know of each other and of what has
// arrived, as far as redis_board.h has brought it here. Nothing in this file waits. The server
// evicts without a word: what was put last is taken to be there, as much as the server holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/redis_socket.h"
#include "core/mutex.h"
#include "cutwater/cache.h"

namespace cutwater::redis {

// A value that was put.
struct Arrival {
  std::uint64_t form = 0, draw = 0;
  SampleId sample = 0;
};
std::string encode(const Arrival& arrival);
std::optional<Arrival> decode_arrival(std::string_view bytes);

// What a job tells the others. Who has not seen another's pulse change for a while counts it as
// gone: no two machines have to agree on the time.
struct JobNote {
  std::uint64_t pulse = 0, draw = 0, tide = 0, age_ms = 0;  // age: since its epoch began
  bool in_epoch = false;
};
std::string encode(const JobNote& note);
std::optional<JobNote> decode_note(std::string_view text);

// Any thread.
class Seat {
 public:
  explicit Seat(JobOffer offer);

  // See CacheSeat. The number is that of another job which began at most 16 s ago; where there is
  // none, one that changes every 16 s; and never the one that this job had before. What has arrived
  // before and is still there, as far as one can tell, is named at once.
  std::uint64_t begin_epoch(std::uint64_t draw);
  void had(std::uint64_t draw, SampleId sample);
  void leave_epoch();
  void arrivals(std::vector<SampleId>& samples);
  int others() const;
  int others_alike() const;

  std::uint64_t data() const { return offer_.data; }
  const std::string& id() const { return id_; }  // no other job has it

  // For the board: after what to read on (empty: from the beginning), what was read there, and how
  // many values the server held then, at most.
  std::string after() const;
  void add(const std::string& after, const std::vector<Arrival>& arrived, std::size_t room);
  void forget();          // the server has lost all, and tells it from the beginning
  bool has_news() const;  // begun an epoch since the last note
  JobNote note();         // of this job, with another pulse each time
  struct Other {
    JobNote note;
    Clock::time_point began;
  };
  void set_others(std::vector<Other> others);

 private:
  // Put at a fresh cut.
  struct Fresh {
    std::uint64_t draw = 0;
    SampleId sample = 0;
  };

  void name(SampleId sample) CUTWATER_REQUIRES(mutex_);
  std::uint64_t first_there() const CUTWATER_REQUIRES(mutex_);
  void remember(const Arrival& arrival) CUTWATER_REQUIRES(mutex_);

  const JobOffer offer_;
  const std::string id_;
  mutable Mutex mutex_;
  std::uint64_t draw_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::uint64_t tide_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::uint64_t pulse_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool has_news_ CUTWATER_GUARDED_BY(mutex_) = true;
  Clock::time_point began_ CUTWATER_GUARDED_BY(mutex_){};
  std::string after_ CUTWATER_GUARDED_BY(mutex_);
  std::size_t room_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::vector<SampleId> arrived_ CUTWATER_GUARDED_BY(mutex_);
  // By sample: the number of the last time that it was put at a stable cut; 0: never.
  std::vector<std::uint64_t> stable_ CUTWATER_GUARDED_BY(mutex_);
  std::uint64_t count_ CUTWATER_GUARDED_BY(mutex_) = 0;  // the last number
  // By sample: among arrived_, and had in this epoch.
  std::vector<bool> named_ CUTWATER_GUARDED_BY(mutex_), had_ CUTWATER_GUARDED_BY(mutex_);
  std::deque<Fresh> fresh_ CUTWATER_GUARDED_BY(mutex_);  // the latest, twice the data set at most
  std::int64_t left_ CUTWATER_GUARDED_BY(mutex_) = 0;    // samples that the job has yet to get
  std::vector<Other> others_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater::redis
