// SPDX-License-Identifier: Apache-2.0
// What memory costs here: to copy, to check, and to touch for the first time. What cannot be
// measured stays zero.
#pragma once

#include "profile/measure.h"

namespace cutwater {

// Bytes per second that each thread copies while all do; fresh: into memory that nobody has used
// before, as a cache is filled.
double probe_memory(Team& team, Measure& measure);
double probe_fresh_memory(Team& team, Measure& measure);

// The same of memory that processes share, as a daemon's: others have given it its pages, and this
// one sees them for the first time. Checked: bytes per second that go through a checksum.
struct SharedMemoryRates {
  double copied = 0, checked = 0;
  double checked_again = 0;  // what has been seen before
};
SharedMemoryRates probe_shared_memory(Team& team, Measure& measure);

}  // namespace cutwater
