// SPDX-License-Identifier: Apache-2.0
// The cache in this process: one mapping of the whole limit, which the system fills with pages as
// they are written to. Values are appended and stay; an entry stands before its value and is linked
// into a hash chain when it is complete. So a hit takes no lock, and nothing is outside the limit.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

#include "core/units.h"
#include "cutwater/cache.h"
#include "cutwater/error.h"

namespace cutwater {
namespace {

constexpr std::size_t kAlignment = 64;
// One chain for so many bytes of the limit: chains stay short down to samples of a kilobyte, and
// their heads take a five-hundredth.
constexpr std::size_t kBytesPerChain = 4096;

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Its value follows at once.
struct alignas(kAlignment) Entry {
  CacheKey key;
  std::size_t size;
  const Entry* next;

  std::uint8_t* value() const {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(this + 1));
  }
};
static_assert(sizeof(Entry) == kAlignment);

std::uint64_t mixed(const CacheKey& key) {
  // Data and form are hashes already; sample ids are small numbers, spread by the golden ratio.
  constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15;
  std::uint64_t hash = key.data ^ key.form ^ (static_cast<std::uint64_t>(key.sample) * kSpread);
  hash = (hash ^ key.draw) * kSpread;
  return hash ^ (hash >> 32);
}

class Mapping {
 public:
  explicit Mapping(std::size_t bytes) : bytes_(bytes) {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED)
      throw Error(Code::kIo,
                  "the cache's " + bytes_text(bytes) +
                      " of address space were refused: " + std::generic_category().message(errno) +
                      "; make it smaller, or raise the limit (ulimit -v)");
    data_ = static_cast<std::uint8_t*>(data);
    (void)madvise(data_, bytes_, MADV_HUGEPAGE);  // where it cannot be, small ones do
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(data_, bytes_); }

  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_;
  std::size_t bytes_;
};

class MemoryCache final : public Cache, public std::enable_shared_from_this<MemoryCache> {
 public:
  explicit MemoryCache(std::size_t limit)
      : limit_(limit),
        chains_count_(std::bit_floor(std::max<std::size_t>(limit / kBytesPerChain, 1))),
        used_(rounded(chains_count_ * sizeof(Chain))),
        mapping_(std::max(limit, used_.load())),
        chains_(new (mapping_.data()) Chain[chains_count_]{}) {}

  CacheValue get(const CacheKey& key) override {
    const Entry* const entry = find(chain(key).load(std::memory_order_acquire), key);
    (entry != nullptr ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
    if (entry == nullptr) return {};
    return {{entry->value(), entry->size}, shared_from_this()};
  }

  bool has_room(std::size_t bytes) const override {
    return fits(used_.load(std::memory_order_relaxed), bytes);
  }

  bool put(const CacheKey& key, std::size_t size, double /*seconds*/, const Fill& fill) override {
    Chain& chain = this->chain(key);
    const Entry* head = chain.load(std::memory_order_acquire);
    std::uint8_t* const place = find(head, key) == nullptr ? take(size) : nullptr;
    if (place == nullptr) return refuse();
    auto* const entry = new (place) Entry{key, size, nullptr};
    fill({entry->value(), size});
    do {
      // Somebody may have been faster with the same sample: then this copy's room is lost.
      if (find(head, key) != nullptr) return refuse();
      entry->next = head;
    } while (!chain.compare_exchange_weak(head, entry, std::memory_order_release,
                                          std::memory_order_acquire));
    entries_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  void drop(const CacheKey&) override {}
  std::unique_ptr<CacheSeat> seat(const JobOffer&) override { return nullptr; }
  bool shared() const override { return false; }

  CacheStats stats() const override {
    return {std::min(used_.load(), limit_), limit_, entries_, hits_, misses_, refused_, 0};
  }

 private:
  using Chain = std::atomic<const Entry*>;
  static_assert(Chain::is_always_lock_free);

  Chain& chain(const CacheKey& key) const { return chains_[mixed(key) & (chains_count_ - 1)]; }

  static const Entry* find(const Entry* entry, const CacheKey& key) {
    while (entry != nullptr && !(entry->key == key)) entry = entry->next;
    return entry;
  }

  // Room for an entry and its value; null: there is none.
  std::uint8_t* take(std::size_t size) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (!fits(used, size)) return nullptr;
    } while (!used_.compare_exchange_weak(used, used + sizeof(Entry) + rounded(size),
                                          std::memory_order_relaxed));
    return mapping_.data() + used;
  }

  bool fits(std::size_t used, std::size_t size) const {
    const std::size_t left = limit_ > used ? limit_ - used : 0;
    return size <= left && sizeof(Entry) + rounded(size) <= left;
  }

  bool refuse() {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  const std::size_t limit_, chains_count_;
  std::atomic<std::size_t> used_;  // of the mapping, from its beginning
  const Mapping mapping_;
  Chain* const chains_;
  std::atomic<std::int64_t> entries_{0}, hits_{0}, misses_{0}, refused_{0};
};

}  // namespace

std::shared_ptr<Cache> memory_cache(std::size_t limit_bytes) {
  return std::make_shared<MemoryCache>(limit_bytes);
}

}  // namespace cutwater
