// SPDX-License-Identifier: Apache-2.0
// cutwater run: the loader alone, measured. With --hash, what it delivered is proven; with
// --step-ms, a consumer that needs its time is played; with --jobs, several of them at once; with
// --link, storage of a certain rate.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/machine.h"
#include "core/units.h"
#include "cutwater/hold.h"
#include "cutwater/loader.h"
#include "cutwater/profile.h"
#include "cutwater/remote.h"
#include "pipeline_argument.h"
#include "remote/url.h"
#include "run_jobs.h"
#include "run_report.h"
#include "source/limited.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

struct Options {
  std::string data, pipeline, order = "strict", on_error = "raise", memory_limit, max_errors;
  std::string index = "memory", hold, cache, cache_cut, cache_codec;
  std::string split, job, link, seeds = "own", policy, fallback, patience;
  std::string store, store_cut, store_codec, profile;
  std::int64_t batch = 64, epochs = 1;
  std::uint64_t seed = 0;
  int threads = 0, jobs = 1;
  double step_ms = 0;
  bool hash = false, json = false, drop_last = false, no_shuffle = false, no_fuse = false;
};

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

// A whole number is a count; one with a point or an exponent is a share.
void set_max_errors(const Options& options, BadSamples& bad) {
  const std::string& text = options.max_errors;
  if (options.on_error != "skip") refuse("--max-errors goes with --on-error skip");
  const char* end = text.data() + text.size();
  std::int64_t count = 0;
  double share = 0;
  if (std::from_chars(text.data(), end, count).ptr == end)
    bad.max_count = count;
  else if (std::from_chars(text.data(), end, share).ptr == end)
    bad.max_share = share;
  else
    refuse("--max-errors must be a count, or a share such as 0.01, got '" + text + "'");
}

void check(const Options& options) {
  if (options.cache.empty() &&
      !(options.cache_cut + options.cache_codec + options.split + options.job).empty())
    refuse("--cache-cut, --cache-codec, --split and --job go with --cache");
  if (options.store.empty() && !(options.store_cut + options.store_codec).empty())
    refuse("--store-cut and --store-codec go with --store");
  if (options.jobs > 1 && !(options.store + options.profile).empty())
    refuse("--store and --profile are for one job, not for --jobs " + std::to_string(options.jobs));
}

std::shared_ptr<const Source> open_source_of(const Options& options,
                                             const std::shared_ptr<Link>& link) {
  if (remote::is_url(options.data)) {
    RemoteOptions remote;
    remote.link = link;
    if (!options.fallback.empty()) remote.fallback = open_data(options.fallback);
    if (!options.patience.empty())
      remote.patience_s = parse_seconds("--patience", options.patience);
    return open_remote(options.data, remote);
  }
  if (!(options.policy + options.fallback + options.patience).empty())
    refuse(
        "--policy, --fallback and --patience go with the data of a server (grpc://HOST:PORT/NAME)");
  std::shared_ptr<const Source> source = open_data(options.data);
  return link ? limited(source, link) : source;
}

What make_what(const Options& options, const std::shared_ptr<Link>& link) {
  What what{open_source_of(options, link), pipeline_argument(options.pipeline), options.batch};
  what.shuffle = !options.no_shuffle;
  what.seed = options.seed;
  what.drop_last = options.drop_last;
  what.order = order_named(options.order);
  what.bad_samples.policy = on_error_named(options.on_error);
  if (!options.max_errors.empty()) set_max_errors(options, what.bad_samples);
  if (!options.hold.empty()) {
    HoldOptions hold;
    if (options.threads != 0) hold.threads = options.threads;
    hold.while_waiting = throw_if_interrupted;
    what.source =
        hold_in_memory(what.source, what.pipeline, what.pipeline.cut_named(options.hold), hold);
  }
  return what;
}

HowFast make_how(const Options& options) {
  HowFast how;
  if (options.threads != 0) how.threads = options.threads;
  if (!options.memory_limit.empty())
    how.memory_limit = parse_bytes("--memory-limit", options.memory_limit);
  // What the machine has is for all jobs together.
  if (options.jobs > 1) {
    const auto jobs = static_cast<std::size_t>(options.jobs);
    if (!how.threads) how.threads = std::max(1, usable_cores() / options.jobs);
    if (!how.memory_limit)
      how.memory_limit = std::min(usable_memory_bytes() / 4, std::size_t{4} << 30) / jobs;
  }
  how.fuse = !options.no_fuse;
  how.index = options.index;
  if (!options.policy.empty()) how.policy = options.policy;
  if (!options.cache.empty()) {
    how.cache.cache = cache_named(options.cache);
    how.cache.cut = options.cache_cut;
    if (!options.cache_codec.empty()) how.cache.codec = options.cache_codec;
    how.cache.split = options.split;
    how.cache.jobs = options.jobs;
  }
  how.store = {options.store, options.store_cut, options.store_codec};
  how.profile = !options.profile.empty();
  return how;
}

std::vector<std::unique_ptr<Loader>> make_loaders(const Options& options,
                                                  const std::shared_ptr<Link>& link) {
  What what = make_what(options, link);
  HowFast how = make_how(options);
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int job = 0; job < options.jobs; ++job) {
    how.cache.job = options.job;
    if (!options.job.empty() && options.jobs > 1) how.cache.job += "-" + std::to_string(job + 1);
    loaders.push_back(std::make_unique<Loader>(what, how));
    if (options.seeds == "own") ++what.seed;
  }
  return loaders;
}

