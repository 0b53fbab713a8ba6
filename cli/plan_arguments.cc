// SPDX-License-Identifier: Apache-2.0
#include "plan_arguments.h"

#include <filesystem>

#include "core/machine.h"
#include "core/units.h"

namespace cutwater::cli {

void add_plan_arguments(CLI::App& verb, PlanArguments& arguments) {
  verb.add_option("--policy", arguments.policy, "auto, none or presto")
      ->check(CLI::IsMember({"auto", "none", "presto"}))
      ->capture_default_str();
  verb.add_option("--epochs", arguments.epochs, "Epochs that training will take")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--disk", arguments.disk,
                  "For a store, such as 500GB; 0: no store (default: what is free in this folder)");
  verb.add_option(
      "--memory,--cache", arguments.memory,
      "For caches, the page cache included, such as 64GB; 0: none (default: half of it)");
  verb.add_option("--threads", arguments.threads, "Threads (default: those of the profile)")
      ->check(CLI::Range(1, kMostThreads));
  verb.add_option("--consumer", arguments.consumer, "Samples per second that training can take")
      ->check(CLI::PositiveNumber);
  verb.add_option("--page-cache", arguments.page_cache,
                  "fits: it holds what fits the memory; warm: it holds all, from the start; cold: "
                  "nothing stays in it")
      ->check(CLI::IsMember({"fits", "warm", "cold"}))
      ->capture_default_str();
  verb.add_option("--price-disk", arguments.prices.disk_gb_month,
                  "Money for a GB of disk and a month: the choice is the cheapest")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--price-core-hour", arguments.prices.core_hour, "Money for a core and an hour")
      ->check(CLI::NonNegativeNumber);
  verb.add_option("--months", arguments.prices.months, "Months that a store is kept")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void check_no_plan_arguments(const CLI::App& verb) {
  for (const char* name : {"--policy", "--epochs", "--disk", "--memory", "--threads", "--consumer",
                           "--page-cache", "--price-disk", "--price-core-hour", "--months"})
    if (verb.count(name) > 0)
      throw Error(Code::kInvalidArgument,
                  std::string(name) + " goes with a profile; a plan is made already");
}

PlanOptions plan_options(const CLI::App& verb, const PlanArguments& arguments) {
  PlanOptions options;
  options.policy = policy_named(arguments.policy);
  options.residency = residency_named(arguments.page_cache);
  options.epochs = arguments.epochs;
  options.disk_bytes = arguments.disk.empty() ? std::filesystem::space(".").available
                                              : parse_bytes("--disk", arguments.disk, 0);
  options.memory_bytes = arguments.memory.empty() ? usable_memory_bytes() / 2
                                                  : parse_bytes("--memory", arguments.memory, 0);
  if (arguments.threads > 0) options.threads = arguments.threads;
  if (arguments.consumer > 0) options.consumer_samples_per_s = arguments.consumer;
  const bool priced = verb.count("--price-disk") + verb.count("--price-core-hour") > 0;
  if (priced) options.prices = arguments.prices;
  if (!priced && verb.count("--months") > 0)
    throw Error(Code::kInvalidArgument,
                "--months goes with --price-disk or --price-core-hour: without prices, the choice "
                "is the fastest");
  return options;
}

}  // namespace cutwater::cli
