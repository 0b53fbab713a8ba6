// SPDX-License-Identifier: Apache-2.0
// Where jobs on all machines tell each other what they do, for each data set:
//   PREFIX:{DATA}:arrivals   a stream of the values that were put, the last million or so
//   PREFIX:{DATA}:jobs       a hash: job -> its note
// One thread exchanges it all every 50 ms; nobody else waits for the network. The server evicts
// what it likes without a word, so what has arrived may be gone again. Where the last arrival that
// was read is no longer in the stream, the server was emptied or is another: all is read anew.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cache/redis_client.h"
#include "cache/redis_seat.h"
#include "core/mutex.h"
#include "cutwater/cache.h"

namespace cutwater::redis {

class Board {
 public:
  explicit Board(Client& client) : client_(client) {}

  // Any thread. What is too much to be told at once is not told: then others make it, too. True:
  // it is the first since the last exchange().
  bool announce(const CacheKey& key);
  void add(std::shared_ptr<Seat> seat);
  void remove(const std::shared_ptr<Seat>& seat);
  struct List {
    std::uint16_t slot;
    std::string name;
  };
  std::vector<List> lists() const;  // keys of its own that may be there

  // One thread: exchanges what there is to tell, if it is time or `at_once`. Returns when to come
  // again; nothing: after the next announce() or add().
  std::optional<Clock::time_point> exchange(bool at_once = false);

 private:
  // What the notes of a job have shown.
  struct Life {
    std::uint64_t pulse = 0;
    Clock::time_point changed{};
  };
  std::string name(std::uint64_t data, const char* what) const;
  Client::Outcome run(std::uint64_t data, const Client::Work& work) const;
  void tell_arrivals(std::uint64_t data, const std::vector<std::string>& arrivals) const;
  void read_arrivals(Seat& seat) const;
  std::size_t most_values(const Node& asked, const Reply& size) const;
  void exchange_notes(Seat& seat);
  std::vector<std::string> read_notes(Seat& seat, const Reply& reply);  // returns who is gone

  Client& client_;
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::vector<std::string>> untold_ CUTWATER_GUARDED_BY(mutex_);  // by data
  std::size_t untold_count_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::set<std::uint64_t> data_ CUTWATER_GUARDED_BY(mutex_);  // sets that were ever told of
  std::vector<std::shared_ptr<Seat>> seats_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Seat>> leaving_ CUTWATER_GUARDED_BY(mutex_);

  // Of exchange() alone.
  std::map<std::string, Life> lives_;
  Clock::time_point next_{}, next_notes_{};
};

}  // namespace cutwater::redis
