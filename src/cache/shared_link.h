// SPDX-License-Identifier: Apache-2.0
// A process's link to a daemon that may come and go: a thread looks after the connection, and finds
// the daemon again when it is back.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/attachment.h"
#include "cache/forks.h"
#include "cache/shared_seat.h"
#include "core/mutex.h"

namespace cutwater::cache {

// Any thread. What is asked while there is no daemon is a miss or a refusal at once.
class Link {
 public:
  // Tries once; where that fails, the thread goes on trying. Throws Error(kInvalidArgument) for a
  // path that cannot be.
  explicit Link(const std::string& path);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // False in a fork: there it must not be touched, nor destroyed.
  bool mine() const { return forks_ == forks(); }

  CacheValue get(const CacheKey& key);
  bool has(const CacheKey& key) const;
  bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const;
  bool put(const CacheKey& key, std::size_t size, double seconds, const Cache::Fill& fill);
  void drop(const CacheKey& key);
  std::shared_ptr<LastingSeat> seat(const JobOffer& offer);
  std::string trouble() const;
  CacheStats stats() const;

 private:
  struct Attached {
    std::shared_ptr<Attachment> attachment;
    std::shared_ptr<Reader> reader;
  };
  Attached attached() const;
  bool attach();
  void detach();
  // False: somebody stands still.
  bool seat_all();
  static bool seat_one(const Attached& at, LastingSeat& seat);
  void look_after();
  bool refuse();

  const std::uint64_t forks_ = forks();
  const std::string path_;
  const std::shared_ptr<const Descriptor> wake_;  // attachments may outlive the link

  // Readers of attached_ hold mutex_ shared, and only while reading_: so whoever wants to change it
  // is never kept waiting by them.
  std::atomic<bool> reading_{false};
  mutable std::shared_mutex mutex_;
  Attached attached_;

  mutable Mutex books_;
  std::string trouble_ CUTWATER_GUARDED_BY(books_);  // why there is no daemon
  std::vector<std::weak_ptr<LastingSeat>> seats_ CUTWATER_GUARDED_BY(books_);

  // That no daemon knows of. Damaged are those that were dropped: that is what dropping is for.
  std::atomic<std::int64_t> misses_{0}, refused_{0}, damaged_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace cutwater::cache
