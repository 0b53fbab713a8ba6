// SPDX-License-Identifier: Apache-2.0
// Reader: what one client reads of a segment: a hit takes no lock, no system call and no copy.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "cache/segment.h"

namespace cutwater::cache {

class Audience;

// Any number of threads may use one.
class Reader : public std::enable_shared_from_this<Reader> {
 public:
  // REQUIRES: Keeper::open_client() has given this number. `link` lives until the last value is
  // let go: the client must not be closed before, or the bytes may change under whoever holds them.
  static std::shared_ptr<Reader> make(std::shared_ptr<Segment> segment, int client,
                                      std::shared_ptr<const void> link = nullptr);

  // A value, held by one of the client's pins; nothing: a miss, or no pin is free. Counts.
  CacheValue get(const CacheKey& key);

  // Cache::has. It may be gone a moment later.
  bool has(const CacheKey& key) const;

  // Cache::has_room: a place is free, or something that is there would make way. It looks at some
  // values as the writer will, and knows what each is of use for; it takes no system call.
  bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const;

  const std::shared_ptr<Segment>& segment() const { return segment_; }
  int client() const { return client_; }

 private:
  Reader(std::shared_ptr<Segment> segment, int client, std::shared_ptr<const void> link);
  bool has_free_way(const CacheKey& key) const;
  bool is_beyond_quota(std::uint64_t size) const;
  bool something_makes_way(const Audience& audience, double density,
                           std::optional<std::uint64_t> data) const;

  const std::shared_ptr<Segment> segment_;
  const int client_;
  const std::shared_ptr<const void> link_;
  mutable std::atomic<std::uint64_t> looks_{0};
};

}  // namespace cutwater::cache
