// SPDX-License-Identifier: Apache-2.0
// What to keep in a cache that jobs share, so that all of them together get the most samples per
// second: a linear program over every profiled sample, every form and how it is kept.
#pragma once

#include <array>

#include "plan/keeping.h"

namespace cutwater {

struct Filled {
  Fill fill;
  double samples_per_s = 0;  // of all jobs together; what they consume is no bound here
  // Seconds of an access, at the resources that bound it, that one more byte of cache for each
  // sample would save.
  double price = 0;
};

enum class Freedom {
  kPerSample,  // every sample in the form that is best for it, or not kept
  kSplit,      // shares of the samples by form, whichever samples that are
};

// A bound of what any cache can reach: it knows all prices, and keeps nothing that does not pay.
Filled fill_cache(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                  double cache_bytes, Freedom freedom);

}  // namespace cutwater
