// SPDX-License-Identifier: Apache-2.0
// Loaders being consumed and measured: one, or several jobs at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cutwater/loader.h"

namespace cutwater::cli {

struct EpochResult {
  std::int64_t epoch = 0, samples = 0;
  double seconds = 0, busy_seconds = 0;
  // From its first batch's request to the last batch: threads are ahead, at the next epoch.
  std::int64_t hits = 0, misses = 0;
  // Of the process and of the link meanwhile, by all jobs; from servers, what came for this one.
  double cpu_seconds = 0;
  std::uint64_t wire_bytes = 0;
  std::string stream_hash, set_hash;
};

// Of one job, or of all together.
struct RunResult {
  std::vector<EpochResult> epochs;
  std::int64_t samples = 0;
  double seconds = 0, busy_seconds = 0;
  LoaderStats stats;
  std::size_t profiled = 0;  // samples
};

struct Consumer {
  std::int64_t epochs = 1;
  double step_ms = 0;  // it plays to be busy so long with every batch
  bool hash = false;
  bool show_progress = false;
  std::function<std::uint64_t()> wire_bytes = [] { return std::uint64_t{0}; };  // so far
  // Called when a job has failed, before its loader goes: whatever that may wait for is to end.
  std::function<void()> on_failure = [] {};
};

// From now on ctrl-C and SIGTERM end what follows with Error(kCancelled).
void catch_interrupts();
void throw_if_interrupted();

// Each job has its own consumer, in a thread of its own where there are several, and leaves when it
// is done: its loader is destroyed, but for a single one. A failure of one ends them all. Trouble
// with the cache is said once, on stderr.
std::vector<RunResult> run_jobs(std::vector<std::unique_ptr<Loader>>& loaders,
                                const Consumer& consumer);

// All jobs as if they were one: sums, and the longest of what happened side by side. Hashes are a
// job's own.
RunResult together(const std::vector<RunResult>& jobs);

}  // namespace cutwater::cli
