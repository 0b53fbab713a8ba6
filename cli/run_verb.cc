// SPDX-License-Identifier: Apache-2.0
// cutwater run: the loader alone, measured. With --hash, what it delivered is proven; with
// --step-ms, a consumer that needs its time is played.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/units.h"
#include "cutwater/hold.h"
#include "cutwater/loader.h"
#include "cutwater/profile.h"
#include "pipeline_argument.h"
#include "progress.h"
#include "stream_hash.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Options {
  std::string data, pipeline, order = "strict", on_error = "raise", memory_limit, max_errors;
  std::string index = "memory", hold, cache, cache_cut, cache_codec;
  std::string store, store_cut, store_codec, profile;
  std::int64_t batch = 64, epochs = 1;
  std::uint64_t seed = 0;
  int threads = 0;
  double step_ms = 0;
  bool hash = false, json = false, drop_last = false, no_shuffle = false, no_fuse = false;
};

struct EpochResult {
  std::int64_t epoch = 0, samples = 0;
  double seconds = 0;
  std::string stream_hash, set_hash;
};

struct RunResult {
  std::vector<EpochResult> epochs;
  std::int64_t samples = 0;
  double seconds = 0, busy_seconds = 0;
  LoaderStats stats;
  std::size_t profiled = 0;  // samples
};

std::atomic<bool> interrupted{false};

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A whole number is a count; one with a point or an exponent is a share.
void set_max_errors(const Options& options, BadSamples& bad) {
  const std::string& text = options.max_errors;
  if (options.on_error != "skip")
    throw Error(Code::kInvalidArgument, "--max-errors goes with --on-error skip");
  const char* end = text.data() + text.size();
  std::int64_t count = 0;
  double share = 0;
  if (std::from_chars(text.data(), end, count).ptr == end)
    bad.max_count = count;
  else if (std::from_chars(text.data(), end, share).ptr == end)
    bad.max_share = share;
  else
    throw Error(Code::kInvalidArgument,
                "--max-errors must be a count, or a share such as 0.01, got '" + text + "'");
}

Loader make_loader(const Options& options) {
  What what{open_data(options.data), pipeline_argument(options.pipeline), options.batch};
  what.shuffle = !options.no_shuffle;
  what.seed = options.seed;
  what.drop_last = options.drop_last;
  what.order = order_named(options.order);
  what.bad_samples.policy = on_error_named(options.on_error);
  if (!options.max_errors.empty()) set_max_errors(options, what.bad_samples);
  HowFast how;
  if (options.threads != 0) how.threads = options.threads;
  if (!options.memory_limit.empty())
    how.memory_limit = parse_bytes("--memory-limit", options.memory_limit);
  how.fuse = !options.no_fuse;
  how.index = options.index;
  if (options.cache.empty() && !(options.cache_cut + options.cache_codec).empty())
    throw Error(Code::kInvalidArgument, "--cache-cut and --cache-codec go with --cache");
  if (!options.cache.empty())
    how.cache = {cache_named(options.cache), options.cache_cut,
                 options.cache_codec.empty() ? "none" : options.cache_codec};
  if (options.store.empty() && !(options.store_cut + options.store_codec).empty())
    throw Error(Code::kInvalidArgument, "--store-cut and --store-codec go with --store");
  how.store = {options.store, options.store_cut, options.store_codec};
  how.profile = !options.profile.empty();
  if (!options.hold.empty()) {
    const Cut cut = what.pipeline.cut_named(options.hold);
    what.source = hold_in_memory(what.source, what.pipeline, cut, {how.threads, {}, [] {
                                                                     if (interrupted)
                                                                       throw Error(Code::kCancelled,
                                                                                   "interrupted");
                                                                   }});
  }
  return Loader(std::move(what), how);
}

// The next batch; ctrl-C ends the wait.
std::optional<Batch> next_batch(Loader& loader) {
  while (!loader.wait(std::chrono::milliseconds(100)))
    if (interrupted) throw Error(Code::kCancelled, "interrupted");
  if (interrupted) throw Error(Code::kCancelled, "interrupted");
  return loader.next();
}

