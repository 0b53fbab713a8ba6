// SPDX-License-Identifier: Apache-2.0
// The cache that the jobs of a machine share: a client of `cutwater cache serve`.
#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <string>

#include "cache/forks.h"
#include "cache/shared_link.h"
#include "cutwater/cache.h"

namespace cutwater {
namespace {

using cache::Link;

// Mixed into the data of every key and offer: jobs of two users never meet at one value, whoever
// serves the cache.
std::uint64_t space_of_user() {
  const std::string text = "cutwater user 1\n" + std::to_string(geteuid());
  return XXH3_64bits(text.data(), text.size());
}

class SharedCache final : public Cache {
 public:
  explicit SharedCache(std::string path)
      : path_(path.empty() ? cache::default_socket() : std::move(path)) {
    cache::watch_forks();
    link_ = new Link(path_);
  }
  ~SharedCache() override {
    if (Link* const link = link_.load(); link->mine()) delete link;
  }
  SharedCache(const SharedCache&) = delete;
  SharedCache& operator=(const SharedCache&) = delete;

  CacheValue get(const CacheKey& key) override { return link().get(mine(key)); }
  bool has(const CacheKey& key) override { return link().has(mine(key)); }
  bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const override {
    return link().has_room(mine(key), bytes, seconds);
  }
  bool put(const CacheKey& key, std::size_t size, double seconds, const Fill& fill) override {
    return link().put(mine(key), size, seconds, fill);
  }
  void drop(const CacheKey& key) override { link().drop(mine(key)); }
  std::unique_ptr<CacheSeat> seat(const JobOffer& offer) override {
    JobOffer my_offer = offer;
    my_offer.data ^= space_;
    return cache::face_of(link().seat(my_offer));
  }
  bool shared() const override { return true; }
  bool can_be_searched() const override { return true; }
  std::string trouble() const override { return link().trouble(); }
  CacheStats stats() const override { return link().stats(); }

 private:
  CacheKey mine(CacheKey key) const {
    key.data ^= space_;
    return key;
  }

  // A fork makes a link of its own. What it has of the other's stays as it is: its thread is not
  // here, and its locks may be locked for ever.
  Link& link() const {
    Link* const link = link_.load(std::memory_order_acquire);
    return link->mine() ? *link : renewed(link);
  }
  Link& renewed(Link* others) const {
    auto fresh = std::make_unique<Link>(path_);
    if (link_.compare_exchange_strong(others, fresh.get())) return *fresh.release();
    return *others;
  }

  const std::string path_;
  const std::uint64_t space_ = space_of_user();
  mutable std::atomic<Link*> link_{nullptr};  // owned
};

}  // namespace

std::shared_ptr<Cache> shared_cache(const std::string& socket_path) {
  return std::make_shared<SharedCache>(socket_path);
}

}  // namespace cutwater
