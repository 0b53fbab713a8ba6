// SPDX-License-Identifier: Apache-2.0
// What reading, writing and copying cost here. A few seconds at most; what cannot be measured stays
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

// Bytes per second that each thread copies while all do; fresh: into memory that nobody has used
// before, as a cache is filled.
double probe_memory(Team& team, Measure& measure);
enum class Memory : std::uint8_t { kOwn, kShared };  // with other processes, as a daemon's
double probe_fresh_memory(Team& team, Measure& measure, Memory memory);

}  // namespace cutwater
