// SPDX-License-Identifier: Apache-2.0
// cutwater sim: jobs that share a cache, simulated on a machine that is given in figures.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/units.h"
#include "plan/cache_model.h"
#include "sim/sim.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

struct Options {
  SimMachine machine;
  SimOptions sim;
  std::string policy = "seneca", sample_bytes, cache = "0", storage, cache_rate, link;
  bool json = false;
};

SimResult simulated(Options options) {
  SimMachine& machine = options.machine;
  machine.sample_bytes = static_cast<double>(parse_bytes("--sample-bytes", options.sample_bytes));
  options.sim.cache_bytes = static_cast<double>(parse_bytes("--cache", options.cache, 0));
  const auto rate = [](const char* name, const std::string& text) {
    return text.empty() ? 0 : parse_rate(name, text);
  };
  machine.storage_bytes_per_s = rate("--storage-rate", options.storage);
  machine.cache_bytes_per_s = rate("--cache-rate", options.cache_rate);
  machine.link_bytes_per_s = rate("--link-rate", options.link);
  return simulate(machine, options.sim);
}

// The prediction for an epoch beside what became of it.
struct Predicted {
  double samples_per_s = 0, hit_rate = 0;
};
Predicted predicted(const CachePlan& plan, std::size_t epoch, int jobs) {
  if (epoch > 0) return {plan.samples_per_s, plan.hit_rate};
  const double takers = plan.forms.empty() ? 0 : 1 - 1.0 / jobs;
  return {plan.first_epoch_samples_per_s, takers};
}

ordered_json json_of(const SimResult& result, const Options& options) {
  ordered_json epochs = ordered_json::array();
  for (std::size_t e = 0; e < result.epochs.size(); ++e) {
    const SimEpoch& epoch = result.epochs[e];
    const Predicted plan = predicted(*result.plan.cache, e, options.sim.jobs);
    epochs.push_back({{"epoch", e},
                      {"samples_per_s", epoch.samples_per_s},
                      {"hit_rate", epoch.hit_rate},
                      {"bound_by", epoch.bound_by},
                      {"predicted_samples_per_s", plan.samples_per_s},
                      {"predicted_hit_rate", plan.hit_rate}});
  }
  return {{"policy", options.policy},
          {"jobs", options.sim.jobs},
          {"samples", result.samples},
          {"epochs", std::move(epochs)},
          {"issued_twice", result.issued_twice},
          {"never_issued", result.never_issued},
          {"plan", ordered_json::parse(to_json(result.plan))}};
}

void print(const SimResult& result, const Options& options) {
  for (const std::string& sentence : result.plan.reason) std::printf("%s\n", sentence.c_str());
  std::printf("\n%-7s %12s %12s %9s %10s  %s\n", "epoch", "samples/s", "predicted", "hit rate",
              "predicted", "bound by");
  for (std::size_t e = 0; e < result.epochs.size(); ++e) {
    const SimEpoch& epoch = result.epochs[e];
    const Predicted plan = predicted(*result.plan.cache, e, options.sim.jobs);
    std::printf("%-7zu %12.0f %12.0f %8.1f%% %9.1f%%  %s\n", e, epoch.samples_per_s,
                plan.samples_per_s, 100 * epoch.hit_rate, 100 * plan.hit_rate,
                epoch.bound_by.c_str());
  }
  std::printf("%lld samples, %d jobs; issued twice %lld, never issued %lld\n",
              static_cast<long long>(result.samples), options.sim.jobs,
              static_cast<long long>(result.issued_twice),
              static_cast<long long>(result.never_issued));
}

}  // namespace

void add_sim(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("sim", "Jobs that share a cache, simulated on a machine given in figures");
  SimMachine& machine = options->machine;
  SimOptions& sim = options->sim;
  verb->add_option("--policy", options->policy, "seneca: one cache for all jobs")
      ->check(CLI::IsMember({"seneca"}))
      ->capture_default_str();
  verb->add_option("--samples", machine.samples, "Samples of the data set")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--sample-bytes", options->sample_bytes, "Mean bytes of one, such as 114.62KB")
      ->required();
  verb->add_option("--inflation", machine.inflation, "How much larger a decoded sample is")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--spread", machine.spread,
                   "Deviation of the logarithm of sizes; times go with sizes")
      ->check(CLI::Range(0.0, 3.0))
      ->capture_default_str();
  verb->add_option("--decode-rate", machine.decode_rate,
                   "Samples per second that the processor decodes and augments")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--augment-rate", machine.augment_rate,
                   "Samples per second that it augments, decoded ones")
      ->required()
      ->check(CLI::PositiveNumber);
  verb->add_option("--consumer", machine.consumer_rate,
                   "Samples per second that all jobs together can take (default: no bound)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--storage-rate", options->storage, "Such as 250MB/s (default: no bound)");
  verb->add_option("--cache-rate", options->cache_rate, "Such as 10Gb/s (default: no bound)");
  verb->add_option("--link-rate", options->link,
                   "Of storage and cache together (default: no bound)");
  verb->add_option("--cache", options->cache, "Size of the cache, such as 400GB")
      ->capture_default_str();
  verb->add_option("--jobs", sim.jobs, "Jobs at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb->add_option("--speeds", sim.speeds, "Of the jobs, against each other, such as 1,1,2")
      ->delimiter(',');
  verb->add_option("--epochs", sim.epochs, "Epochs of each job")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--seed", sim.seed, "Of the first job's order; the others have the next ones")
      ->capture_default_str();
  verb->add_option("--split", sim.split, "Such as source=0.3,decoded=0.7 (default: the plan's)");
  verb->add_option("--scale", sim.scale, "Simulate this part of the data set and of the cache")
      ->capture_default_str();
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([options] {
    const SimResult result = simulated(*options);
    if (options->json)
      std::printf("%s\n", json_of(result, *options).dump(2).c_str());
    else
      print(result, *options);
  });
}

}  // namespace cutwater::cli
