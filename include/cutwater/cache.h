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

// 128 bits that name a data set, a prefix of a pipeline and a codec: two data sets, two crop sizes
// or two codecs in one cache never meet.
struct CacheSpace {
  std::uint64_t high = 0, low = 0;
  bool operator==(const CacheSpace&) const = default;
};
CacheSpace cache_space(std::string_view data_identity, std::string_view fingerprint,
                       const Codec& codec);

struct CacheKey {
  CacheSpace space;
  SampleId sample = 0;
  std::uint64_t draw = 0;  // 0: stable. A fresh form is one draw's: its version stands here
  bool operator==(const CacheKey&) const = default;
};

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

struct CacheStats {
  std::size_t bytes = 0, limit = 0;  // bytes: values and all that the cache keeps beside them
  std::int64_t entries = 0, hits = 0, misses = 0, refused = 0;
};

// Every method may be called from any thread. What a back end cannot do (full, gone, damaged) is a
// miss or a refusal, never an exception: whoever asks can do the work himself.
class Cache {
 public:
  virtual ~Cache() = default;

  // Nothing: a miss.
  virtual CacheValue get(const CacheKey& key) = 0;

  // Whether a value of so many bytes would be taken, as far as one can tell beforehand.
  virtual bool has_room(std::size_t bytes) const = 0;

  // Keeps a value of `size` bytes under a key that has none yet; `fill` writes it to its place, and
  // what `fill` throws is thrown on. False: refused, because the cache is full or the key taken.
  using Fill = std::function<void(std::span<std::uint8_t> place)>;
  virtual bool put(const CacheKey& key, std::size_t size, const Fill& fill) = 0;

  // Whether the bytes lie where others can write, too: then a value has to prove itself.
  virtual bool shared() const = 0;

  virtual CacheStats stats() const = 0;
};

// What a cache did for one loader.
struct CacheReport {
  struct Form {
    std::string cut;  // its name
    std::int64_t entries = 0, hits = 0;
    std::size_t bytes = 0;
  };
  std::int64_t hits = 0, misses = 0;  // samples that it had, and that had to be read
  std::int64_t damaged = 0;           // of the misses: what it had was not what was kept
  std::int64_t refused = 0;           // samples that it was to keep, and could not
  std::vector<Form> forms;            // that the loader has put there
  std::int64_t entries = 0;           // of the cache, by whomever
  std::size_t bytes = 0, limit = 0;
  std::string cut, codec, why;  // where samples are kept, and how that was chosen
  double seconds = 0;           // looking up, decoding and keeping, summed over threads
};

// In this process: as many values as fit, first come, first kept; never evicted. `limit_bytes`
// bounds everything, index included. Throws Error(kIo) where the system refuses the address space.
std::shared_ptr<Cache> memory_cache(std::size_t limit_bytes);

}  // namespace cutwater
