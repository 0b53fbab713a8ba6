// SPDX-License-Identifier: Apache-2.0
// What all profiles have in common, however their samples were measured.
#pragma once

#include <cstdint>
#include <vector>

#include "cutwater/profile.h"

namespace cutwater {

// Names, cuts and constants; no samples yet.
Profile empty_profile(const Source& source, const Pipeline& pipeline);

// Half the 95 % interval of the mean, as a share of it, when these and `bad` others, which have no
// value, are drawn without repetition from `of`.
double relative_error(const std::vector<double>& values, std::size_t bad, std::int64_t of);

}  // namespace cutwater
