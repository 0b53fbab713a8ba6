// SPDX-License-Identifier: Apache-2.0
// Values over a connection. Each function returns what the server refused, in its own words; empty:
// nothing. They throw what Connection does.
#pragma once

#include <chrono>
#include <span>
#include <string>

#include "cache/redis_connection.h"
#include "cache/redis_value.h"
#include "cutwater/buffer.h"

namespace cutwater::redis {

struct Fetched {
  CacheValue value;
  bool damaged = false;  // there is something, and it is not what was put
};
// One round trip for a value of one chunk, a second for up to 64 more. Bytes go from the socket to
// their place, and are checked on the way, while more are coming.
std::string fetch(Connection& link, const std::string& name, const CacheKey& key, BufferPool& pool,
                  Deadline deadline, Fetched& fetched);

enum class Stored : std::uint8_t { kKept, kTaken, kRefused };
// The first chunk goes last, and only if the key has none: who sees a header finds its chunks.
std::string store(Connection& link, const std::string& name, const ValueHeader& header,
                  std::span<const std::uint8_t> bytes, std::chrono::milliseconds ttl,
                  Deadline deadline, Stored& stored);

// Takes a value away, with its chunks.
std::string remove(Connection& link, const std::string& name, Deadline deadline);

}  // namespace cutwater::redis
