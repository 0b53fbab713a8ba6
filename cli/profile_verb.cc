// SPDX-License-Identifier: Apache-2.0
// cutwater profile: what samples weigh and cost at every cut, measured on some of them.
#include <atomic>
#include <csignal>
#include <cstdio>

#include "core/machine.h"
#include "cutwater/loader.h"
#include "cutwater/profile.h"
#include "pipeline_argument.h"
#include "profile/summary.h"
#include "progress.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

struct Options {
  std::string data, pipeline, out;
  std::int64_t samples = 0;
  double max_seconds = 120, consumer = 0;
  int threads = 0;
  std::uint64_t seed = 0;
  bool json = false;
};

std::atomic<bool> interrupted{false};

void profile(const Options& options) {
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  const Pipeline pipeline = pipeline_argument(options.pipeline);
  ProfileOptions how;
  if (options.samples > 0) how.samples = options.samples;
  how.max_seconds = options.max_seconds;
  how.threads = options.threads > 0 ? options.threads : default_threads();
  how.seed = options.seed;
  if (options.consumer > 0) how.consumer_samples_per_s = options.consumer;
  std::optional<Progress> progress;
  how.on_progress = [&](std::int64_t done, std::int64_t most) {
    if (interrupted) throw Error(Code::kCancelled, "interrupted");
    if (!progress) progress.emplace(!options.json, most);
    progress->show("profile", done);
  };
  Profile made = make_profile(open_data(options.data), pipeline, how);
  made.data = options.data;
  if (progress) progress->clear();
  save_profile(made, options.out);
  std::printf("%s\n", options.json ? profile_json(made).c_str() : profile_table(made).c_str());
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("profile", "Measure sizes and times per sample, cut and variant");
  verb->add_option("--data", options->data, "Folder, CSV/TSV table, tar shards, or store at cut 0")
      ->required();
  verb->add_option("--pipeline", options->pipeline,
                   "Preset (imagenet-train, imagenet-val, imagenet…), TOML file, or text")
      ->required();
  verb->add_option("-o,--output", options->out, "Folder to write the profile to")->required();
  verb->add_option("--samples", options->samples,
                   "At most so many (default: until the mean is known to 5 %)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--max-seconds", options->max_seconds, "Time limit")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (default: the usable cores)")
      ->check(CLI::Range(1, kMostThreads));
  verb->add_option("--consumer", options->consumer, "Samples per second that training can take")
      ->check(CLI::PositiveNumber);
  verb->add_option("--seed", options->seed, "Which samples are drawn")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([options] { profile(*options); });
}

}  // namespace cutwater::cli
