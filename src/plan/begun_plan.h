// SPDX-License-Identifier: Apache-2.0
// What every plan says of its profile, whatever was decided.
#pragma once

#include <cmath>

#include "cutwater/plan.h"

namespace cutwater {

// Options that were left open are those of the profile.
inline Plan begun_plan(const Profile& profile, const PlanOptions& options, double samples) {
  Plan plan;
  plan.options = options;
  plan.options.threads = options.threads.value_or(profile.threads);
  if (!options.consumer_samples_per_s)
    plan.options.consumer_samples_per_s = profile.consumer_samples_per_s;
  plan.data = profile.data;
  plan.pipeline = profile.pipeline;
  plan.fingerprint = profile.fingerprint;
  plan.source_identity = profile.source_identity;
  plan.samples = std::llround(samples);
  return plan;
}

}  // namespace cutwater
