// SPDX-License-Identifier: Apache-2.0
// A profile as a table of options: what can be sent of each profiled sample, and what that takes.
#pragma once

#include <vector>

#include "cutwater/offload.h"
#include "cutwater/profile.h"

namespace cutwater {

struct OffloadColumns {
  // Throws Error(kInvalidArgument) for columns that do not fit together.
  explicit OffloadColumns(const Profile& profile);

  std::vector<OffloadVariant> variants;
  std::vector<OffloadOption> values;
  double weight =
      1;  // samples of the data set for which a row stands, the bad ones' share left out

  OffloadTable table() const { return {values, variants}; }
};

}  // namespace cutwater
