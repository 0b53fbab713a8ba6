// SPDX-License-Identifier: Apache-2.0
// The cache in this process: a segment of its own, whose writer works behind a lock. Values are
// read, and written by whoever puts them, without it.
#include "cache/forks.h"
#include "cache/keeper.h"
#include "cache/reader.h"
#include "cache/seats.h"
#include "core/mutex.h"
#include "cutwater/cache.h"

namespace cutwater {
namespace {

// Looked at with every put for values that nobody can use any more.
constexpr std::size_t kSweep = 16;

class MemoryCache final : public Cache, public std::enable_shared_from_this<MemoryCache> {
 public:
  explicit MemoryCache(std::size_t limit)
      : segment_(cache::Segment::anonymous(limit)),
        keeper_(segment_),
        client_(keeper_.open_client()),
        reader_(cache::Reader::make(segment_, client_)) {
    cache::watch_forks();
  }

  CacheValue get(const CacheKey& key) override { return reader_->get(key); }

  bool has(const CacheKey& key) override { return reader_->has(key); }

  bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const override {
    return mine() && reader_->has_room(key, bytes, seconds);
  }

  bool put(const CacheKey& key, std::size_t size, double seconds, const Fill& fill) override {
    const auto place = mine() ? reserve(key, size, seconds) : std::nullopt;
    if (!place) return false;
    try {
      fill(segment_->bytes(place->offset, size));
    } catch (...) {
      const MutexLock lock(mutex_);
      keeper_.abort(client_, place->token);
      throw;
    }
    const MutexLock lock(mutex_);
    return keeper_.commit(client_, place->token);
  }

  void drop(const CacheKey& key) override {
    if (!mine()) return;
    const MutexLock lock(mutex_);
    keeper_.drop(key);
  }

  std::unique_ptr<CacheSeat> seat(const JobOffer& offer) override {
    const int number = mine() ? join(offer) : -1;
    if (number < 0) return nullptr;
    const auto self = shared_from_this();
    return cache::make_seat(
        reader_, number, [self] { self->sweep(); }, [self, number] { self->leave(number); });
  }

  bool shared() const override { return false; }

  CacheStats stats() const override { return segment_->stats(); }

 private:
  // A fork has the values as they were, and perhaps a lock that nobody will open.
  bool mine() const { return forks_ == cache::forks(); }

  std::optional<cache::Keeper::Place> reserve(const CacheKey& key, std::size_t size,
                                              double seconds) {
    const MutexLock lock(mutex_);
    keeper_.sweep(kSweep);
    return keeper_.reserve(client_, key, size, seconds);
  }
  int join(const JobOffer& offer) {
    const MutexLock lock(mutex_);
    return keeper_.join(client_, offer);
  }
  void leave(int seat) {
    if (!mine()) return;
    const MutexLock lock(mutex_);
    keeper_.leave(client_, seat);
  }
  void sweep() {
    if (!mine()) return;
    const MutexLock lock(mutex_);
    keeper_.sweep();
  }

  const std::uint64_t forks_ = cache::forks();
  Mutex mutex_;
  const std::shared_ptr<cache::Segment> segment_;
  cache::Keeper keeper_ CUTWATER_GUARDED_BY(mutex_);
  const int client_;
  const std::shared_ptr<cache::Reader> reader_;
};

}  // namespace

std::shared_ptr<Cache> memory_cache(std::size_t limit_bytes) {
  return std::make_shared<MemoryCache>(limit_bytes);
}

}  // namespace cutwater
