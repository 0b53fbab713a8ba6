// SPDX-License-Identifier: Apache-2.0
#include "cutwater/options.h"

#include <cctype>
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

namespace {

std::shared_ptr<Cache> cache_of_size(const std::string& text) {
  const std::uint64_t bytes = parse_bytes("cache", text);
  const std::size_t usable = usable_memory_bytes();
  if (bytes > usable)
    throw Error(Code::kInvalidArgument,
                "cache " + bytes_text(bytes) + " is more than the " + bytes_text(usable) +
                    " of memory that this process may use; make it smaller");
  return memory_cache(bytes);
}

// Texts that are no size, by how they begin.
struct CacheScheme {
  std::string_view begin;
  bool whole;  // nothing may follow
  std::shared_ptr<Cache> (*open)(const std::string& text);
  const char* example;
};
constexpr CacheScheme kCacheSchemes[] = {
    {"shared", true, [](const std::string&) { return shared_cache(""); }, "shared"},
    {"unix:", false,
     [](const std::string& text) {
       return shared_cache(text.substr(std::string_view("unix:").size()));
     },
     "unix:PATH"},
    {"redis://", false, redis_cache, "redis://HOST"},
    {"rediss://", false, redis_cache, "rediss://HOST"},
    {"redis+unix://", false, redis_cache, "redis+unix://PATH"},
};

}  // namespace

std::shared_ptr<Cache> cache_named(std::string_view text) {
  std::string known = "a size such as 8GiB";
  for (const CacheScheme& scheme : kCacheSchemes) {
    if (scheme.whole ? text == scheme.begin : text.starts_with(scheme.begin))
      return scheme.open(std::string(text));
    known += std::string(", ") + scheme.example;
  }
  if (text.empty() || (std::isdigit(static_cast<unsigned char>(text[0])) == 0 && text[0] != '.'))
    throw Error(Code::kInvalidArgument,
                "cache must be " + known + "; got '" + std::string(text) + "'");
  return cache_of_size(std::string(text));
}

}  // namespace cutwater
