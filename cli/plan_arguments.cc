// SPDX-License-Identifier: Apache-2.0
#include "plan_arguments.h"

#include <filesystem>

#include "core/machine.h"
#include "core/units.h"
#include "cutwater/cache.h"

namespace cutwater::cli {

void add_plan_arguments(CLI::App& verb, PlanArguments& arguments) {
  verb.add_option("--policy", arguments.policy,
                  "auto, none, presto; seneca: jobs share a cache; sophon, no-off, all-off, "
                  "resize-off, paper: a server near the storage")
      ->check(CLI::IsMember({"auto", "none", "presto", "seneca", "sophon", "no-off", "all-off",
                             "resize-off", "paper"}))
      ->capture_default_str();
  verb.add_option("--epochs", arguments.epochs, "Epochs that training will take")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  verb.add_option("--disk", arguments.disk,
                  "For a store, such as 500GB; 0: no store (default: what is free in this folder)");
  verb.add_option(
      "--memory,--cache", arguments.memory,
      "For caches, the page cache included, such as 64GB; 0: none (default: half of it)");
  verb.add_option("--jobs", arguments.jobs, "seneca: jobs that share the cache, at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb.add_flag("--same-seed", arguments.same_seed, "seneca: the jobs draw alike");
  verb.add_flag("--processes", arguments.processes,
                "seneca: the jobs are processes of their own, around a daemon's cache");
  verb.add_option("--split", arguments.split,
                  "seneca: predict this one, such as source=0.3,decode=0.7 (default: the best)");
  verb.add_option("--storage-rate", arguments.storage_rate,
                  "seneca: at which misses are read, such as 250MB/s (default: the profile's)");
  verb.add_option("--cache-rate", arguments.cache_rate,
                  "seneca: to and from the cache, such as 10Gb/s (default: no bound)");
  verb.add_option(
      "--link,--link-rate", arguments.link_rate,
      "seneca: of storage and cache together; sophon and the like: from storage to here, "
      "such as 500Mb/s (default: no bound)");
  verb.add_option("--storage-threads", arguments.storage_threads,
                  "sophon and the like: threads of the server; 0: none (default: as profiled)")
      ->check(CLI::Range(0, kMostThreads));
  verb.add_option("--storage-speed", arguments.storage_speed,
                  "sophon and the like: of a thread of the server, beside one that was profiled")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb.add_option("--window", arguments.window,
                  "seneca: samples on their way from one job to the others (default: 16 for each "
                  "job, or one percent of all)")
      ->check(CLI::PositiveNumber);
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
  for (const char* name :
       {"--policy",     "--epochs",     "--disk",       "--memory",          "--threads",
        "--consumer",   "--page-cache", "--price-disk", "--price-core-hour", "--months",
        "--jobs",       "--same-seed",  "--processes",  "--split",           "--storage-rate",
        "--cache-rate", "--link",       "--window",     "--storage-threads", "--storage-speed"})
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
  options.cache_books = kCacheBooks;
  options.jobs = arguments.jobs;
  options.same_seed = arguments.same_seed;
  options.processes = arguments.processes;
  options.split = arguments.split;
  if (verb.count("--storage-threads") > 0) options.storage_threads = arguments.storage_threads;
  options.storage_speed = arguments.storage_speed;
  if (arguments.window > 0) options.window_samples = arguments.window;
  const auto rate = [](const char* name, const std::string& text, std::optional<double>& into) {
    if (!text.empty()) into = parse_rate(name, text);
  };
  rate("--storage-rate", arguments.storage_rate, options.storage_bytes_per_s);
  rate("--cache-rate", arguments.cache_rate, options.cache_bytes_per_s);
  rate("--link", arguments.link_rate, options.link_bytes_per_s);
  const bool priced = verb.count("--price-disk") + verb.count("--price-core-hour") > 0;
  if (priced) options.prices = arguments.prices;
  if (!priced && verb.count("--months") > 0)
    throw Error(Code::kInvalidArgument,
                "--months goes with --price-disk or --price-core-hour: without prices, the choice "
                "is the fastest");
  return options;
}

}  // namespace cutwater::cli
