// SPDX-License-Identifier: Apache-2.0
// cutwater materialize: a cut written once, as a store. cutwater verify: every byte of it checked.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/units.h"
#include "cutwater/loader.h"
#include "cutwater/store.h"
#include "pipeline_argument.h"
#include "progress.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

std::atomic<bool> interrupted{false};

// The first one asks for an end, the second one does not ask.
void catch_signals() {
  const auto ask = [](int number) {
    interrupted = true;
    std::signal(number, SIG_DFL);
  };
  std::signal(SIGINT, ask);
  std::signal(SIGTERM, ask);
}

void stop_if_interrupted(const char* what_then) {
  if (interrupted) throw Error(Code::kCancelled, std::string("interrupted; ") + what_then);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Paths and reasons may hold bytes that are no text.
std::string text_of(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

struct MaterializeArguments {
  std::string data, pipeline, cut, codec = "none", out;
  int threads = 0;
  bool json = false;
};

struct Materialized {
  StoreInfo info;
  StoreForecast forecast;
  std::int64_t resumed = 0;
  double seconds = 0;
};

ordered_json json_of(const Materialized& made) {
  const StoreInfo& info = made.info;
  ordered_json json = {{"samples", info.samples - static_cast<std::int64_t>(info.bad.size())},
                       {"bytes", info.bytes},
                       {"raw_bytes", info.raw_bytes},
                       {"payload_bytes", *info.payload_bytes},
                       {"seconds", made.seconds},
                       {"cut", info.cut},
                       {"cut_name", info.cut_name},
                       {"codec", to_string(info.codec)},
                       {"pipeline", info.pipeline},
                       {"fingerprint", info.fingerprint},
                       {"forecast",
                        {{"bytes", made.forecast.bytes},
                         {"seconds", made.forecast.seconds},
                         {"free_bytes", made.forecast.free_bytes}}},
                       {"resumed", made.resumed},
                       {"bad", ordered_json::array()}};
  for (const Failure& f : info.bad)
    json["bad"].push_back({{"id", f.sample}, {"path", f.path}, {"op", f.op}, {"reason", f.reason}});
  return json;
}

void print(const Materialized& made, const std::string& out) {
  const StoreInfo& info = made.info;
  const auto good = info.samples - static_cast<std::int64_t>(info.bad.size());
  std::printf("%s: %lld samples at cut %d ('%s'), codec %s, %s in %.1f s\n", out.c_str(),
              static_cast<long long>(good), info.cut, info.cut_name.c_str(),
              to_string(info.codec).c_str(), bytes_text(info.bytes).c_str(), made.seconds);
  if (made.resumed > 0)
    std::printf("%lld of them were there already\n", static_cast<long long>(made.resumed));
  if (!info.codec.is_none() && *info.payload_bytes > info.raw_bytes)
    std::printf("the codec does not pay: the samples have %s with it, %s without\n",
                bytes_text(*info.payload_bytes).c_str(), bytes_text(info.raw_bytes).c_str());
  for (const Failure& failure : info.bad) std::printf("bad: %s\n", failure.message().c_str());
}

void materialize_verb(const MaterializeArguments& arguments) {
  const Pipeline pipeline = pipeline_argument(arguments.pipeline);
  const auto source = open_data(arguments.data);
  MaterializeOptions options;
  options.codec = codec_named(arguments.codec);
  if (arguments.threads != 0) options.threads = arguments.threads;
  Materialized made;
  Progress progress(!arguments.json, source->size());
  bool working = false;
  options.on_forecast = [&](const StoreForecast& forecast) {
    made.forecast = forecast;
    if (arguments.json || isatty(STDERR_FILENO) == 0) return;
    progress.clear();
    std::fprintf(stderr, "about %s and %.0f s; %s are free\n", bytes_text(forecast.bytes).c_str(),
                 forecast.seconds, bytes_text(forecast.free_bytes).c_str());
  };
  options.on_progress = [&](const MaterializeProgress& now) {
    // Before, while the data is listed and looked at, nobody could answer a signal.
    if (!std::exchange(working, true)) catch_signals();
    stop_if_interrupted("what is finished stays: run the same again to go on");
    made.resumed = now.resumed;
    progress.show("materialize", now.done);
  };
  const auto start = Clock::now();
  made.info =
      materialize(source, pipeline, pipeline.cut_named(arguments.cut), arguments.out, options);
  made.seconds = seconds_since(start);
  progress.clear();
  if (arguments.json)
    std::printf("%s\n", text_of(json_of(made)).c_str());
  else
    print(made, arguments.out);
}

void verify_verb(const std::string& path, bool json) {
  catch_signals();
  const auto start = Clock::now();
  std::uint64_t bytes = 0;
  std::optional<Progress> progress;
  const std::vector<StoreDamage> bad = verify_store(path, [&](const MaterializeProgress& now) {
    stop_if_interrupted("nothing is said about the store");
    if (!progress) progress.emplace(!json, now.samples);
    bytes = now.bytes;
    progress->show("verify", now.done);
  });
  progress.reset();
  const double seconds = seconds_since(start);
  if (json) {
    ordered_json result = {{"ok", bad.empty()},
                           {"bytes", bytes},
                           {"seconds", seconds},
                           {"bad", ordered_json::array()}};
    for (const StoreDamage& damage : bad)
      result["bad"].push_back(
          {{"file", damage.file},
           {"sample", damage.sample < 0 ? ordered_json(nullptr) : ordered_json(damage.sample)},
           {"reason", damage.reason}});
    std::printf("%s\n", text_of(result).c_str());
  } else {
    for (const StoreDamage& damage : bad)
      std::printf("%s%s: %s\n", damage.file.c_str(),
                  damage.sample < 0 ? "" : (", sample " + std::to_string(damage.sample)).c_str(),
                  damage.reason.c_str());
    if (bad.empty())
      std::printf("%s: all fine, %s in %.1f s\n", path.c_str(), bytes_text(bytes).c_str(), seconds);
  }
  if (!bad.empty())
    throw Error(Code::kIo, path + ": " + std::to_string(bad.size()) +
                               (bad.size() == 1 ? " place is" : " places are") +
                               " damaged; remove the store and materialize again");
}

}  // namespace

void add_materialize(CLI::App& app) {
  auto arguments = std::make_shared<MaterializeArguments>();
  CLI::App* verb = app.add_subcommand("materialize", "Run a pipeline up to a cut once, to a store");
  verb->add_option("--data", arguments->data, "Folder, CSV/TSV table, tar shards, or a store")
      ->required();
  verb->add_option("--pipeline", arguments->pipeline, "Preset, TOML file, or text")->required();
  verb->add_option("--cut", arguments->cut,
                   "The op it follows (decode, resize…) or its number; not past the frontier")
      ->required();
  verb->add_option("--codec", arguments->codec,
                   "none, lz4, zstd:3, shuffle-zstd:1 (floats), delta-zstd:1 (uint8)")
      ->capture_default_str();
  verb->add_option("--threads", arguments->threads, "Threads (default: the usable cores)")
      ->check(CLI::Range(1, 1024));
  verb->add_option("-o,--out", arguments->out, "The folder to write to; an unfinished one goes on")
      ->required();
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->callback([arguments] { materialize_verb(*arguments); });
}

void add_verify(CLI::App& app) {
  struct Arguments {
    std::string path;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* verb = app.add_subcommand("verify", "Check every byte of a store");
  verb->add_option("store", arguments->path, "The store's folder")->required();
  verb->add_flag("--json", arguments->json, "One JSON object on stdout");
  verb->callback([arguments] { verify_verb(arguments->path, arguments->json); });
}

}  // namespace cutwater::cli
