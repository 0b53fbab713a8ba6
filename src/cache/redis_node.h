// SPDX-License-Identifier: Apache-2.0
// One Redis server as we know it: its idle connections, whether it answers, how much room it has.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cache/redis_connection.h"
#include "core/mutex.h"

namespace cutwater::redis {

// What the server says about itself.
struct Census {
  std::size_t used = 0;
  std::size_t limit = 0;  // maxmemory; where there is none, the memory of its machine; 0: not known
  bool evicts = false;    // when it is full, values make way
  std::int64_t keys = 0, evicted = 0;
};
// `besides`: keys that are not to be counted, if they are there.
Census census_of(Connection& link, Deadline deadline, const std::vector<std::string>& besides = {});

// Any thread.
class Node {
 public:
  Node(Endpoint endpoint, std::vector<Address> addresses)
      : endpoint_(std::move(endpoint)), addresses_(std::move(addresses)) {}

  const Endpoint& endpoint() const { return endpoint_; }

  // A thread that uses the node has one connection; it is idle in between. Null: none is.
  std::unique_ptr<Connection> take_idle();
  std::unique_ptr<Connection> connect(const Url& url, const Tls* tls, Deadline deadline) const;
  void give_back(std::unique_ptr<Connection> link);  // unless answers are outstanding

  bool is_down() const { return is_down_.load(std::memory_order_acquire); }
  void set_down(const std::string& why);
  void set_up();
  std::string trouble() const;  // why it is down, or takes nothing; empty: all is well

  // A trip that somebody has waited for. Of slow ones at the same time one counts: they may have
  // met one accident. True: it was slow, as those before it, and now there are as many as make a
  // node a slow one; it is said once.
  bool add_trip(bool is_slow, Clock::time_point began, Clock::time_point ended);
  bool was_ever_quick() const { return was_ever_quick_.load(std::memory_order_relaxed); }

  void set_census(const Census& census);
  Census census() const;
  // As far as we know: the census, what we have put since, and whether it has refused just now.
  bool has_room(std::size_t bytes) const;
  void set_taken(std::size_t bytes);
  void set_refused(const std::string& why);  // a value, in the server's words

 private:
  const Endpoint endpoint_;
  const std::vector<Address> addresses_;
  std::atomic<bool> is_down_{false}, was_ever_quick_{false};
  std::atomic<int> slow_trips_{0};  // since the last quick one; they grow under the mutex

  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ CUTWATER_GUARDED_BY(mutex_);
  std::string trouble_ CUTWATER_GUARDED_BY(mutex_);
  Clock::time_point slow_until_ CUTWATER_GUARDED_BY(mutex_);  // the end of the last that counted
  Census census_ CUTWATER_GUARDED_BY(mutex_);
  Clock::time_point refuses_until_ CUTWATER_GUARDED_BY(mutex_);
  std::chrono::milliseconds pause_ CUTWATER_GUARDED_BY(mutex_){0};
};

}  // namespace cutwater::redis
