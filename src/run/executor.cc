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

using Clock = std::chrono::steady_clock;

std::uint64_t nanoseconds_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

// How many runs may be on their way: the epoch being consumed and the one after it.
constexpr std::size_t kRunsAhead = 2;

// How often a bad sample's substitute may itself be bad.
constexpr int kSubstitutes = 64;

// What one sample holds of the gate, given back when it is done.
class GateHold {
 public:
  explicit GateHold(MemoryGate& gate) : gate_(gate) {}
  ~GateHold() {
    gate_.end_read(read_bytes_);
    gate_.leave(inside_bytes_);
  }
  GateHold(const GateHold&) = delete;
  GateHold& operator=(const GateHold&) = delete;

  void read(std::size_t bytes) {
    gate_.begin_read(bytes);
    read_bytes_ += bytes;
  }
  void enter(std::size_t bytes) {
    gate_.enter(bytes);
    inside_bytes_ += bytes;
  }
  std::size_t read_bytes() const { return read_bytes_; }

 private:
  MemoryGate& gate_;
  std::size_t read_bytes_ = 0, inside_bytes_ = 0;
};

}  // namespace

// Gives the pipeline the ticket's slots.
class Executor::TicketSlots final : public SlotProvider {
 public:
  TicketSlots(Executor& executor, Task& task) : executor_(executor), task_(task) {}

  TensorSpan slot(std::string_view field, const TensorSpec& spec) override {
    MutexLock lock(executor_.mutex_);
    const TensorSpan place = task_.run->slot(task_.ticket, field, spec);
    const std::size_t batch_bytes = task_.ticket.place.slab->bytes();
    if (batch_bytes > executor_.largest_batch_bytes_) {
      executor_.largest_batch_bytes_ = batch_bytes;
      executor_.room_.notify_all();  // now known: how many batches may be open
    }
    executor_.note_batch_bytes();
    return place;
  }

 private:
  Executor& executor_;
  Task& task_;
};

Executor::Executor(const What& what, const ExecutorOptions& options)
    : what_(what),
      options_(options),
      pool_(BufferPool::create(options.memory_limit)),
      gate_(options.memory_limit) {
  const std::vector<Step>& steps = what_.pipeline.steps();
  work_.ops.resize(steps.size());
  for (auto k = static_cast<std::size_t>(what_.source->cut()); k < steps.size(); ++k)
    made_fields_.push_back(steps[k].op.def().field);
}

Executor::~Executor() {
  close();
  for (std::thread& thread : threads_) thread.join();
}

void Executor::close() {
  gate_.close();
  MutexLock lock(mutex_);
  closed_ = true;
  runs_.clear();  // what threads are still at, they hold themselves
  pool_->give_up_idle();
  room_.notify_all();
  output_.notify_all();
}

std::shared_ptr<EpochRun> Executor::make_run(const EpochStart& start) const {
  const std::int64_t size = what_.source->size();
  EpochOrder order =
      what_.shuffle ? EpochOrder::shuffled(size, what_.seed, start.epoch) : EpochOrder(size);
  return what_.order == Order::kStrict ? make_strict_run(what_, *pool_, std::move(order), start)
                                       : make_ready_run(what_, *pool_, std::move(order), start);
}

void Executor::restart(const EpochStart& start) {
  auto run = make_run(start);
  MutexLock lock(mutex_);
  if (closed_) throw Error(Code::kCancelled, "the loader was closed; make a new one");
  // Threads still at work on the old runs hold them, finish into them, and drop them.
  runs_.clear();
  runs_.push_back(std::move(run));
  note_batch_bytes();
  room_.notify_all();
  if (process_ != 0) return;
  process_ = getpid();
  try {
    while (static_cast<int>(threads_.size()) < options_.threads)
      threads_.emplace_back([this] { work_loop(); });
  } catch (const std::system_error& error) {
    if (threads_.empty()) process_ = 0;
    throw Error(Code::kIo, "could start only " + std::to_string(threads_.size()) + " of " +
                               std::to_string(options_.threads) +
                               " threads: " + std::string(error.what()) + "; lower num_workers");
  }
}

bool Executor::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

void Executor::work_loop() {
  for (;;) {
    std::optional<Task> task;
    try {
      task = take();
    } catch (...) {  // no memory for a batch, or for the order of an epoch
      MutexLock lock(mutex_);
      if (!runs_.empty()) runs_.front()->abort(caught(-1, "batch"));
      output_.notify_all();
      continue;
    }
    if (!task) return;
    make(*task);
  }
}

