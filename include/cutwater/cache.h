// SPDX-License-Identifier: Apache-2.0
// Cache: bytes by key, kept so that work need not be done again. What the bytes are is their
// keeper's matter (src/variant/form.h); where they lie is the back end's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/sample.h"
#include "cutwater/variant.h"

namespace cutwater {

// Names a value. Two data sets, two crop sizes, two codecs or two versions of a file in one cache
// never meet: each has other numbers here.
struct CacheKey {
  std::uint64_t data = 0;  // data_number() of the data set and the state of its files
  std::uint64_t form = 0;  // form_number() of the prefix of the pipeline, and the codec
  SampleId sample = 0;
  std::uint64_t draw = 0;  // 0: a stable form. A fresh form is one draw's: draw_number()
  bool operator==(const CacheKey&) const = default;
};
std::uint64_t data_number(std::string_view identity);
std::uint64_t form_number(std::string_view fingerprint, const Codec& codec);
// Jobs with one seed draw alike in the same epoch. Never 0.
std::uint64_t draw_number(std::uint64_t seed, std::uint32_t epoch);

// Bytes that are lent: 64-byte aligned, and valid and unchanged while this, or a copy of its hold,
// lives.
class CacheValue {
 public:
  CacheValue() = default;  // nothing
  CacheValue(std::span<const std::uint8_t> bytes, std::shared_ptr<const void> hold)
      : bytes_(bytes), hold_(std::move(hold)) {}

  explicit operator bool() const { return hold_ != nullptr; }
  std::span<const std::uint8_t> bytes() const { return bytes_; }
  const std::shared_ptr<const void>& hold() const { return hold_; }

 private:
  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const void> hold_;
};

// Of a cache's bytes, what index and books take, but in Redis: no more than that, from 1 MiB on.
inline constexpr double kCacheBooks = 0.05;

struct CacheStats {
  std::size_t bytes = 0, limit = 0;  // bytes: values and all that the cache keeps beside them
  std::int64_t entries = 0, hits = 0, misses = 0, refused = 0;
  std::int64_t evicted = 0;  // that made way for others, or that nobody could use any more
  std::int64_t damaged = 0;  // that this client has found to be other than what was put
};

// A job that comes to a cache, and what it can use there.
struct JobOffer {
  std::string name;                  // for people
  std::uint64_t data = 0;            // CacheKey::data
  std::int64_t samples = 0;          // of the data set
  std::vector<std::uint64_t> forms;  // CacheKey::form that it can go on from; at most 32
};

// One job's seat at a cache. The cache knows by it who has yet to see what in his epoch: such
// values stay while others make way. Every method may be called from any thread; none waits for
// another job, and none throws.
class CacheSeat {
 public:
  virtual ~CacheSeat() = default;  // the job leaves

  // Nothing has been seen yet; fresh forms of this draw (or of none: 0) are of use. Whoever begins
  // at about the same time gets the same number: where jobs go through what is resident in one
  // order that follows from it, all have soon had the same, and it makes way.
  virtual std::uint64_t begin_epoch(std::uint64_t draw) = 0;
  // The job has got this sample in the epoch of that draw; nothing happens where it is over.
  virtual void had(std::uint64_t draw, SampleId sample) = 0;
  // Nothing more is wanted until the next begin_epoch().
  virtual void leave_epoch() = 0;
  // Appends samples that have become resident in a form of use to this job, since it was last
  // asked; after begin_epoch(), all that are. Some may be named twice or be gone again.
  virtual void arrivals(std::vector<SampleId>& samples) = 0;
  // Jobs at the same data set, besides this one, in the middle of an epoch…
  virtual int others() const = 0;
  // …and those of them that draw alike: fresh forms are of use to them.
  virtual int others_alike() const = 0;
  // One job makes a sample, others take another meanwhile: false if another is at it just now.
  // Advice: it ends with made(), or when the job goes, and nobody must wait for it.
  virtual bool start_making(SampleId sample) = 0;
  virtual void made(SampleId sample) = 0;
};

// Every method may be called from any thread. What a back end cannot do (full, gone, damaged) is a
// miss or a refusal, never an exception: whoever asks can do the work himself.
class Cache {
 public:
  virtual ~Cache() = default;

  // Nothing: a miss.
  virtual CacheValue get(const CacheKey& key) = 0;

