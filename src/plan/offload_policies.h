// SPDX-License-Identifier: Apache-2.0
// The policies that solve_offload() is compared with.
#pragma once

#include "plan/offload_model.h"

namespace cutwater {

// An option for each sample; raw where it does not have the one of the rule.
// REQUIRES: policy is not kSophon.
std::vector<std::uint8_t> choice_by_rule(OffloadPolicy policy, const OffloadTable& table,
                                         const OffloadModel& model);

// What kPaper's rule comes to where the network is the longest by far, as long as storage takes no
// longer than this.
std::vector<std::uint8_t> paper_on_a_slow_link(const OffloadTable& table, const OffloadModel& model,
                                               double storage_s);

}  // namespace cutwater
