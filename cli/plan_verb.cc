// SPDX-License-Identifier: Apache-2.0
// cutwater plan: what to prepare, and where, or what a server near the storage is to do, from a
// profile; with --measure, the best strategies run.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cutwater/loader.h"
#include "cutwater/plan.h"
#include "measure_strategies.h"
#include "ops/presets.h"
#include "plan_arguments.h"
#include "verbs.h"
#include "write_text.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kRows = 12;

struct Options {
  PlanArguments plan;
  std::string profile, output, data;
  std::size_t measure = 0;
  bool all = false, json = false;
};

ordered_json json_of(const std::vector<MeasuredStrategy>& measured) {
  ordered_json rows = ordered_json::array();
  for (const MeasuredStrategy& m : measured) {
    rows.push_back({{"cut", m.predicted.cut},
                    {"cut_name", m.predicted.cut_name},
                    {"codec", to_string(m.predicted.codec)},
                    {"place", name_of(m.predicted.place)},
                    {"build_s", m.build_s},
                    {"first_epoch_s", m.first_epoch_s},
                    {"epoch_s", m.epoch_s},
                    {"total_s", m.total_s},
                    {"predicted_total_s", m.predicted.total_s}});
    if (!m.money) continue;
    rows.back()["money"] = *m.money;
    rows.back()["predicted_money"] = *m.predicted.money;
  }
  return rows;
}

void print(const std::vector<MeasuredStrategy>& measured) {
  std::printf("\nMeasured, in seconds:\n%-72s %9s %9s %9s %9s %10s\n", "", "build", "first",
              "epoch", "total", "predicted");
  for (const MeasuredStrategy& m : measured) {
    std::printf("%-72s %9.3f %9.3f %9.4f %9.3f %10.3f", to_string(m.predicted).c_str(), m.build_s,
                m.first_epoch_s, m.epoch_s, m.total_s, m.predicted.total_s);
    if (m.money) std::printf("  in money %.3g, predicted %.3g", *m.money, *m.predicted.money);
    std::printf("\n");
  }
  const auto best = std::min_element(
      measured.begin(), measured.end(),
      [](const MeasuredStrategy& a, const MeasuredStrategy& b) { return a.cost() < b.cost(); });
  const bool money = best->money.has_value();
  if (best == measured.begin())
    std::printf("The choice is the %s of them.\n", money ? "cheapest" : "fastest");
  else
    std::printf("The %s of them is %s; the choice takes %.1f %% %s.\n",
                money ? "cheapest" : "fastest", to_string(best->predicted).c_str(),
                100 * (measured.front().cost() / best->cost() - 1), money ? "more" : "longer");
}

void plan(const CLI::App& verb, const Options& options) {
  if (options.measure == 0 && !options.data.empty())
    throw Error(Code::kInvalidArgument, "--data goes with --measure");
  if (options.measure > 0 && options.plan.policy == "seneca")
    throw Error(Code::kInvalidArgument,
                "--measure goes with the policies auto, none and presto; jobs that share a cache "
                "are measured by cutwater run --jobs");
  if (options.measure > 0 && offload_policy(policy_named(options.plan.policy)))
    throw Error(Code::kInvalidArgument,
                "--measure goes with the policies auto, none and presto; a server near the storage "
                "is measured by cutwater run --data grpc://…");
  const Profile profile = load_profile(options.profile);
  const Plan made = make_plan(profile, plan_options(verb, options.plan));
  ordered_json json = ordered_json::parse(to_json(made));
  if (!options.output.empty()) write_text(options.output, json.dump(2) + "\n");
  if (!options.json)
    std::fputs((options.all ? explain(made) : explain(made, kRows)).c_str(), stdout);
  if (options.measure > 0) {
    std::fflush(stdout);
    const auto measured = measure_strategies(
        made, options.measure, open_data(options.data.empty() ? profile.data : options.data),
        named_pipeline(profile.pipeline), !options.json);
    json["measured"] = json_of(measured);
    if (!options.json) print(measured);
  }
  if (options.json) std::printf("%s\n", json.dump(2).c_str());
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("plan", "What to prepare, and where, from a profile");
  verb->add_option("--profile", options->profile, "Folder that cutwater profile wrote")->required();
  add_plan_arguments(*verb, options->plan);
  verb->add_option("--measure", options->measure,
                   "Run the best so many for real; stores are built in TMPDIR and removed")
      ->check(CLI::PositiveNumber);
  verb->add_option("--data", options->data, "Data to measure with (default: the profile's)");
  verb->add_option("-o,--output", options->output, "File to write the plan to, as JSON");
  verb->add_flag("--all", options->all, "All strategies, not just the best twelve");
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([verb, options] { plan(*verb, *options); });
}

}  // namespace cutwater::cli
