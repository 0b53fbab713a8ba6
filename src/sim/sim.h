// SPDX-License-Identifier: Apache-2.0
// Jobs that share a cache, simulated sample by sample: the plan, the order of samples and the
// choice of what makes way are the product's own; storage, threads and links are rates.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cutwater/plan.h"

namespace cutwater {

// A machine and a data set in the quantities of the Seneca paper's Tables 5 and 6. Rates of zero:
// no bound.
struct SimMachine {
  std::int64_t samples = 0;
  double sample_bytes = 0;   // S_data: as stored
  double inflation = 5.12;   // M: of decoded and of augmented samples
  double spread = 0;         // of the sizes: the deviation of their logarithm; times go with them
  double decode_rate = 0;    // T_D+A: samples per second of the processor, from the stored bytes…
  double augment_rate = 0;   // T_A: …and from decoded ones
  double consumer_rate = 0;  // T_GPU: of all jobs together
  double storage_bytes_per_s = 0, cache_bytes_per_s = 0, link_bytes_per_s = 0;
};

struct SimOptions {
  int jobs = 1;
  double cache_bytes = 0;
  std::int64_t epochs = 3;
  std::uint64_t seed = 0;
  std::string split = {};           // empty: the plan's
  double scale = 1;                 // of the data set and the cache: a part of it behaves the same
  std::vector<double> speeds = {};  // of the jobs, against each other; empty: all alike
};

struct SimEpoch {
  double hit_rate = 0, samples_per_s = 0;
  std::string bound_by;
  std::array<double, 5> use{};  // of Demand's resources: the share of the time
};

struct SimResult {
  Plan plan;
  std::vector<SimEpoch> epochs;
  std::int64_t samples = 0;                         // that were simulated, of the data set
  std::int64_t issued_twice = 0, never_issued = 0;  // over all jobs and epochs: none
};

// What profiling such a machine would give: cuts "source", "decoded", and the fresh "augmented".
// One sample without spread, else 512. Throws Error(kInvalidArgument) for figures that make no
// sense.
Profile profile_of(const SimMachine& machine);
PlanOptions plan_options_of(const SimMachine& machine, const SimOptions& options);

// Throws Error(kInvalidArgument).
SimResult simulate(const SimMachine& machine, const SimOptions& options);

}  // namespace cutwater
