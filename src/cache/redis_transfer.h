// SPDX-License-Identifier: Apache-2.0
// Values over a connection. Each function returns what the server refused, in its own words; empty:
// nothing. They throw what Connection does.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "cache/redis_connection.h"
#include "cache/redis_value.h"
#include "cutwater/buffer.h"

namespace cutwater::redis {

struct Fetched {
  CacheValue value;
  bool damaged = false;     // there is something, and it is not what was put
  bool incomplete = false;  // there is a part of it: the rest has made way, or has expired
  bool is_something() const { return value || damaged || incomplete; }
};
// One round trip for a value of one chunk, a second for up to 64 more. Bytes go from the socket to
// their place, and are checked on the way, while more are coming.
std::string fetch(Connection& link, const std::string& name, const CacheKey& key, BufferPool& pool,
                  Deadline deadline, Fetched& fetched);

struct Survey {
  std::vector<bool> there;  // by name
  Fetched guessed;          // nothing where an earlier name is there, too
};
// In the same trip as fetch() of the name that is guessed: which of the names have a value. All are
// of one slot.
std::string survey(Connection& link, std::span<const std::string> names, std::size_t guess,
                   const CacheKey& guessed, BufferPool& pool, Deadline deadline, Survey& found);

enum class Stored : std::uint8_t { kKept, kTaken, kRefused };
// The first chunk goes last, and only if the key has none: who sees a header finds its chunks.
std::string store(Connection& link, const std::string& name, const ValueHeader& header,
                  std::span<const std::uint8_t> bytes, std::chrono::milliseconds ttl,
                  Deadline deadline, Stored& stored);

// Takes a value away, with its chunks.
std::string remove(Connection& link, const std::string& name, Deadline deadline);

}  // namespace cutwater::redis
