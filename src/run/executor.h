// SPDX-License-Identifier: Apache-2.0
// Executor: native threads that take the next sample of the order, run the pipeline on it, and
// write it into its slot. The sample, not the batch, is the unit of work.
//
// Threads never wait for each other's samples: only for room (open batches, memory). The consumer
// waits for a batch, the end of the epoch, a failure, or close(). Every wait has one of these ends.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "cutwater/options.h"
#include "run/epoch_run.h"
#include "run/memory_gate.h"

namespace cutwater {

struct ExecutorOptions {
  int threads = 1;
  std::size_t memory_limit = 0;
  std::int64_t prefetch_batches = 1;
  bool fuse = true;
};

// What the threads have done so far; times are summed over them.
struct Work {
  std::uint64_t bytes_read = 0;
  OpTime read;
  std::vector<OpTime> ops;  // indexed by a group's first step
  std::uint64_t worker_wait_ns = 0, consumer_wait_ns = 0;
  std::map<SampleId, Failure> skipped, substituted;  // bad in every epoch: listed once
};

class Executor {
 public:
  Executor(const What& what, const ExecutorOptions& options);
  ~Executor();  // waits for the samples in the making
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Drops all unfinished work and goes on from there. Starts the threads the first time. Throws
  // Error(kCancelled) after close().
  void restart(const EpochStart& start);
  // The next batch of the running epoch, or nothing at its end (the following epoch is then
  // running). Throws Error. REQUIRES: restart() was called.
  std::optional<FinishedBatch> next();
  bool wait(std::chrono::nanoseconds time);  // false: next() would still wait
  void close();
  bool closed() const;
  // False in a forked child: its threads, and locks they may hold, are another process's. Nothing
  // but this may be called there, the destructor included.
  bool belongs_here() const;

  // Positions that the running epoch left out so far.
  std::vector<std::int64_t> skipped_positions() const;
  Work work() const;
  const BufferPool& pool() const { return *pool_; }

 private:
  class TicketSlots;
  struct Task {
    std::shared_ptr<EpochRun> run;
    Ticket ticket;
  };

  void work_loop();
  std::optional<Task> take();
  bool room_for_next() CUTWATER_REQUIRES(mutex_);
  std::shared_ptr<EpochRun> make_run(const EpochStart& start) const;
  Result<Sample> make_sample(Task& task, Work& work);
  void make(Task& task);
  bool something_for_consumer() const CUTWATER_REQUIRES(mutex_);
  void note_batch_bytes() CUTWATER_REQUIRES(mutex_);

  const What& what_;
  const ExecutorOptions options_;
  std::vector<std::string_view> made_fields_;  // that ops write, and so into their slots
  const std::shared_ptr<BufferPool> pool_;
  std::atomic<int> process_{0};  // where the threads live; 0: not started
  MemoryGate gate_;

  mutable Mutex mutex_;
  Condition room_, output_;
  std::deque<std::shared_ptr<EpochRun>> runs_ CUTWATER_GUARDED_BY(mutex_);
  std::size_t largest_batch_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
  Work work_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cutwater
