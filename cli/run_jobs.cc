// SPDX-License-Identifier: Apache-2.0
#include "run_jobs.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "core/mutex.h"
#include "loader_stats.h"
#include "progress.h"
#include "stream_hash.h"

namespace cutwater::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};  // how often a wait looks for ctrl-C

std::atomic<bool> interrupted{false};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What the jobs of one run have in common.
struct Run {
  const Consumer& consumer;
  std::atomic<bool> stop{false};    // one of them has failed
  std::atomic<bool> warned{false};  // of trouble with the cache…
  std::atomic<bool> told{false};    // …and of damage in it

  void throw_if_over() const {
    throw_if_interrupted();
    if (stop) throw Error(Code::kCancelled, "another job has failed");
  }
};

// `show` is told what is going on, and how many samples the job has had.
using Show = std::function<void(const std::string& what, std::int64_t samples)>;

// The next batch; ctrl-C ends the wait.
std::optional<Batch> next_batch(Loader& loader, Run& run) {
  while (!loader.wait(kLook)) run.throw_if_over();
  run.throw_if_over();
  const auto say_once = [&](std::atomic<bool>& said, std::string (Loader::*what)() const) {
    if (said) return;
    if (const std::string text = (loader.*what)(); !text.empty() && !said.exchange(true))
      std::fprintf(stderr, "cutwater: %s\n", text.c_str());
  };
  say_once(run.warned, &Loader::cache_trouble);
  say_once(run.told, &Loader::cache_damage);
  return loader.next();
}

double process_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Counters that go on and on; an epoch's part of them is the difference.
class Counters {
 public:
  Counters(const Loader& loader, const Consumer& consumer)
      : cpu_seconds_(process_seconds()), wire_bytes_(consumer.wire_bytes()) {
    const LoaderStats stats = loader.stats();
    if (stats.fetch) wire_bytes_ = stats.fetch->wire_bytes;
    if (!stats.cache) return;
    hits_ = stats.cache->hits;
    misses_ = stats.cache->misses;
  }
  void add_since(const Counters& before, EpochResult& epoch) const {
    epoch.hits += hits_ - before.hits_;
    epoch.misses += misses_ - before.misses_;
    epoch.cpu_seconds += cpu_seconds_ - before.cpu_seconds_;
    epoch.wire_bytes += wire_bytes_ - before.wire_bytes_;
  }

 private:
  std::int64_t hits_ = 0, misses_ = 0;
  double cpu_seconds_;
  std::uint64_t wire_bytes_;
};

RunResult run_epochs(Loader& loader, Run& run, const Show& show) {
  const Consumer& consumer = run.consumer;
  RunResult result;
  const auto step = std::chrono::duration<double, std::milli>(consumer.step_ms);
  const auto start = Clock::now();
  for (std::int64_t e = 0; e < consumer.epochs; ++e) {
    const auto epoch_start = Clock::now();
    const Counters before(loader, consumer);
    EpochResult epoch;
    epoch.epoch = loader.next_epoch();
    StreamHash hash;
    loader.begin();
    while (const std::optional<Batch> batch = next_batch(loader, run)) {
      if (consumer.hash) hash.add(*batch);
      epoch.samples += batch->size();
      if (consumer.step_ms > 0) {
        const auto busy_start = Clock::now();
        std::this_thread::sleep_for(step);
        epoch.busy_seconds += seconds_since(busy_start);
      }
      show("epoch " + std::to_string(e + 1) + "/" + std::to_string(consumer.epochs),
           result.samples + epoch.samples);
    }
    epoch.seconds = seconds_since(epoch_start);
    if (consumer.hash) {
      epoch.stream_hash = hash.stream();
      epoch.set_hash = hash.set();
    }
    Counters(loader, consumer).add_since(before, epoch);
    result.samples += epoch.samples;
    result.busy_seconds += epoch.busy_seconds;
    result.epochs.push_back(std::move(epoch));
  }
  result.seconds = seconds_since(start);
  show("finishing the store", result.samples);
  while (!loader.finish_store(kLook)) run.throw_if_over();
  result.stats = loader.stats();
  return result;
}

// Several jobs, each in a thread; this one shows how far they are.
class Team {
 public:
  Team(std::vector<std::unique_ptr<Loader>>& loaders, Run& run)
      : loaders_(loaders), run_(run), results_(loaders.size()), had_(loaders.size()) {}

  std::vector<RunResult> work(Progress& progress) {
    std::vector<std::thread> threads;
    for (std::size_t job = 0; job < loaders_.size(); ++job)
      threads.emplace_back([this, job] { work(job); });
    wait(progress);
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(results_);
  }