bool Executor::room_for_next() {
  if (runs_.empty() || runs_.front()->failed()) return false;
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
  if (largest_batch_bytes_ > 0)
    most = std::clamp(static_cast<std::int64_t>(options_.memory_limit / 2 / largest_batch_bytes_),
                      std::int64_t{1}, options_.prefetch_batches);
  return open < most;
}

std::optional<Executor::Task> Executor::take() {
  const auto start = Clock::now();
  MutexLock lock(mutex_);
  while (!closed_ && !room_for_next()) room_.wait(mutex_);
  work_.worker_wait_ns += nanoseconds_since(start);
  if (closed_) return std::nullopt;
  const auto& run = runs_.back();
  return Task{run, run->issue()};
}

// Source → draws → pipeline → slots, for one sample.
Result<Sample> Executor::make_sample(Task& task, Work& work) {
  std::string_view stage = "read";
  try {
    GateHold hold(gate_);
    const auto start = Clock::now();
    Result<Sample> stored =
        what_.source->read(task.ticket.id, {*pool_, [&](std::size_t bytes) { hold.read(bytes); }});
    work.read.nanoseconds += nanoseconds_since(start);
    ++work.read.calls;
    if (!stored) return stored;
    work.bytes_read += hold.read_bytes();

    const Pipeline& pipeline = what_.pipeline;
    Result<Draws> draws = pipeline.draw(stored.value(), what_.seed, task.run->epoch());
    if (!draws) return std::move(draws.failure());

    TicketSlots slots(*this, task);
    RunContext how;
    how.pool = pool_;
    how.slots = &slots;
    how.fuse = options_.fuse;
    how.times = &work.ops;
    how.reserve = [&](std::size_t bytes) { hold.enter(bytes); };
    const Cut from = stored.value().cut;
    Result<Sample> made =
        pipeline.run(std::move(stored).value(), from, pipeline.last_cut(), draws.value(), how);
    if (!made) return made;

    // Fields that no op has written are copied.
    stage = "batch";
    for (const Field& field : made.value().fields) {
      if (std::ranges::find(made_fields_, field.name) != made_fields_.end()) continue;
      const TensorSpan place = slots.slot(field.name, field.tensor.spec());
      const std::size_t size = field.tensor.spec().bytes();
      if (size > 0) std::memcpy(place.bytes(), field.tensor.view().bytes(), size);
    }
    return made;
  } catch (...) {
    return caught(task.ticket.id, stage);
  }
}

void Executor::make(Task& task) {
  Work work;
  work.ops.resize(what_.pipeline.steps().size());
  Result<Sample> made = make_sample(task, work);
  const SampleId asked_for = task.ticket.id;
  for (int i = 0; i < kSubstitutes && !made && made.failure().code == Code::kBadSample &&
                  what_.bad_samples.policy == OnError::kSubstitute;
       ++i) {
    Failure failure = std::move(made.failure());
    failure.path = what_.source->path(task.ticket.id);
    work.substituted.try_emplace(failure.sample, failure);
    task.ticket.id = (asked_for + i + 1) % what_.source->size();
    made = make_sample(task, work);
  }

  MutexLock lock(mutex_);
  work_.bytes_read += work.bytes_read;
  work_.read.nanoseconds += work.read.nanoseconds;
  work_.read.calls += work.read.calls;
  for (std::size_t k = 0; k < work.ops.size(); ++k) {
    work_.ops[k].nanoseconds += work.ops[k].nanoseconds;
    work_.ops[k].calls += work.ops[k].calls;
  }
  for (auto& [id, failure] : work.substituted)
    work_.substituted.try_emplace(id, std::move(failure));

  if (made) {
    task.run->complete(task.ticket);
  } else {
    Failure failure = std::move(made.failure());
    failure.path = what_.source->path(task.ticket.id);
    task.run->fail(task.ticket, std::move(failure));
  }
  for (Failure& failure : task.run->take_skipped()) {
    const SampleId id = failure.sample;
    work_.skipped.try_emplace(id, std::move(failure));
    room_.notify_one();  // its slot is free for one more
  }
  if (something_for_consumer()) output_.notify_all();
}

bool Executor::something_for_consumer() const {
  return !runs_.empty() && (!runs_.front()->finished.empty() || runs_.front()->over());
}

void Executor::note_batch_bytes() {
  std::size_t open = 0;
  for (const auto& run : runs_) open += static_cast<std::size_t>(run->open_batches());
  gate_.set_batch_bytes(open * largest_batch_bytes_);
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
