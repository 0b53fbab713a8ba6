// SPDX-License-Identifier: Apache-2.0
// The plan of a cache that jobs share.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cache_model.h"

namespace cutwater {

// REQUIRES: options were checked, and have the policy kSeneca.
Plan make_cache_plan(const Profile& profile, const PlanOptions& options);

// "source=0.3,entropy:zstd:1=0.7" as the share of each form of the model, and back, where shares
// are in thousandths and the largest comes first. A cut is named or numbered. Throws
// Error(kInvalidArgument) that says what can stand there.
std::vector<double> shares_of(const CacheModel& model, std::string_view split);
std::string split_text(const CacheModel& model, std::span<const double> shares);

// What the sentences of a cache's plan are made of besides the plan itself.
struct CacheFacts {
  bool page_cache = false;     // misses come from the page cache
  bool storage_known = false;  // its rate, where they do not
  double bad_share = 0;        // of the profiled samples
  double unprepared = 0;       // samples per second without the cache
};
// Fills reason and notes.
void put_cache_into_words(Plan& plan, const CacheFacts& facts);
// The split as a table.
std::string split_table(const Plan& plan);

}  // namespace cutwater
