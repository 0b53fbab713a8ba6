// SPDX-License-Identifier: Apache-2.0
// What lies where in a segment; SEGMENT.md tells it byte by byte. Everything that one process
// writes while another reads is an atomic, and places are offsets: each process maps it elsewhere.
// Zeroed memory is a segment without anything in it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cutwater::cache {

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

inline constexpr std::uint64_t kMagic = 0x3165'6863'6163'7763;  // "cwcache1" in memory
inline constexpr std::uint64_t kLayoutVersion = 3;              // another layout, another number
inline constexpr std::size_t kGranule = 64;  // values begin at multiples, and take multiples
inline constexpr std::size_t kWays = 8;
inline constexpr int kMostClients = 64, kMostSeats = 64, kMostForms = 32;
inline constexpr std::size_t kNameBytes = 64;  // of a job, with its end

// How many of everything. Follows from the limit, so that all of it together stays small beside the
// values: under 5 % of the limit from 1 MiB on.
struct Shape {
  std::uint64_t limit = 0;    // of all that follows, and of what the writer keeps for each entry
  std::uint64_t clients = 0;  // processes that may read and put at the same time
  std::uint64_t pins = 0;     // values that one of them may hold at the same time
  std::uint64_t seats = 0;
  std::uint64_t making = 0;
  std::uint64_t ring = 0;  // arrivals that a seat may be behind
  std::uint64_t sets = 0;  // of the index: 8 entries each

  // What the writer keeps of an entry outside of the segment.
  static constexpr std::uint64_t kWriterBytes = 120;

  // One entry for 4096 bytes: values of 5 KB fill the segment.
  static Shape of(std::uint64_t limit, int most_clients);

  std::uint64_t entries() const { return sets * kWays; }
  // Where each part begins; the arena is the last and ends at end().
  std::uint64_t clients_at() const;
  std::uint64_t seats_at() const;
  std::uint64_t making_at() const;
  std::uint64_t ring_at() const;
  std::uint64_t roll_at() const;
  std::uint64_t index_at() const;
  std::uint64_t arena_at() const;
  std::uint64_t end() const;
  bool operator==(const Shape&) const = default;
};

struct alignas(64) Header {
  std::uint64_t magic, version;
  Shape shape;
  // From here to `arrived`, written by the writer alone.
  Word secured;            // bytes from the beginning that have pages: readers stay below
  alignas(64) Word bytes;  // values, seen bits and everything beside them
  Word largest_free;       // bytes of one piece in the arena
  Word entries, refused, evicted;
  Word past_hits, past_misses;  // of clients that are gone
  alignas(64) Word arrived;     // arrivals written so far
  alignas(64) Word tide;        // see CacheSeat::begin_epoch
  Word no_place;  // a value found none: samples to be had before another makes way for one
};
static_assert(sizeof(Header) == 320);

// Of one process. Its pins follow: a pin is 0, or the offset of a value that is held.
struct alignas(64) ClientRecord {
  Word open;              // 1: taken
  Word pins_high;         // no pin at or past it has ever been set
  Word quota;             // 0: none; else 1 + the bytes that its owner may still have
  alignas(64) Word hits;  // the writer adds them to past_hits when the client goes
  Word misses;
  Word unpinned;  // of the misses: the value was there, but all pins were taken
};
static_assert(sizeof(ClientRecord) == 128);

struct alignas(64) SeatRecord {
  Word taken;          // 0: free; else 1 + the client's number
  Word data, samples;  // of the offer
  Word seen;           // offset of its seen bits: one a sample
  Word forms_count;
  Word draw;             // of its epoch
  Word begun;            // 1: it has begun an epoch
  alignas(64) Word had;  // samples of this epoch that it has had
  Word hads;             // ever, also by those that sat here before
  alignas(64) std::array<Word, kMostForms> forms;
  std::array<char, kNameBytes> name;
};
static_assert(sizeof(SeatRecord) == 448);

// A hash of data and sample, its lowest byte replaced by 1 + the seat's number; 0: free.
using MakingMark = Word;

struct Arrival {
  Word number;  // 1 + its place in the sequence of all; another: it is being overwritten
  Word data, form, sample, draw;
};
static_assert(sizeof(Arrival) == 40);

// An odd version: it is valid. The writer makes it even before it touches anything else here.
struct alignas(64) Entry {
  Word version;
  Word data, form, sample, draw;  // CacheKey
  Word offset, size;              // of the value, from the beginning of the segment
  Word seconds;                   // the bits of a double
};
static_assert(sizeof(Entry) == 64);

struct alignas(64) IndexSet {
  std::array<Word, kWays> tags;  // hash of the key of a way that is taken, or being filled; 0: free
  std::array<Entry, kWays> ways;
};
static_assert(sizeof(IndexSet) == 576);

}  // namespace cutwater::cache
