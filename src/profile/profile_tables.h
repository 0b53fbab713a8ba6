// SPDX-License-Identifier: Apache-2.0
// Which columns of a profile stand in which file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cutwater/profile.h"

namespace cutwater {

// A file of columns, one for each cut, stable or fresh cut, or variant; a row for each sample.
struct ProfileTable {
  std::string_view name;
  std::vector<std::vector<double>*> columns;

  std::string file() const { return std::string(name) + ".npy"; }
};

// The parts that a profile may lack: those of a loader, and of older programs, do.
struct ProfileParts {
  bool fresh = false;    // what it takes to finish fresh cuts, and their variants
  bool excerpt = false;  // ExcerptProfile
};
ProfileParts parts_of(const Profile& profile);

// The tables of these parts and of those that every profile has. They refer to the profile.
std::vector<ProfileTable> tables_of(Profile& profile, const ProfileParts& parts);

}  // namespace cutwater
