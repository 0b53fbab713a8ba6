// SPDX-License-Identifier: Apache-2.0
// What to keep in a cache that jobs share, so that all of them together get the most samples per
// second: a linear program over every profiled sample, every form and how it is kept.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "plan/cache_model.h"

namespace cutwater {

// A sample is not kept; or it passes: one of the jobs makes it, the others take it from the cache
// soon after, and it makes way; or it is resident, and all jobs take it from the cache.
struct Sharing {
  double jobs = 1;
  // Of the samples that pass, this share is in the cache at any time: on its way from the job that
  // made them to the last one that takes them.
  double window_share = 0;
  // Of CacheModel::fresh: jobs of one seed hand it to each other. One of them makes it of a miss or
  // of a resident stable form; nothing else passes then.
  std::optional<std::size_t> fresh = {};
};

struct FormUse {
  double share = 0;           // of the samples that are assigned to the form
  double resident_share = 0;  // of all samples: resident in it
  double bytes = 0;           // per sample of the data set, those that pass included
};

// Averages over all accesses, or per sample of the data set.
struct Fill {
  Amounts later, first;  // in the first epoch, the cache is empty
  double bytes = 0, window_bytes = 0;
  double hit_rate = 0;
  std::vector<FormUse> forms;  // as in the model

  void add(double times, const Fill& other);
};

struct Filled {
  Fill fill;
  double samples_per_s = 0;  // of all jobs together; what they consume is no bound here
  // What the rate hangs on: shares of the resources, summing to one.
  std::array<double, Demand::kResources> weights{};
  // Seconds of an access, at the resources that bound it, that must be saved per byte to be kept.
  double price = 0;
};

enum class Freedom {
  kPerSample,  // every sample in the form that is best for it: a bound, no engine knows so much
  kSplit,      // shares of the samples by form, whichever samples that are; slow ones stay longest
};

Filled fill_cache(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                  double cache_bytes, Freedom freedom);

// The same for given shares, one for each form of the model, summing to at most 1; the others are
// never kept.
Filled fill_by_shares(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                      double cache_bytes, std::span<const double> shares);

}  // namespace cutwater