  // The first of some keys that has a value, and its place among them; nothing: none has one. For
  // back ends that are far away: one trip instead of several.
  struct First {
    CacheValue value;
    std::size_t place = 0;
    std::int64_t damaged = 0;  // values that the cache has found damaged on the way, and dropped
  };
  virtual First get_first(std::span<const CacheKey> keys) {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (CacheValue value = get(keys[i])) return {std::move(value), i};
    return {};
  }

  // Whether a key has a value just now. It is no hit, and no miss.
  virtual bool has(const CacheKey& key) = 0;

  // Whether put() would take a value of about so many bytes, as far as one can tell beforehand and
  // without a trip: to make a form that is then refused is work for nothing.
  virtual bool has_room(const CacheKey& key, std::size_t bytes, double seconds) const = 0;

  // Keeps a value of `size` bytes under a key that has none yet; `fill` writes it to its place, and
  // what `fill` throws is thrown on. `seconds`: what a hit saves. Values that are worth less, by
  // the byte and by how many jobs have yet to see them, make way. False: refused, because all that
  // is there is worth as much, or the key is taken.
  using Fill = std::function<void(std::span<std::uint8_t> place)>;
  virtual bool put(const CacheKey& key, std::size_t size, double seconds, const Fill& fill) = 0;

  // Takes away a value that has proved damaged.
  virtual void drop(const CacheKey& key) = 0;

  // A seat for a job; null: this cache knows no jobs.
  virtual std::unique_ptr<CacheSeat> seat(const JobOffer& offer) = 0;

  // Whether the bytes lie where others can write, too: then a value has to prove itself.
  virtual bool shared() const = 0;

  // Whether has() takes no trip, and has_room() knows whether room is free: then what it lacks can
  // be looked for in spare time.
  virtual bool can_be_searched() const { return !shared(); }

  // What is wrong with it, in words, and what happens meanwhile; empty: nothing.
  virtual std::string trouble() const { return {}; }

  virtual CacheStats stats() const = 0;
};

// What a cache did for one loader.
struct CacheReport {
  struct Form {
    std::string cut;  // its name, with the codec if there is one: "flip (fresh)", "decode:lz4"
    std::int64_t entries = 0, hits = 0;
    std::size_t bytes = 0;
  };
  std::int64_t hits = 0, misses = 0;  // samples that it had, and that had to be read
  std::int64_t damaged = 0;           // of the misses: what it had was not what was kept
  std::int64_t refused = 0;           // samples that it was to keep, and could not
  std::int64_t made_ahead = 0;        // samples that were made for it in spare time
  std::vector<Form> forms;            // that the loader has put there, or found there
  std::int64_t entries = 0;           // of the cache, by whomever
  std::int64_t evicted = 0;           // likewise
  std::size_t bytes = 0, limit = 0;
  int jobs = 1;                 // at this data set in the cache just now, this one included
  std::string trouble;          // Cache::trouble(): what is wrong just now
  std::string cut, codec, why;  // where samples are kept, and how that was chosen
  double seconds = 0;           // looking up, decoding and keeping, summed over threads
};

// In this process: as many values as fit. Of equal worth, first come, first kept: without jobs'
// seats, and with seconds and sizes that are alike, nothing is ever evicted. `limit_bytes` bounds
// everything, index included: of values under 4 KB it may hold less. Throws Error(kIo) where the
// system refuses the address space.
std::shared_ptr<Cache> memory_cache(std::size_t limit_bytes);

// The one that `cutwater cache serve` serves at this socket; empty: at its default path. A hit is
// read in place, and the daemon is not asked. Where none answers, that is trouble(), not an error:
// everything is a miss, and a daemon that comes later is found. Throws Error(kInvalidArgument) for
// a path that cannot be.
std::shared_ptr<Cache> shared_cache(const std::string& socket_path);

// In a Redis server or cluster: redis://[user[:password]@]host[:port][/db], by TLS rediss://…, or
// redis+unix:///path; options are in src/cache/redis_url.h. Waits for the first connection, for at
// most the URL's timeout. A server that is not there is no error: trouble() says so, all is a miss
// or a refusal at once, and it is tried again by itself. Throws Error(kInvalidArgument) for a URL
// that cannot be; it names the part, and never shows a password.
std::shared_ptr<Cache> redis_cache(const std::string& url);

}  // namespace cutwater