void run(const Options& options) {
  check(options);
  catch_interrupts();
  std::shared_ptr<Link> link;
  if (!options.link.empty()) link = std::make_shared<Link>(parse_rate("--link", options.link));
  std::vector<std::unique_ptr<Loader>> loaders = make_loaders(options, link);
  Consumer consumer{options.epochs, options.step_ms, options.hash, !options.json};
  if (link) {
    consumer.on_failure = [link] { link->close(); };
    consumer.wire_bytes = [link] { return link->bytes(); };
  }
  std::vector<RunResult> results = run_jobs(loaders, consumer);
  if (!options.profile.empty()) {
    Profile profile = loaders[0]->profile();
    profile.data = options.data;
    save_profile(profile, options.profile);
    results[0].profiled = profile.ids.size();
  }
  ReportOptions report{options.profile, options.hash, options.step_ms > 0, {}};
  if (link) report.wire_bytes = link->bytes();
  for (const RunResult& result : results)
    if (const auto& fetch = result.stats.fetch)
      report.wire_bytes = (&result == results.data() ? 0 : *report.wire_bytes) + fetch->wire_bytes;
  if (options.json)
    std::printf("%s\n", json_text(results, report).c_str());
  else
    print(results, report);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("run", "Run the loader alone and measure it");
  verb->add_option("--data", options->data,
                   "Folder, CSV/TSV table, tar shards, a store, or grpc://HOST:PORT/NAME")
      ->required();
  verb->add_option("--pipeline", options->pipeline,
                   "Preset (imagenet-train, imagenet-val, imagenet…), TOML file, or text")
      ->required();
  verb->add_option("--batch", options->batch, "Samples per batch")->capture_default_str();
  verb->add_option("--epochs", options->epochs, "Epochs to run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads of each job (default: the usable cores)")
      ->check(CLI::Range(1, 1024));
  verb->add_option("--seed", options->seed, "Seed of order and draws")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--order", options->order, "strict or ready")
      ->check(CLI::IsMember({"strict", "ready"}))
      ->capture_default_str();
  verb->add_flag("--no-shuffle", options->no_shuffle, "In listing order");
  verb->add_flag("--drop-last", options->drop_last, "Leave out the last, smaller batch");
  verb->add_option("--on-error", options->on_error, "raise, skip or substitute bad samples")
      ->check(CLI::IsMember({"raise", "skip", "substitute"}))
      ->capture_default_str();
  verb->add_option("--max-errors", options->max_errors,
                   "With skip: a count, or a share such as 0.01");
  verb->add_option("--memory-limit", options->memory_limit, "Such as 2GiB");
  verb->add_option(
          "--index", options->index,
          "Where JPEG parts begin, learned for later epochs: memory, beside, off or a file")
      ->capture_default_str();
  verb->add_option("--hold", options->hold,
                   "Hold all samples in memory at this cut (entropy, decode…) first");
  verb->add_option("--cache", options->cache,
                   "Such as 2GiB: keep samples in memory at a stable cut, besides --memory-limit");
  verb->add_option("--jobs", options->jobs, "So many loaders at once, with one cache")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  verb->add_option("--seeds", options->seeds,
                   "With --jobs: own (seed, seed+1…) or same (then they draw alike)")
      ->check(CLI::IsMember({"own", "same"}))
      ->capture_default_str();
  verb->add_option("--job", options->job, "The name at the cache (default: by host and process)");
  verb->add_option("--split", options->split,
                   "Forms in the cache by share of the samples: source=0.3,decode=0.7");
  verb->add_option("--link", options->link,
                   "Such as 500Mb/s: all jobs read through one link of this rate");
  verb->add_option(
      "--policy", options->policy,
      "What a server may do before it sends: auto, sophon, none, all-off, resize-off, paper");
  verb->add_option("--fallback", options->fallback,
                   "The same data by another path, for when no server answers");
  verb->add_option("--patience", options->patience,
                   "How long servers may be silent before the run fails (default: 60s)");
  verb->add_option("--cache-cut", options->cache_cut,
                   "Which cut (default: chosen on some samples)");
  verb->add_option("--cache-codec", options->cache_codec, "none, lz4, zstd:1… (default: none)");
  verb->add_option("--store", options->store,
                   "A store to load from; if it is not there, epoch 1 makes it");
  verb->add_option("--store-cut", options->store_cut, "Its cut (default: chosen on some samples)");
  verb->add_option("--store-codec", options->store_codec, "Its codec (default: none)");
  verb->add_option("--profile", options->profile,
                   "Folder for a profile of some samples, which run op by op");
  verb->add_flag("--hash", options->hash, "Hash what was delivered, per epoch");
  verb->add_option("--step-ms", options->step_ms, "Play a consumer that takes so long per batch")
      ->check(CLI::NonNegativeNumber);
  verb->add_flag("--no-fuse", options->no_fuse, "Run op by op (the bytes are the same)");
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([options] { run(*options); });
}

}  // namespace cutwater::cli
