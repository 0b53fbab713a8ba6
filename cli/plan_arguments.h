// SPDX-License-Identifier: Apache-2.0
// The options of a plan, as plan and report take them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cutwater/plan.h"

namespace cutwater::cli {

struct PlanArguments {
  std::string policy = "auto", page_cache = "fits", disk, memory;
  std::int64_t epochs = PlanOptions{}.epochs;
  int threads = 0;
  double consumer = 0;
  int jobs = 1;
  std::int64_t window = 0;
  bool same_seed = false, processes = false;
  std::string storage_rate, cache_rate, link_rate, split;
  int storage_threads = 0;
  double storage_speed = 1;
  Prices prices;
};

void add_plan_arguments(CLI::App& verb, PlanArguments& arguments);

// Throws Error(kInvalidArgument) that names the first one that was given.
void check_no_plan_arguments(const CLI::App& verb);

// What is not given: the free disk of this folder, half of the memory that this process may use.
PlanOptions plan_options(const CLI::App& verb, const PlanArguments& arguments);

}  // namespace cutwater::cli