 private:
  void work(std::size_t job) {
    try {
      results_[job] =
          run_epochs(*loaders_[job], run_,
                     [&](const std::string&, std::int64_t samples) { had_[job].store(samples); });
    } catch (...) {
      {
        MutexLock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      run_.stop = true;
      run_.consumer.on_failure();
    }
    loaders_[job].reset();
    MutexLock lock(mutex_);
    ++done_;
    changed_.notify_all();
  }

  void wait(Progress& progress) {
    MutexLock lock(mutex_);
    while (done_ < loaders_.size()) {
      changed_.wait_for(mutex_, kLook);
      std::int64_t samples = 0;
      for (const auto& had : had_) samples += had;
      progress.show(std::to_string(loaders_.size()) + " jobs", samples);
    }
  }

  std::vector<std::unique_ptr<Loader>>& loaders_;
  Run& run_;
  std::vector<RunResult> results_;
  std::vector<std::atomic<std::int64_t>> had_;  // samples of each job
  Mutex mutex_;
  Condition changed_;
  std::size_t done_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::exception_ptr failure_;  // the first; written under the mutex, read when all are done
};

void add(CacheReport& sum, const CacheReport& job) {
  sum.hits += job.hits;
  sum.misses += job.misses;
  sum.damaged += job.damaged;
  sum.refused += job.refused;
  sum.made_ahead += job.made_ahead;
  sum.seconds += job.seconds;
  for (const CacheReport::Form& form : job.forms) {
    const auto there = std::ranges::find(sum.forms, form.cut, &CacheReport::Form::cut);
    if (there == sum.forms.end()) {
      sum.forms.push_back(form);
      continue;
    }
    there->entries += form.entries;
    there->hits += form.hits;
    there->bytes += form.bytes;
  }
  // The jobs have one cache: the last word about it is the last job's.
  sum.entries = job.entries;
  sum.evicted = job.evicted;
  sum.bytes = job.bytes;
  sum.limit = job.limit;
  sum.jobs = std::max(sum.jobs, job.jobs);
  if (!job.trouble.empty()) sum.trouble = job.trouble;
}

void add(std::vector<NamedOpTime>& sum, const std::vector<NamedOpTime>& job) {
  for (const NamedOpTime& op : job) {
    const auto there = std::ranges::find(sum, op.name, &NamedOpTime::name);
    if (there == sum.end()) {
      sum.push_back(op);
      continue;
    }
    there->seconds += op.seconds;
    there->calls += op.calls;
  }
}

void add(std::vector<Failure>& sum, const std::vector<Failure>& job) {
  for (const Failure& failure : job)
    if (std::ranges::find(sum, failure.sample, &Failure::sample) == sum.end())
      sum.push_back(failure);
}

void add(LoaderStats& sum, const LoaderStats& job) {
  sum.samples += job.samples;
  sum.batches += job.batches;
  sum.reads += job.reads;
  sum.bytes_read += job.bytes_read;
  sum.read_seconds += job.read_seconds;
  sum.reads_queued += job.reads_queued;
  sum.consumer_wait_seconds += job.consumer_wait_seconds;
  sum.worker_wait_seconds += job.worker_wait_seconds;
  sum.first_batch_seconds = std::max(sum.first_batch_seconds, job.first_batch_seconds);
  sum.elapsed_seconds = std::max(sum.elapsed_seconds, job.elapsed_seconds);
  sum.threads += job.threads;
  sum.memory_limit += job.memory_limit;
  sum.memory_peak += job.memory_peak;
  sum.index.samples += job.index.samples;
  sum.index.uses += job.index.uses;
  sum.index.bytes += job.index.bytes;
  add(sum.ops, job.ops);
  add(sum.skipped, job.skipped);
  add(sum.substituted, job.substituted);
  if (sum.cache && job.cache) add(*sum.cache, *job.cache);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, [](int) { interrupted = true; });
  std::signal(SIGTERM, [](int) { interrupted = true; });
}

void throw_if_interrupted() {
  if (interrupted) throw Error(Code::kCancelled, "interrupted");
}

std::vector<RunResult> run_jobs(std::vector<std::unique_ptr<Loader>>& loaders,
                                const Consumer& consumer) {
  Run run{consumer};
  const std::int64_t samples = loaders[0]->what().source->size();
  Progress progress(consumer.show_progress,
                    consumer.epochs * samples * static_cast<std::int64_t>(loaders.size()));
  if (loaders.size() > 1) return Team(loaders, run).work(progress);
  const Show show = [&](const std::string& what, std::int64_t had) { progress.show(what, had); };
  try {
    return {run_epochs(*loaders[0], run, show)};
  } catch (...) {
    consumer.on_failure();
    loaders[0]->close();  // without waiting for a store
    throw;
  }
}

RunResult together(const std::vector<RunResult>& jobs) {
  RunResult all;
  for (const RunResult& job : jobs) {
    all.samples += job.samples;
    all.seconds = std::max(all.seconds, job.seconds);
    all.busy_seconds += job.busy_seconds / static_cast<double>(jobs.size());
    all.epochs.resize(std::max(all.epochs.size(), job.epochs.size()));
    for (std::size_t e = 0; e < job.epochs.size(); ++e) {
      all.epochs[e].epoch = job.epochs[e].epoch;
      all.epochs[e].samples += job.epochs[e].samples;
      all.epochs[e].seconds = std::max(all.epochs[e].seconds, job.epochs[e].seconds);
      all.epochs[e].busy_seconds += job.epochs[e].busy_seconds / static_cast<double>(jobs.size());
      all.epochs[e].hits += job.epochs[e].hits;
      all.epochs[e].misses += job.epochs[e].misses;
      all.epochs[e].cpu_seconds = std::max(all.epochs[e].cpu_seconds, job.epochs[e].cpu_seconds);
      all.epochs[e].wire_bytes = job.stats.fetch  // each has its own
                                     ? all.epochs[e].wire_bytes + job.epochs[e].wire_bytes
                                     : std::max(all.epochs[e].wire_bytes, job.epochs[e].wire_bytes);
    }
    if (&job == jobs.data())
      all.stats = job.stats;
    else
      add(all.stats, job.stats);
  }
  // Consumers wait side by side.
  all.stats.consumer_wait_seconds /= static_cast<double>(jobs.size());
  all.stats.bound_by = bottleneck(all.stats);
  return all;
}

}  // namespace cutwater::cli
