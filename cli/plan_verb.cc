// SPDX-License-Identifier: Apache-2.0
// cutwater plan: what to prepare, and where, from a profile.
#include <cstdio>
#include <fstream>

#include "cutwater/plan.h"
#include "plan_arguments.h"
#include "verbs.h"
#include "write_text.h"

namespace cutwater::cli {
namespace {

constexpr std::size_t kRows = 12;

struct Options {
  PlanArguments plan;
  std::string profile, output;
  bool all = false, json = false;
};

void plan(const CLI::App& verb, const Options& options) {
  const Plan made = make_plan(load_profile(options.profile), plan_options(verb, options.plan));
  const std::string json = to_json(made) + "\n";
  if (!options.output.empty()) write_text(options.output, json);
  const std::string shown = options.json  ? json
                            : options.all ? explain(made)
                                          : explain(made, kRows);
  std::fputs(shown.c_str(), stdout);
}

}  // namespace

void add_plan(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("plan", "What to prepare, and where, from a profile");
  verb->add_option("--profile", options->profile, "Folder that cutwater profile wrote")->required();
  add_plan_arguments(*verb, options->plan);
  verb->add_option("-o,--output", options->output, "File to write the plan to, as JSON");
  verb->add_flag("--all", options->all, "All strategies, not just the best twelve");
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([verb, options] { plan(*verb, *options); });
}

}  // namespace cutwater::cli