RunResult run_epochs(Loader& loader, const Options& options) {
  RunResult result;
  const std::int64_t total = options.epochs * loader.what().source->size();
  Progress progress(!options.json, total);
  const auto step = std::chrono::duration<double, std::milli>(options.step_ms);
  const auto start = Clock::now();
  for (std::int64_t e = 0; e < options.epochs; ++e) {
    const auto epoch_start = Clock::now();
    EpochResult epoch;
    epoch.epoch = loader.next_epoch();
    StreamHash hash;
    loader.begin();
    while (const std::optional<Batch> batch = next_batch(loader)) {
      if (options.hash) hash.add(*batch);
      epoch.samples += batch->size();
      if (options.step_ms > 0) {
        const auto busy_start = Clock::now();
        std::this_thread::sleep_for(step);
        result.busy_seconds += seconds_since(busy_start);
      }
      progress.show("epoch " + std::to_string(e + 1) + "/" + std::to_string(options.epochs),
                    result.samples + epoch.samples);
    }
    epoch.seconds = seconds_since(epoch_start);
    if (options.hash) {
      epoch.stream_hash = hash.stream();
      epoch.set_hash = hash.set();
    }
    result.samples += epoch.samples;
    result.epochs.push_back(std::move(epoch));
  }
  result.seconds = seconds_since(start);
  progress.show("finishing the store", result.samples);
  while (!loader.finish_store(std::chrono::milliseconds(100)))
    if (interrupted) throw Error(Code::kCancelled, "interrupted");
  result.stats = loader.stats();
  return result;
}

ordered_json json_of(const CacheReport& cache) {
  ordered_json forms = ordered_json::object();
  for (const CacheReport::Form& form : cache.forms)
    forms[form.cut] = {{"entries", form.entries}, {"bytes", form.bytes}, {"hits", form.hits}};
  return {{"hits", cache.hits},       {"misses", cache.misses}, {"damaged", cache.damaged},
          {"refused", cache.refused}, {"by_form", forms},       {"entries", cache.entries},
          {"bytes", cache.bytes},     {"limit", cache.limit},   {"cut", cache.cut},
          {"codec", cache.codec},     {"why", cache.why},       {"seconds", cache.seconds}};
}

ordered_json json_of(const RunResult& result, const Options& options) {
  const LoaderStats& stats = result.stats;
  const double rate = result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
  ordered_json json = {
      {"samples", result.samples},
      {"seconds", result.seconds},
      {"samples_per_s", rate},
      {"read_bytes_per_s", static_cast<double>(stats.bytes_read) / result.seconds},
      {"first_batch_s", stats.first_batch_seconds},
      {"bound_by", stats.bound_by},
      {"rss_bytes", resident_bytes()},
      {"threads", stats.threads},
      {"memory_limit", stats.memory_limit},
      {"memory_peak", stats.memory_peak},
      {"wait_s",
       {{"consumer", stats.consumer_wait_seconds}, {"workers", stats.worker_wait_seconds}}},
      {"read_s", stats.read_seconds},
      {"index",
       {{"samples", stats.index.samples},
        {"uses", stats.index.uses},
        {"bytes", stats.index.bytes}}}};
  if (stats.cache) json["cache"] = json_of(*stats.cache);
  if (const auto& store = stats.store)
    json["store"] = {
        {"path", store->path},   {"cut", store->cut},         {"codec", store->codec},
        {"state", store->state}, {"reason", store->reason},   {"samples", store->samples},
        {"bytes", store->bytes}, {"damaged", store->damaged}, {"seconds", store->seconds}};
  if (!options.profile.empty())
    json["profile"] = {{"path", options.profile}, {"samples", result.profiled}};
  json["busy_share"] = result.busy_seconds / result.seconds;  // 0 without --step-ms
  json["ops"] = ordered_json::object();
  for (const NamedOpTime& op : stats.ops)
    json["ops"][op.name] = {{"seconds", op.seconds}, {"calls", op.calls}};
  json["epochs"] = ordered_json::array();
  for (const EpochResult& epoch : result.epochs) {
    ordered_json one = {
        {"epoch", epoch.epoch}, {"samples", epoch.samples}, {"seconds", epoch.seconds}};
    if (options.hash) {
      one["stream_hash"] = epoch.stream_hash;
      one["set_hash"] = epoch.set_hash;
    }
    json["epochs"].push_back(std::move(one));
  }
  for (const auto& [key, failures] :
       {std::pair{"skipped", &stats.skipped}, {"substituted", &stats.substituted}}) {
    json[key] = ordered_json::array();
    for (const Failure& f : *failures)
      json[key].push_back({{"id", f.sample}, {"path", f.path}, {"op", f.op}, {"reason", f.reason}});
  }
  return json;
}

