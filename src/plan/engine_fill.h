// SPDX-License-Identifier: Apache-2.0
// EngineFill: what becomes of a cache for a given split, as the engine fills it. What one of
// several jobs makes is there first for the short time until the others have taken it, or until it
// makes way before they have. In the room that is left, those samples stay for all epochs that save
// the most seconds per byte, whichever resource bounds the jobs. A job that is alone keeps what
// came first, but for what is clearly worth less than the usual sample.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plan/cache_fill.h"

namespace cutwater {

// What makes way for a value in the cache is at most worth this part of it, by the byte.
inline constexpr double kClearlyLess = 0.8;

// What the engine takes a kept sample to be worth: the time of its read, and a thread's until the
// form was there.
double worth_s(const CacheModel& model, const SharedRates& rates, std::size_t form,
               std::size_t sample);

class EngineFill {
 public:
  // `used`: forms with a share there are all that will be asked for; empty: all are. REQUIRES:
  // model and rates outlive this.
  EngineFill(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
             double cache_bytes, std::span<const double> used = {});

  // One share for each form of the model, summing to at most 1; the rest is never kept.
  Filled with(std::span<const double> shares) const;

 private:
  // A sample that would stay.
  struct Step {
    std::size_t form = 0, sample = 0;
    double bytes = 0, density = 0;
  };
  // What a lone job keeps: this part of the samples from `least` on; below, the best in what is
  // left.
  struct Kind {
    double least = 0, part = 1;
    double part_of(const Step& step) const { return step.density < least ? 1 : part; }
  };
  Kind kept_alone(std::span<const double> shares, double room) const;
  // What an access takes now, and would take if one more sample stayed, for so many bytes.
  struct Next {
    Amounts now, then;
    double bytes = 0;
  };
  Filled with(std::span<const double> shares, double stretch) const;
  Sharing sharing_in(double room, double mean_bytes, double stretch) const;
  std::vector<std::vector<std::size_t>> groups(std::span<const double> shares) const;
  double keep(std::span<const double> shares, double room, double stretch, Fill& fill,
              std::optional<Next>& next) const;
  double mean_bytes(std::span<const double> shares) const;

  const CacheModel& model_;
  const SharedRates& rates_;
  const Keeping keeping_;
  const Fill not_kept_;
  const double budget_;      // per sample of the data set
  std::vector<Step> steps_;  // the densest first
};

}  // namespace cutwater
