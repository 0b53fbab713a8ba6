// SPDX-License-Identifier: Apache-2.0
#include "measure_strategies.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "cutwater/loader.h"
#include "cutwater/store.h"
#include "progress.h"

namespace cutwater::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 64;
constexpr double kLaterSeconds = 2;          // of later epochs are enough to know one
constexpr std::size_t kCacheRoom = 1 << 20;  // for what a cache keeps beside the samples' bytes

std::atomic<bool> interrupted{false};

void stop_if_interrupted() {
  if (interrupted) throw Error(Code::kCancelled, "interrupted");
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class TemporaryFolder {
 public:
  TemporaryFolder() : path_(fs::temp_directory_path() / "cutwater-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(Code::kIo, "cannot make a folder in " + fs::temp_directory_path().string() +
                                 "; set TMPDIR to a folder with room for the stores");
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void run_epoch(Loader& loader) {
  loader.begin();
  do {
    while (!loader.wait(std::chrono::milliseconds(100))) stop_if_interrupted();
    stop_if_interrupted();
  } while (loader.next());
}

MeasuredStrategy measure(const Plan& plan, const Strategy& strategy,
                         const std::shared_ptr<const Source>& source, const Pipeline& pipeline) {
  MeasuredStrategy measured;
  measured.predicted = strategy;
  What what{source, pipeline, kBatch};
  what.shuffle = true;
  what.bad_samples.policy = OnError::kSkip;
  HowFast how;
  how.threads = plan.options.threads;
  std::optional<TemporaryFolder> folder;
  if (strategy.place == Place::kStore) {
    folder.emplace();
    const std::string path = folder->path() + "/store";
    MaterializeOptions options;
    options.codec = strategy.codec;
    options.threads = plan.options.threads;
    options.on_progress = [](const MaterializeProgress&) { stop_if_interrupted(); };
    const auto start = Clock::now();
    materialize(source, pipeline, strategy.cut, path, options);
    measured.build_s = seconds_since(start);
    what.source = open_store(path);
  } else if (strategy.place == Place::kMemory) {
    const auto bytes = static_cast<std::size_t>(std::ceil(strategy.memory_bytes)) + kCacheRoom;
    how.cache = {cache_named(std::to_string(bytes)), std::to_string(strategy.cut),
                 to_string(strategy.codec)};
  }

  const auto start = Clock::now();
  Loader loader(std::move(what), how);
  run_epoch(loader);
  measured.first_epoch_s = seconds_since(start);
  const auto later = Clock::now();
  std::int64_t epochs = 0;
  while (epochs + 1 < plan.options.epochs && seconds_since(later) < kLaterSeconds) {
    run_epoch(loader);
    ++epochs;
  }
  if (epochs > 0) measured.epoch_s = seconds_since(later) / static_cast<double>(epochs);
  measured.total_s = measured.build_s + measured.first_epoch_s +
                     static_cast<double>(plan.options.epochs - 1) * measured.epoch_s;
  if (plan.options.prices)
    measured.money = money_of(*plan.options.prices, strategy.disk_bytes, measured.total_s,
                              *plan.options.threads);
  return measured;
}

bool same_work(const Strategy& a, const Strategy& b) {
  return a.cut == b.cut && a.codec == b.codec && a.place == b.place;
}

}  // namespace

std::vector<MeasuredStrategy> measure_strategies(const Plan& plan, std::size_t count,
                                                 const std::shared_ptr<const Source>& source,
                                                 const Pipeline& pipeline, bool progress) {
  if (source->identity() != plan.source_identity || source->cut() != 0)
    throw Error(Code::kStale, source->home() +
                                  ": this is not what was profiled (other files, names, labels or "
                                  "sizes, or a store); give the same data, or profile again");
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
  std::vector<Strategy> chosen = {plan.choice};
  for (const Strategy& other : plan.alternatives) {
    if (chosen.size() >= count) break;
    const bool done = std::any_of(chosen.begin(), chosen.end(),
                                  [&](const Strategy& s) { return same_work(s, other); });
    if (other.feasible && !done) chosen.push_back(other);
  }
  Progress bar(progress, static_cast<std::int64_t>(chosen.size()));
  std::vector<MeasuredStrategy> measured;
  for (const Strategy& strategy : chosen) {
    bar.show(to_string(strategy), static_cast<std::int64_t>(measured.size()));
    measured.push_back(measure(plan, strategy, source, pipeline));
  }
  return measured;
}

}  // namespace cutwater::cli
