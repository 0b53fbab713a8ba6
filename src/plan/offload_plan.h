// SPDX-License-Identifier: Apache-2.0
// The plan of a server near the storage.
#pragma once

#include <string>

#include "cutwater/plan.h"

namespace cutwater {

// REQUIRES: options were checked, and have a policy of offload.
Plan make_offload_plan(const Profile& profile, const PlanOptions& options);

// "77 % excerpt, 23 % raw"; small shares are put together.
std::string shares_text(const OffloadOutcome& outcome);

// What the sentences of such a plan are made of besides the plan itself.
struct OffloadFacts {
  OffloadOutcome raw;           // nothing offloaded
  std::size_t bad_samples = 0;  // of the profiled ones
  bool excerpts_known = false, fresh_known = false;
  int profile_threads = 1;
};
// Fills reason and notes.
void put_offload_into_words(Plan& plan, const OffloadFacts& facts);
// The policies as a table, and what each sends.
std::string offload_table_text(const Plan& plan);

}  // namespace cutwater
