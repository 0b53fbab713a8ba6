// SPDX-License-Identifier: Apache-2.0
// What jobs have left in a Redis server or cluster under one prefix: counted, and taken away. Both
// walk over all keys, a few at a time, so that nobody else waits long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cutwater::redis {

struct FormContents {
  std::uint64_t data = 0, form = 0;  // CacheKey's
  std::int64_t entries = 0;
  std::size_t bytes = 0;
};

// Unset: of all.
struct Selection {
  std::optional<std::uint64_t> data = {}, form = {};
};

// All throw Error(kUnavailable) where a server cannot be asked, or refuses.

// By data set and form.
std::vector<FormContents> contents_of(const std::string& url);
// Without a form, also what jobs told each other of the data set: whoever is at it tells it anew.
FormContents clear(const std::string& url, const Selection& which);

}  // namespace cutwater::redis
