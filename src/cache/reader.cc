// SPDX-License-Identifier: Apache-2.0
#include "cache/reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cache/forks.h"
#include "cache/index.h"
#include "cache/residents.h"
#include "cache/seats.h"

namespace cutwater::cache {
namespace {

// Each thread begins to look for a free pin in a line of its own.
std::size_t first_pin_of_thread() {
  static std::atomic<std::size_t> threads{0};
  thread_local const std::size_t mine = threads.fetch_add(1, std::memory_order_relaxed);
  return mine * 8;
}

// Sets a free pin. Null: there is none.
Word* pin(const Segment& segment, int client, std::uint64_t offset) {
  const std::span<Word> pins = segment.pins(client);
  Word& high = segment.client(client).pins_high;
  const std::size_t first = first_pin_of_thread();
  for (std::size_t i = 0; i < pins.size(); ++i) {
    const std::size_t slot = (first + i) % pins.size();
    if (pins[slot].load(std::memory_order_relaxed) != 0) continue;
    std::uint64_t now = high.load(std::memory_order_seq_cst);
    while (now <= slot && !high.compare_exchange_weak(now, slot + 1, std::memory_order_seq_cst)) {
    }
    std::uint64_t free = 0;
    if (pins[slot].compare_exchange_strong(free, offset, std::memory_order_seq_cst))
      return &pins[slot];
  }
  return nullptr;
}

// What holds a value: its pin is taken away with the last copy; not by a fork's copy.
class Hold {
 public:
  Hold(std::shared_ptr<const Reader> reader, Word& pin)
      : reader_(std::move(reader)), pin_(pin), forks_(forks()) {}
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() {
    if (forks_ == forks()) pin_.store(0, std::memory_order_release);
  }

 private:
  const std::shared_ptr<const Reader> reader_;
  Word& pin_;
  const std::uint64_t forks_;
};

}  // namespace

Reader::Reader(std::shared_ptr<Segment> segment, int client, std::shared_ptr<const void> link)
    : segment_(std::move(segment)), client_(client), link_(std::move(link)) {}

std::shared_ptr<Reader> Reader::make(std::shared_ptr<Segment> segment, int client,
                                     std::shared_ptr<const void> link) {
  return std::shared_ptr<Reader>(new Reader(std::move(segment), client, std::move(link)));
}

CacheValue Reader::get(const CacheKey& key) {
  const Spots spots = spots_of(key, segment_->shape().sets);
  ClientRecord& client = segment_->client(client_);
  for (const std::uint64_t set_number : spots.sets)  // both at once: memory is slow
    __builtin_prefetch(&segment_->index()[set_number].tags);
  for (const std::uint64_t set_number : spots.sets) {
    const IndexSet& set = segment_->index()[set_number];
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set.tags[way].load(std::memory_order_relaxed) != spots.tag) continue;
      const Entry& entry = set.ways[way];
      const std::optional<EntryView> view = read_entry(entry);
      if (!view || !(view->key == key) || !segment_->inside(view->offset, view->size)) continue;
      Word* const pinned = pin(*segment_, client_, view->offset);
      if (pinned == nullptr) {
        client.unpinned.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      std::shared_ptr<const Hold> hold;
      try {
        hold = std::make_shared<const Hold>(shared_from_this(), *pinned);
      } catch (...) {
        pinned->store(0, std::memory_order_release);
        throw;
      }
      // If it is still valid, the writer has not yet asked who holds it.
      if (entry.version.load(std::memory_order_seq_cst) != view->version) continue;
      client.hits.fetch_add(1, std::memory_order_relaxed);
      return {segment_->bytes(view->offset, view->size), std::move(hold)};
    }
  }
  client.misses.fetch_add(1, std::memory_order_relaxed);
  return {};
}

bool Reader::has(const CacheKey& key) const {
  const Spots spots = spots_of(key, segment_->shape().sets);
  for (const std::uint64_t set_number : spots.sets) {
    const IndexSet& set = segment_->index()[set_number];
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set.tags[way].load(std::memory_order_relaxed) != spots.tag) continue;
      const std::optional<EntryView> view = read_entry(set.ways[way]);
      if (view && view->key == key) return true;
    }
  }
  return false;
}

bool Reader::has_room(const CacheKey& key, std::size_t bytes, double seconds) const {
  const Header& header = segment_->header();
  const Shape& shape = segment_->shape();
  if (bytes > shape.end() - shape.arena_at()) return false;
  const std::uint64_t size = std::max<std::uint64_t>(bytes, 1);  // free ranges are in granules
  const Audience audience(*segment_);
  const double worth = Residents::worth_of(seconds, audience.uses(key));
  if (worth <= 0 && audience.sits_at(key.data)) return false;
  // What saves nothing gets what is free, and the place of what nobody can use any more.
  const double density =
      seconds > 0 ? worth / static_cast<double>(size) : std::numeric_limits<double>::min();
  if (is_beyond_quota(size)) return seconds > 0 && something_makes_way(audience, density, key.data);
  if (size <= header.largest_free.load(std::memory_order_relaxed) && has_free_way(key)) return true;
  return header.no_place.load(std::memory_order_relaxed) == 0 &&
         something_makes_way(audience, density, std::nullopt);
}

bool Reader::is_beyond_quota(std::uint64_t size) const {
  const std::uint64_t quota = segment_->client(client_).quota.load(std::memory_order_relaxed);
  return quota != 0 && (size + kGranule - 1) / kGranule * kGranule > quota - 1;
}

bool Reader::has_free_way(const CacheKey& key) const {
  const Spots spots = spots_of(key, segment_->shape().sets);
  return std::ranges::any_of(spots.sets, [this](std::uint64_t set) {
    const auto& tags = segment_->index()[set].tags;
    return std::ranges::any_of(
        tags, [](const Word& tag) { return tag.load(std::memory_order_relaxed) == 0; });
  });
}

// Beyond a quota only the user's own values make way. Whose a value is, is not said here; but those
// of one data set are one user's.
bool Reader::something_makes_way(const Audience& audience, double density,
                                 std::optional<std::uint64_t> data) const {
  constexpr std::uint64_t kLookForOwn = 4 * Residents::kLook;  // some are others'
  const std::span<const Word> roll = segment_->roll();
  const std::uint64_t there = std::min<std::uint64_t>(
      segment_->header().entries.load(std::memory_order_relaxed), roll.size());
  const std::uint64_t looks = std::min<std::uint64_t>(there, data ? kLookForOwn : Residents::kLook);
  std::uint64_t at = looks < there ? looks_.fetch_add(looks, std::memory_order_relaxed) : 0;
  for (const std::uint64_t end = at + looks; at < end; ++at) {
    const std::uint64_t place = looks < there ? hash_of(at, 0) % there : at;
    const std::uint64_t number = roll[place].load(std::memory_order_relaxed);
    if (number >= segment_->shape().entries()) continue;
    const auto view = read_entry(segment_->entry(static_cast<std::uint32_t>(number)));
    if (!view || view->key.data != data.value_or(view->key.data)) continue;
    const double worth = Residents::worth_of(view->seconds, audience.uses(view->key));
    if (worth < Residents::kClearlyLess * density * static_cast<double>(view->size)) return true;
  }
  return false;
}

}  // namespace cutwater::cache
