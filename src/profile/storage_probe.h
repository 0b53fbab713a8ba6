// SPDX-License-Identifier: Apache-2.0
// What reading and writing cost here. A few seconds at most; what cannot be measured stays
// zero.
#pragma once

#include <cstdint>
#include <span>

#include "cutwater/profile.h"
#include "profile/measure.h"

namespace cutwater {

// Whether each sample is a file of its own. REQUIRES: ids is not empty.
bool reads_files(const Source& source, std::span<const SampleId> ids);

// Warm reads as the threads of the team do them together; cold reads of the samples' own files, and
// of a temporary file in TMPDIR that is written first.
StorageProfile probe_storage(const Source& source, std::span<const SampleId> ids, Team& team,
                             Measure& measure);

}  // namespace cutwater
