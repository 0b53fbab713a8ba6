// SPDX-License-Identifier: Apache-2.0
// A cluster's map: which node has which of the 16384 slots that keys fall into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/redis_reply.h"
#include "cache/redis_url.h"

namespace cutwater::redis {

constexpr std::uint16_t kSlots = 16384;
// Of keys that have this in braces.
std::uint16_t slot_of(std::string_view tag);

struct SlotRange {
  std::uint16_t first, last;
  Endpoint master;
};
// An answer to CLUSTER SLOTS by the node `asked`. Nothing: it is none.
std::optional<std::vector<SlotRange>> slots_in(const Reply& reply, const Endpoint& asked);

// A node says that a key is elsewhere: for good (MOVED), or for this question (ASK).
struct Redirect {
  bool is_ask = false;
  Endpoint to;
};
std::optional<Redirect> redirect_in(std::string_view error, const Endpoint& asked);

}  // namespace cutwater::redis
