// SPDX-License-Identifier: Apache-2.0
// The policies that solve_offload() is compared with.
#pragma once

#include "plan/offload_model.h"

namespace cutwater {

// An option for each sample; raw where it does not have the one of the rule.
// REQUIRES: policy is not kSophon.
std::vector<std::uint8_t> choice_by_rule(OffloadPolicy policy, const OffloadTable& table,
                                         const OffloadModel& model);

}  // namespace cutwater
