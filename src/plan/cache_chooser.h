// SPDX-License-Identifier: Apache-2.0
// CacheChooser: the best split of a cache under some circumstances.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "plan/engine_fill.h"

namespace cutwater {

struct CacheSetting {
  double jobs = 1, cache_bytes = 0;
  double for_values = 1;  // of the cache's bytes; the rest is its own
  double consumer = 0;    // of one job; 0: no bound
  SharedRates rates;      // those of misses that are not in the page cache
  std::optional<double> window_samples = {};
  Residency residency = Residency::kFits;
  bool storage_given = false;  // a rate that holds for the page cache, too
  bool same_seed = false;
  double epochs = std::numeric_limits<double>::infinity();  // of each job

  // What the jobs take of so many samples per second.
  double consumed(double samples_per_s) const;
};

struct CacheChoice {
  CacheSetting setting;
  SharedRates rates;  // in later epochs
  Sharing sharing;
  bool page_cache = false;     // misses come from there
  double cache_bytes = 0;      // what the page cache leaves
  std::vector<double> shares;  // by form
  Filled filled;
  double samples_per_s = 0;  // that the jobs consume
};

class CacheChooser {
 public:
  // `split`: the only shares to consider; empty: all. REQUIRES: the model outlives this.
  CacheChooser(const CacheModel& model, std::vector<double> split);

  // The split with the most samples per second, as far as it was found; of those within half a
  // percent, one with fewer forms. None at all, where that is done with all epochs clearly sooner.
  CacheChoice best(const CacheSetting& setting) const;
  // In the first epoch, that the jobs consume.
  static double first_samples_per_s(const CacheChoice& choice);
  // Under the same circumstances, with these shares.
  CacheChoice with_shares(CacheChoice like, std::vector<double> shares) const;
  // More bytes than these are of no use.
  double most_bytes() const { return most_bytes_; }

 private:
  // For an access of each epoch, on average.
  static double mean_seconds(const CacheChoice& choice);
  std::vector<CacheChoice> candidates(const CacheSetting& setting) const;
  void search(CacheChoice& choice) const;

  const CacheModel& model_;
  const std::vector<double> split_;
  double most_bytes_ = 0;
};

}  // namespace cutwater
