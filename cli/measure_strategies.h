// SPDX-License-Identifier: Apache-2.0
// Strategies of a plan, run for real.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cutwater/pipeline.h"
#include "cutwater/plan.h"
#include "cutwater/source.h"

namespace cutwater::cli {

struct MeasuredStrategy {
  Strategy predicted;
  double build_s = 0, first_epoch_s = 0, epoch_s = 0, total_s = 0;
  std::optional<double> money = {};  // with prices

  double cost() const { return money.value_or(total_s); }  // by what strategies are chosen
};

// Runs the best `count` strategies that differ in cut, codec or place, the choice first: builds
// stores in a temporary folder, runs the first epoch and some later ones, and reckons the rest.
// Bad samples are skipped. Throws Error: kStale for another source than the plan's, kCancelled
// after ctrl-C; and what the work throws.
std::vector<MeasuredStrategy> measure_strategies(const Plan& plan, std::size_t count,
                                                 const std::shared_ptr<const Source>& source,
                                                 const Pipeline& pipeline, bool progress);

}  // namespace cutwater::cli
