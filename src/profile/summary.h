// SPDX-License-Identifier: Apache-2.0
// A profile for people, and for programs that want means.
#pragma once

#include <string>

#include "cutwater/profile.h"

namespace cutwater {

std::string profile_table(const Profile& profile);
// One JSON object; sizes and times are means per sample.
std::string profile_json(const Profile& profile);

}  // namespace cutwater
