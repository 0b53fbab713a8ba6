// SPDX-License-Identifier: Apache-2.0
// What a loader recorded while it ran, as a profile.
#pragma once

#include "cutwater/options.h"
#include "cutwater/profile.h"
#include "run/executor.h"

namespace cutwater {

// Throws Error(kInvalidArgument) where there is no sample in the record.
Profile profile_of(const What& what, const OpRecord::Content& record, const Work& work);

}  // namespace cutwater
