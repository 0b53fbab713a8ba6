// SPDX-License-Identifier: Apache-2.0
// Figures as a plan's sentences write them.
#pragma once

#include <string>

#include "cutwater/plan.h"

namespace cutwater {

std::string size_text(double bytes);        // "340 GB": decimal, as disks are sold
std::string duration_text(double seconds);  // "4.2 s", "12 min", "3.6 h", "2.1 days"
std::string rate_text(double per_s);        // "1810"
std::string percent_text(double share);     // "34 %"
// "needs 340 GB of disk, 100 GB given"
std::string needs(double bytes, const std::string& what, double given);

// What every plan has to say of its profile: other threads than planned for, bad samples.
void note_profile(Plan& plan, int profile_threads, std::size_t bad_samples);

// What the sentences of a plan are made of besides the plan itself.
struct PlanFacts {
  bool draws_first = false;     // there are ops, and cut 0 is the only stable one
  std::size_t bad_samples = 0;  // of the profiled ones
  bool cold_reads_unknown = false, cold_bytes_unknown = false, write_unknown = false;
  int profile_threads = 1;
  double relative_error = 0;
  Strategy unprepared;
};
// Fills reason and notes.
void put_into_words(Plan& plan, const PlanFacts& facts);

}  // namespace cutwater
