// SPDX-License-Identifier: Apache-2.0
// The index of a segment: a key may lie in two sets of eight ways. Entries never move, so a reader
// that finds one changed has missed its value, and need not look again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "cache/segment.h"

namespace cutwater::cache {

// Where a key may lie. The same in every process.
struct Spots {
  std::array<std::uint64_t, 2> sets;  // two different ones, if there are two
  std::uint64_t tag;                  // never 0
};
Spots spots_of(const CacheKey& key, std::uint64_t sets);

std::uint64_t hash_of(std::uint64_t data, SampleId sample);

// What an entry said at one moment.
struct EntryView {
  std::uint64_t version = 0;
  CacheKey key;
  std::uint64_t offset = 0, size = 0;
  double seconds = 0;
};
// Nothing: it is free, being filled, or being changed.
std::optional<EntryView> read_entry(const Entry& entry);

// What the writer does. REQUIRES: it is not valid.
void fill_entry(Entry& entry, const CacheKey& key, std::uint64_t offset, std::uint64_t size,
                double seconds);
// Valid and invalid in turn. A total order with the readers' pins: whoever has pinned an entry and
// then found it valid is seen by the writer after it has made it invalid.
void flip_entry(Entry& entry);
CacheKey key_of(const Entry& entry);  // REQUIRES: nobody changes it

}  // namespace cutwater::cache
