// SPDX-License-Identifier: Apache-2.0
// The cache in a Redis server or cluster. Callers take one round trip, each on a connection of his
// own; one thread in the background reaches servers that were out of reach and exchanges what jobs
// tell each other.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "cache/forks.h"
#include "cache/redis_board.h"
#include "cache/redis_client.h"
#include "cache/redis_transfer.h"
#include "cache/redis_value.h"
#include "core/mutex.h"
#include "cutwater/buffer.h"
#include "cutwater/cache.h"

namespace cutwater {
namespace {

using namespace redis;
using namespace std::chrono_literals;

// Memory of values that were let go, kept for the next: fresh pages cost as much as the transfer.
constexpr std::size_t kIdleBytes = std::size_t{64} << 20;
constexpr std::chrono::milliseconds kFreshLife =
    1h;  // of a form of one draw: nobody tells when all have had it

// What cache and seats share: the client, the board, and the thread that tends them.
class Core {
 public:
  explicit Core(Url url) : client_(std::move(url), [this] { wake(); }), board_(client_) {
    thread_ = std::thread([this] { tend(); });
    // The first attempt, so that a server that is there is of use at once.
    const Deadline deadline = Clock::now() + client_.url().timeout;
    MutexLock lock(mutex_);
    while (!has_tried_ && Clock::now() < deadline)
      (void)changed_.wait_for(mutex_, deadline - Clock::now());
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core() {
    client_.stop();
    {
      MutexLock lock(mutex_);
      is_stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  Client& client() { return client_; }
  Board& board() { return board_; }
  BufferPool& pool() { return *pool_; }

  void wake() {
    MutexLock lock(mutex_);
    is_woken_ = true;
    changed_.notify_all();
  }

 private:
  void tend() {
    for (;;) {
      Clock::time_point next = client_.mend();
      if (const auto again = board_.exchange()) next = std::min(next, *again);
      MutexLock lock(mutex_);
      has_tried_ = true;
      changed_.notify_all();
      while (!is_woken_ && !is_stopping_ && Clock::now() < next)
        (void)changed_.wait_for(mutex_, next - Clock::now());
      is_woken_ = false;
      if (is_stopping_) break;
    }
    (void)board_.exchange(true);  // who leaves says so
  }

  const std::shared_ptr<BufferPool> pool_ = BufferPool::create(kIdleBytes);
  Mutex mutex_;
  Condition changed_;
  bool has_tried_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool is_woken_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool is_stopping_ CUTWATER_GUARDED_BY(mutex_) = false;
  Client client_;
  Board board_;
  std::thread thread_;
};

class RedisSeat final : public CacheSeat {
 public:
  RedisSeat(std::shared_ptr<Core> core, const JobOffer& offer)
      : core_(std::move(core)), seat_(std::make_shared<Seat>(offer)) {
    core_->board().add(seat_);
    core_->wake();
  }
  ~RedisSeat() override {
    if (mine()) {
      core_->board().remove(seat_);
      core_->wake();
    } else {
      // The other process's: its thread is not here, and its locks may be locked for ever.
      (void)new (std::nothrow) std::shared_ptr<Core>(std::move(core_));
    }
  }

  std::uint64_t begin_epoch(std::uint64_t draw) override {
    return mine() ? seat_->begin_epoch(draw) : 0;
  }
  void had(std::uint64_t draw, SampleId sample) override {
    if (mine()) seat_->had(draw, sample);
  }
  void leave_epoch() override {
    if (mine()) seat_->leave_epoch();
  }
  void arrivals(std::vector<SampleId>& samples) override {
    if (mine()) seat_->arrivals(samples);
  }
  int others() const override { return mine() ? seat_->others() : 0; }
  int others_alike() const override { return mine() ? seat_->others_alike() : 0; }
  // Asking another machine takes as long as a hit: each makes what it needs.
  bool start_making(SampleId) override { return true; }
  void made(SampleId) override {}

 private:
  bool mine() const { return forks_ == cache::forks(); }

  const std::uint64_t forks_ = cache::forks();
  std::shared_ptr<Core> core_;
  const std::shared_ptr<Seat> seat_;
};

class RedisCache final : public Cache {
 public:
  explicit RedisCache(Url url) : url_(std::move(url)) {
    cache::watch_forks();
    life_ = new Life(url_);
  }
  RedisCache(const RedisCache&) = delete;
  RedisCache& operator=(const RedisCache&) = delete;
  ~RedisCache() override {
    if (const Life* const life = life_.load(); life->forks == cache::forks()) delete life;
  }

  CacheValue get(const CacheKey& key) override { return taken(key, fetched(key)); }

  // Counts as other back ends do: each key that has nothing is a miss.
  First get_first(std::span<const CacheKey> keys) override {
    if (keys.empty()) return {};
    const std::size_t guess = std::min(guess_.load(std::memory_order_relaxed), keys.size() - 1);
    Survey found = surveyed(keys, guess);
    First first;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Fetched its;
      if (i == guess && found.guessed.is_something())
        its = std::move(found.guessed);
      else if (found.there[i])
        its = fetched(keys[i]);
      first.damaged += its.damaged ? 1 : 0;
      first.value = taken(keys[i], std::move(its));
      if (!first.value) continue;
      first.place = i;
      if (i != guess) guess_.store(i, std::memory_order_relaxed);
      break;
    }
    return first;
  }

  bool has(const CacheKey& key) override {
    bool found = false;
    const std::string name = this->name(key);
    const auto outcome = client().run(
        slot(key),
        [&](Connection& link, Deadline deadline) {
          const Reply reply = link.ask({"EXISTS", name}, deadline);
          found = reply.type == Reply::Type::kNumber && reply.number > 0;
          return reply.is_error() ? reply.text : std::string();
        },
        Client::For::kNobody);
    return outcome.is_done() && found;
  }

  bool has_room(const CacheKey& /*key*/, std::size_t bytes, double /*seconds*/) const override {
    if (bytes > ValueHeader::kMostBytes) return false;
    const auto nodes = client().nodes();
    return std::ranges::any_of(nodes, [&](const auto& node) { return node->has_room(bytes); });
  }

  bool put(const CacheKey& key, std::size_t size, double /*seconds*/, const Fill& fill) override {
    const std::shared_ptr<Node> node = client().node_of(slot(key));
    if (size > ValueHeader::kMostBytes || node == nullptr || !node->has_room(size)) return refuse();
    Buffer buffer = core()->pool().allocate(size);
    fill(buffer.span());
    Checksum checksum(key);
    checksum.add(buffer.view());
    const ValueHeader header{size, client().url().chunk_bytes, checksum.value()};
    const auto ttl = key.draw == 0 ? client().url().ttl : std::min(client().url().ttl, kFreshLife);
    const std::string name = this->name(key);
    Stored stored = Stored::kRefused;
    const auto outcome = client().run(slot(key), [&](Connection& link, Deadline deadline) {
      return store(link, name, header, buffer.view(), ttl, deadline, stored);
    });
    if (!outcome.is_done()) {
      if (outcome.node != nullptr) outcome.node->set_refused(outcome.refusal);
      return refuse();
    }
    if (stored != Stored::kKept) return refuse();
    outcome.node->set_taken(size);
    if (core()->board().announce(key)) core()->wake();
    return true;
  }

  void drop(const CacheKey& key) override {
    (void)client().run(slot(key), [&](Connection& link, Deadline deadline) {
      return remove(link, name(key), deadline);
    });
  }

  std::unique_ptr<CacheSeat> seat(const JobOffer& offer) override {
    return std::make_unique<RedisSeat>(core(), offer);
  }

  bool shared() const override { return true; }
  std::string trouble() const override { return client().trouble(); }

  // Bytes are all that the servers use, their tables and other users included; entries are keys of
  // the database but for our own lists, so a value of several chunks counts as several.
  CacheStats stats() const override {
    CacheStats stats;
    const std::vector<Board::List> lists = core()->board().lists();
    for (const std::shared_ptr<Node>& node : client().nodes()) {
      std::vector<std::string> ours;
      for (const Board::List& list : lists)
        if (client().node_of(list.slot) == node) ours.push_back(list.name);
      (void)client().run_at(node, [&](Connection& link, Deadline deadline) {
        node->set_census(census_of(link, deadline, ours));
        return std::string();
      });
      const Census census = node->census();
      stats.bytes += census.used;
      stats.limit += census.limit;
      stats.entries += census.keys;
      stats.evicted += census.evicted;
    }
    stats.hits = hits_;
    stats.misses = misses_;
    stats.refused = refused_;
    stats.damaged = damaged_;
    return stats;
  }

 private:
  // What is connected, in one process. A fork connects anew and lets the other's be: its
  // connections are the other's, its thread is not here, and its locks may be locked for ever.
  struct Life {
    explicit Life(const Url& url) : core(std::make_shared<Core>(url)), forks(cache::forks()) {}
    const std::shared_ptr<Core> core;
    const std::uint64_t forks;
  };
  const std::shared_ptr<Core>& core() const {
    Life* life = life_.load(std::memory_order_acquire);
    if (life->forks == cache::forks()) return life->core;
    auto fresh = std::make_unique<Life>(url_);
    if (life_.compare_exchange_strong(life, fresh.get())) life = fresh.release();
    return life->core;
  }
  Client& client() const { return core()->client(); }
  std::string name(const CacheKey& key) const { return name_of(client().url().prefix, key); }
  static std::uint16_t slot(const CacheKey& key) { return slot_of(tag_of(key)); }

  Fetched fetched(const CacheKey& key) {
    Fetched fetched;
    const std::string name = this->name(key);
    const auto outcome = client().run(slot(key), [&](Connection& link, Deadline deadline) {
      return fetch(link, name, key, core()->pool(), deadline, fetched);
    });
    return outcome.is_done() ? std::move(fetched) : Fetched();
  }

  // In one trip, what can be found out so. Where that does not go (keys of several samples, a slot
  // that is just moving, a user who may not ask), every key may have a value.
  Survey surveyed(std::span<const CacheKey> keys, std::size_t guess) {
    Survey unknown{std::vector<bool>(keys.size(), true), {}};
    if (keys.size() < 2) return unknown;
    std::vector<std::string> names;
    for (const CacheKey& key : keys) {
      if (key.data != keys[0].data || key.sample != keys[0].sample) return unknown;
      names.push_back(name(key));
    }
    Survey found;
    std::string refusal;
    const auto outcome = client().run(slot(keys[0]), [&](Connection& link, Deadline deadline) {
      refusal = survey(link, names, guess, keys[guess], core()->pool(), deadline, found);
      return std::string();  // a redirection would be that of one key, and not of all
    });
    if (outcome.node == nullptr) return {std::vector<bool>(keys.size(), false), {}};
    if (!outcome.is_done() || !refusal.empty()) return unknown;
    return found;
  }

  CacheValue taken(const CacheKey& key, Fetched fetched) {
    if (fetched.damaged || fetched.incomplete) drop(key);
    if (fetched.damaged) damaged_.fetch_add(1, std::memory_order_relaxed);
    (fetched.value ? hits_ : misses_).fetch_add(1, std::memory_order_relaxed);
    return std::move(fetched.value);
  }

  bool refuse() {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  const Url url_;
  mutable std::atomic<Life*> life_{nullptr};  // owned
  std::atomic<std::int64_t> hits_{0}, misses_{0}, refused_{0}, damaged_{0};
  std::atomic<std::size_t> guess_{0};  // where get_first() was last lucky
};

}  // namespace

std::shared_ptr<Cache> redis_cache(const std::string& url) {
  return std::make_shared<RedisCache>(parse_url(url));
}

}  // namespace cutwater
