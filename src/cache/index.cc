// SPDX-License-Identifier: Apache-2.0
#include "cache/index.h"

#include <bit>

namespace cutwater::cache {
namespace {

std::uint64_t mixed(std::uint64_t hash) {
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93;
  return hash ^ (hash >> 32);
}

// REQUIRES: count <= 2^32.
std::uint64_t below(std::uint64_t hash, std::uint64_t count) {
  return ((hash >> 32) * count) >> 32;
}

}  // namespace

std::uint64_t hash_of(std::uint64_t data, SampleId sample) {
  return mixed(mixed(static_cast<std::uint64_t>(sample) + 0x9e3779b97f4a7c15) ^ data);
}

Spots spots_of(const CacheKey& key, std::uint64_t sets) {
  const std::uint64_t hash =
      mixed(mixed(hash_of(key.data, key.sample) + key.form) ^ std::rotl(key.draw, 32));
  const std::uint64_t first = below(hash, sets);
  std::uint64_t second = first;
  if (sets > 1) second = (first + 1 + below(mixed(hash), sets - 1)) % sets;
  return {{first, second}, hash != 0 ? hash : 1};
}

// Fields are read with acquire and written with release: who sees a field of the next value also
// sees that the version has gone on.
std::optional<EntryView> read_entry(const Entry& entry) {
  EntryView view;
  view.version = entry.version.load(std::memory_order_acquire);
  if (view.version % 2 == 0) return std::nullopt;
  view.key = key_of(entry);
  view.offset = entry.offset.load(std::memory_order_acquire);
  view.size = entry.size.load(std::memory_order_acquire);
  view.seconds = std::bit_cast<double>(entry.seconds.load(std::memory_order_acquire));
  if (entry.version.load(std::memory_order_relaxed) != view.version) return std::nullopt;
  return view;
}

void fill_entry(Entry& entry, const CacheKey& key, std::uint64_t offset, std::uint64_t size,
                double seconds) {
  entry.data.store(key.data, std::memory_order_release);
  entry.form.store(key.form, std::memory_order_release);
  entry.sample.store(static_cast<std::uint64_t>(key.sample), std::memory_order_release);
  entry.draw.store(key.draw, std::memory_order_release);
  entry.offset.store(offset, std::memory_order_release);
  entry.size.store(size, std::memory_order_release);
  entry.seconds.store(std::bit_cast<std::uint64_t>(seconds), std::memory_order_release);
}

void flip_entry(Entry& entry) { entry.version.fetch_add(1, std::memory_order_seq_cst); }

CacheKey key_of(const Entry& entry) {
  return {entry.data.load(std::memory_order_acquire), entry.form.load(std::memory_order_acquire),
          static_cast<SampleId>(entry.sample.load(std::memory_order_acquire)),
          entry.draw.load(std::memory_order_acquire)};
}

}  // namespace cutwater::cache
