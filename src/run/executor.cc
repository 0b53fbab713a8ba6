// SPDX-License-Identifier: Apache-2.0
#include "run/executor.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "core/caught.h"

namespace cutwater {
namespace {

// How many runs may be on their way: the epoch being consumed and the one after it.
constexpr std::size_t kRunsAhead = 2;

// A ticket that another job is at comes back after so many others for each thread, and so often:
// that job may have to wait for storage. By then it has very likely made the sample, and no batch
// waits for one for long.
constexpr std::uint64_t kOthersMeanwhile = 2;
constexpr int kMostTimesAside = 8;

}  // namespace

Executor::Executor(const What& what, const ExecutorOptions& options)
    : what_(what),
      options_(options),
      stored_(options.reads_in_flight > 0 ? what.source->stored_bytes() : nullptr),
      pool_(BufferPool::create(options.memory_limit)),
      gate_(options.memory_limit),
      fetcher_(options.reads_in_flight > 0
                   ? what.source->fetcher({what.pipeline, what.seed, options.policy,
                                           options.threads, pool_, options.reads_in_flight})
                   : nullptr) {}

Executor::~Executor() {
  close();
  for (std::thread& thread : threads_) thread.join();
  if (reaper_.joinable()) reaper_.join();
  if (refiller_.joinable()) refiller_.join();
}

void Executor::close() {
  gate_.close();
  MutexLock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  runs_.clear();  // what threads are still at, they hold themselves
  arrived_.clear();
  deferred_.clear();
  put_aside_.clear();
  if (ring_) ring_->wake();
  if (fetcher_) fetcher_->close();
  pool_->give_up_idle();
  room_.notify_all();
  output_.notify_all();
  spare_.notify_all();
}

std::shared_ptr<EpochRun> Executor::make_run(const EpochStart& start) const {
  const std::int64_t size = what_.source->size();
  EpochOrder order =
      what_.shuffle ? EpochOrder::shuffled(size, what_.seed, start.epoch) : EpochOrder(size);
  return what_.order == Order::kStrict
             ? make_strict_run(what_, *pool_, std::move(order), start, options_.seat)
             : make_ready_run(what_, *pool_, std::move(order), start, options_.seat);
}

void Executor::restart(const EpochStart& start) {
  auto run = make_run(start);
  MutexLock lock(mutex_);
  if (closed_) throw Error(Code::kCancelled, "the loader was closed; make a new one");
  // Threads still at work on the old runs hold them, finish into them, and drop them.
  runs_.clear();
  runs_.push_back(std::move(run));
  at_rest_ = false;
  note_batch_bytes();
  room_.notify_all();
  if (process_ != 0) return;
  first_epoch_ = start.epoch;
  process_ = getpid();
  started_ = Clock::now();
  try {
    while (static_cast<int>(threads_.size()) < options_.threads)
      threads_.emplace_back([this] { work_loop(); });
  } catch (const std::system_error& error) {
    if (threads_.empty()) process_ = 0;
    throw Error(Code::kIo, "could start only " + std::to_string(threads_.size()) + " of " +
                               std::to_string(options_.threads) +
                               " threads: " + std::string(error.what()) + "; lower num_workers");
  }
  start_refilling();
}

void Executor::rest() {
  MutexLock lock(mutex_);
  if (closed_ || std::exchange(at_rest_, true)) return;
  if (options_.seat != nullptr) options_.seat->leave_epoch();
}

bool Executor::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void Executor::work_loop() {
  Worker worker;
  for (;;) {
    std::optional<Task> task;
    try {
      task = take(worker);
    } catch (...) {  // no memory for a batch, or for the order of an epoch
      MutexLock lock(mutex_);
      if (!runs_.empty()) runs_.front()->abort(caught(-1, "batch"));
      output_.notify_all();
      continue;
    }
    if (!task) return;
    Work& work = worker.work;
    std::optional<Kept> kept;
    if (!task->begun) kept = look_up(*task, work);
    if (kept) {
      make_kept(*task, std::move(*kept), work);
      continue;
    }
    if (leave_to_another_job(*task)) continue;
    const auto start = Clock::now();
    if (bring(*task, worker))
      make_read(*task, work, start);
    else
      work.read.nanoseconds += nanoseconds_since(start);
  }
}

bool Executor::room_for_next() {
  if (at_rest_ || runs_.empty() || runs_.front()->failed()) return false;
  if (runs_.back()->all_issued()) {
    if (runs_.size() >= kRunsAhead) return false;
    runs_.push_back(make_run({runs_.back()->epoch() + 1, 0, 0, {}}));
    if (runs_.back()->all_issued()) return false;  // an epoch without a batch
  }
  if (!runs_.back()->next_opens_batch()) return true;

  // Half of the memory is for batches, half for the work; one batch is always allowed. Until the
  // first sample shows how large a batch is, one is also the most.
  std::int64_t open = 0, most = 1;
  for (const auto& run : runs_) open += run->open_batches();
  // What is put aside has no slot yet where the order is free, but will need one.
  if (what_.order == Order::kReady) open += std::ssize(put_aside_) / what_.batch_size;
  if (largest_batch_bytes_ > 0)
    most = std::clamp(static_cast<std::int64_t>(options_.memory_limit / 2 / largest_batch_bytes_),
                      std::int64_t{1}, options_.prefetch_batches);
  return open < most;
}

std::optional<Executor::Task> Executor::take(Worker& worker) {
  MutexLock lock(mutex_);
  for (;;) {
    if (closed_) return std::nullopt;
    if (std::optional<Task> task = next_task(worker)) return task;
    const auto start = Clock::now();
    std::uint64_t& waited =
        reads_out() > 0 ? worker.work.read.nanoseconds : worker.work.worker_wait_ns;
    if (++resting_ == options_.threads) spare_.notify_one();
    room_.wait(mutex_);
    --resting_;
    waited += nanoseconds_since(start);
    worker.work.move_to(work_);
  }
}

// A read that has arrived, or a new ticket. While storage is slow, new ones go first until enough
// are in flight; otherwise they would all be made before the next is asked for. What was put aside
// has its turn when it comes, or, to be made all the same, when there is nothing else to do but to
// wait for room.
std::optional<Executor::Task> Executor::next_task(Worker& worker) {
  drop_stale();
  if (!put_aside_.empty() && issued_ >= put_aside_.front().back_at) return first_of(put_aside_);
  const bool enough = note_enough_out();
  const bool new_first = !worker.arrived_first || arrived_.empty();
  if (new_first && !enough && deferred_.empty() && room_for_next()) {
    worker.arrived_first = true;
    std::optional<Task> task(std::in_place, GateHold(gate_), runs_.back());
    ++issued_;
    return task;
  }
  if (arrived_.empty()) {
    if (enough) return std::nullopt;  // a read that arrives wakes a thread
    std::optional<Task> task = first_of(put_aside_);
    if (task) task->times_aside = kMostTimesAside;
    if (task && !put_aside_.empty()) room_.notify_one();
    return task;
  }
  worker.arrived_first = false;
  return first_of(arrived_);
}

// Whether enough is asked for. What comes from afar is asked for in groups: whenever half of it has
// been used up.
bool Executor::note_enough_out() {
  const int out = reads_out(), most = options_.reads_in_flight;
  if (out >= most)
    asked_enough_ = true;
  else if (!fetcher_ || out <= most / 2)
    asked_enough_ = false;
  return out > 0 && asked_enough_;
}

std::optional<Executor::Task> Executor::first_of(std::list<Task>& tasks) {
  if (tasks.empty()) return std::nullopt;
  std::optional<Task> task(std::move(tasks.front()));
  tasks.pop_front();
  return task;
}

// Of a sample that is not in the cache: whether another job is making it. Then it is put aside, for
// a while.
bool Executor::leave_to_another_job(Task& task) try {
  if (options_.seat == nullptr || task.begun) return false;
  if (options_.seat->start_making(task.id)) {
    task.making = Making(*options_.seat, task.id);
    return false;
  }
  if (task.times_aside == kMostTimesAside) return false;
  ++task.times_aside;
  MutexLock lock(mutex_);
  task.back_at = issued_ + kOthersMeanwhile * static_cast<std::uint64_t>(options_.threads);
  put_aside_.push_back(std::move(task));
  return true;
} catch (...) {  // out of memory: the task is still here
  return false;
}

bool Executor::something_for_consumer() const {
  return !runs_.empty() && (!runs_.front()->finished.empty() || runs_.front()->over());
}

void Executor::note_batch_bytes() {
  std::size_t open = 0;
  for (const auto& run : runs_) open += static_cast<std::size_t>(run->open_batches());
  constexpr std::size_t kStep = 64 << 10;  // hints grow all the time, by little
  const std::size_t hints = options_.hints != nullptr ? options_.hints->bytes() / kStep * kStep : 0;
  const std::size_t bytes = open * largest_batch_bytes_ + hints;
  if (bytes == std::exchange(noted_batch_bytes_, bytes)) return;
  gate_.set_batch_bytes(bytes);
}

bool Executor::wait(std::chrono::nanoseconds time) {
  const auto start = Clock::now();
  MutexLock lock(mutex_);
  while (!closed_ && !something_for_consumer()) {
    const auto left = time - (Clock::now() - start);
    if (left.count() <= 0) break;
    output_.wait_for(mutex_, left);
  }
  work_.consumer_wait_ns += nanoseconds_since(start);
  return closed_ || something_for_consumer();
}

std::optional<FinishedBatch> Executor::next() {
  while (!wait(std::chrono::hours(1))) {
  }
  MutexLock lock(mutex_);
  if (closed_) throw Error(Code::kCancelled, "the loader was closed");
  EpochRun& run = *runs_.front();
  if (run.finished.empty()) {  // the end of the epoch
    const std::uint32_t epoch = run.epoch();
    runs_.pop_front();
    if (runs_.empty()) runs_.push_back(make_run({epoch + 1, 0, 0, {}}));
    room_.notify_all();
    return std::nullopt;
  }
  Result<FinishedBatch> batch = std::move(run.finished.front());
  run.finished.pop_front();
  if (!batch) throw Error(std::move(batch.failure()));
  run.handed_out();
  note_batch_bytes();
  room_.notify_all();
  batch.value().slab->give_to_user();
  handed_out_ += batch.value().count;
  tell_fetcher();
  return std::move(batch).value();
}

std::vector<std::int64_t> Executor::skipped_positions() const {
  MutexLock lock(mutex_);
  return runs_.empty() ? std::vector<std::int64_t>{} : runs_.front()->skipped_positions();
}

Work Executor::work() const {
  MutexLock lock(mutex_);
  return work_;
}

bool Executor::belongs_here() const { return process_ == 0 || process_ == getpid(); }

}  // namespace cutwater