void print(const RunResult& result, const Options& options) {
  const LoaderStats& stats = result.stats;
  std::printf("%lld samples in %.2f s: %.0f samples/s, %.1f MB/s read, first batch after %.3f s\n",
              static_cast<long long>(result.samples), result.seconds,
              static_cast<double>(result.samples) / result.seconds,
              static_cast<double>(stats.bytes_read) / result.seconds * 1e-6,
              stats.first_batch_seconds);
  const double threads = stats.threads;
  const auto line = [&](const std::string& name, double seconds, std::uint64_t calls) {
    std::printf("  %-52s %8.3f s  %5.1f %%  %8.1f us each\n", name.c_str(), seconds,
                100 * seconds / (result.seconds * threads),
                calls > 0 ? 1e6 * seconds / static_cast<double>(calls) : 0.0);
  };
  std::printf("time of %d thread%s:\n", stats.threads, stats.threads == 1 ? "" : "s");
  line("read", stats.read_seconds, static_cast<std::uint64_t>(stats.reads));
  if (const auto& cache = stats.cache)
    line("cache", cache->seconds, static_cast<std::uint64_t>(cache->hits + cache->misses));
  for (const NamedOpTime& op : stats.ops) line(op.name, op.seconds, op.calls);
  if (const auto& cache = stats.cache)
    std::printf("cache: %s of %s, %lld of %lld samples came from it; at cut '%s', codec %s (%s)\n",
                bytes_text(cache->bytes).c_str(), bytes_text(cache->limit).c_str(),
                static_cast<long long>(cache->hits),
                static_cast<long long>(cache->hits) + static_cast<long long>(cache->misses),
                cache->cut.c_str(), cache->codec.c_str(), cache->why.c_str());
  if (stats.cache && stats.cache->damaged > 0)
    std::printf("cache: %lld times a sample was damaged and made again\n",
                static_cast<long long>(stats.cache->damaged));
  if (const auto& store = stats.store)
    std::printf("store: %s, cut '%s', codec %s: %s%s\n", store->path.c_str(), store->cut.c_str(),
                store->codec.c_str(), store->state.c_str(),
                store->reason.empty() ? "" : (", " + store->reason).c_str());
  if (stats.store && stats.store->damaged > 0)
    std::printf("store: %lld times a sample was damaged and made again\n",
                static_cast<long long>(stats.store->damaged));
  std::printf("threads waited for room %.3f s, the consumer for batches %.3f s\n",
              stats.worker_wait_seconds, stats.consumer_wait_seconds);
  if (options.step_ms > 0)
    std::printf("the consumer was busy %.1f %% of the time\n",
                100 * result.busy_seconds / result.seconds);
  for (const EpochResult& epoch : result.epochs)
    if (options.hash)
      std::printf("epoch %lld: stream %s  set %s\n", static_cast<long long>(epoch.epoch),
                  epoch.stream_hash.c_str(), epoch.set_hash.c_str());
  for (const Failure& failure : stats.skipped)
    std::printf("skipped %s\n", failure.message().c_str());
  for (const Failure& failure : stats.substituted)
    std::printf("substituted %s\n", failure.message().c_str());
  if (!options.profile.empty())
    std::printf("profile of %zu samples: %s\n", result.profiled, options.profile.c_str());
  std::printf("bound by %s\n", stats.bound_by.c_str());
}

void run(const Options& options) {
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  Loader loader = make_loader(options);
  RunResult result;
  try {
    result = run_epochs(loader, options);
    if (!options.profile.empty()) {
      Profile profile = loader.profile();
      profile.data = options.data;
      save_profile(profile, options.profile);
      result.profiled = profile.ids.size();
    }
  } catch (...) {
    loader.close();  // without waiting for a store
    throw;
  }
  if (options.json)
    std::printf("%s\n", json_of(result, options).dump(2).c_str());
  else
    print(result, options);
}

}  // namespace

void add_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("run", "Run the loader alone and measure it");
  verb->add_option("--data", options->data, "Folder, CSV/TSV table, tar shards, or a store")
      ->required();
  verb->add_option("--pipeline", options->pipeline,
                   "Preset (imagenet-train, imagenet-val, imagenet…), TOML file, or text")
      ->required();
  verb->add_option("--batch", options->batch, "Samples per batch")->capture_default_str();
  verb->add_option("--epochs", options->epochs, "Epochs to run")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--threads", options->threads, "Threads (default: the usable cores)")
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
