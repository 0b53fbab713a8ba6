// SPDX-License-Identifier: Apache-2.0
#include "cutwater/options.h"

#include <string>

#include "core/machine.h"
#include "core/units.h"
#include "cutwater/error.h"

namespace cutwater {

Order order_named(std::string_view name) {
  if (name == "strict") return Order::kStrict;
  if (name == "ready") return Order::kReady;
  throw Error(Code::kInvalidArgument,
              "order must be strict or ready, got '" + std::string(name) + "'");
}

OnError on_error_named(std::string_view name) {
  if (name == "raise") return OnError::kRaise;
  if (name == "skip") return OnError::kSkip;
  if (name == "substitute") return OnError::kSubstitute;
  throw Error(Code::kInvalidArgument,
              "on_error must be raise, skip or substitute, got '" + std::string(name) + "'");
}

std::shared_ptr<Cache> cache_named(std::string_view text) {
  const std::uint64_t bytes = parse_bytes("cache", text);
  const std::size_t usable = usable_memory_bytes();
  if (bytes > usable)
    throw Error(Code::kInvalidArgument,
                "cache " + bytes_text(bytes) + " is more than the " + bytes_text(usable) +
                    " of memory that this process may use; make it smaller");
  return memory_cache(bytes);
}

}  // namespace cutwater
