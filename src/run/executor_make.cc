// SPDX-License-Identifier: Apache-2.0
// One sample, from its bytes to its slot: draws, pipeline, and the policy for bad ones.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/caught.h"
#include "run/executor.h"

namespace cutwater {
namespace {

// How often a bad sample's substitute may itself be bad.
constexpr int kSubstitutes = 64;

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

void Work::move_to(Work& sum) {
  sum.bytes_read += std::exchange(bytes_read, 0);
  sum.reads_queued += std::exchange(reads_queued, 0);
  sum.worker_wait_ns += std::exchange(worker_wait_ns, 0);
  const auto move_time = [](OpTime& from, OpTime& to) {
    to.nanoseconds += std::exchange(from.nanoseconds, 0);
    to.calls += std::exchange(from.calls, 0);
  };
  move_time(read, sum.read);
  for (std::size_t k = 0; k < ops.size(); ++k) move_time(ops[k], sum.ops[k]);
  sum.substituted.merge(substituted);
  substituted.clear();
}

void Executor::make(Task& task, Worker& worker, Clock::time_point start) {
  Work& work = worker.work;
  Result<Sample> stored = task.read ? take_read(task, work) : read_at_once(task, work);
  task.read.reset();
  work.read.nanoseconds += nanoseconds_since(start);
  ++work.read.calls;
  Result<Sample> made = make_sample(task, std::move(stored), work);

  const SampleId asked_for = task.ticket.id;
  for (int i = 0; i < kSubstitutes && !made && made.failure().code == Code::kBadSample &&
                  what_.bad_samples.policy == OnError::kSubstitute;
       ++i) {
    Failure failure = std::move(made.failure());
    failure.path = what_.source->path(task.ticket.id);
    work.substituted.try_emplace(failure.sample, failure);
    task.ticket.id = (asked_for + i + 1) % what_.source->size();
    made = make_sample(task, read_at_once(task, work), work);
  }
  finish(task, std::move(made), work);
}

// A thread that holds what it has read must not wait for room to unpack it: others may do the same.
// So it takes that room, which is bounded by the number of threads.
Result<Sample> Executor::take_read(Task& task, Work& work) try {
  const auto reserve = [&](std::size_t bytes) {
    gate_.force_read(bytes);
    task.hold.has_read(bytes);
  };
  work.bytes_read += task.hold.read_bytes();
  return task.read->take({*pool_, reserve});
} catch (...) {
  return caught(task.ticket.id, "read");
}

Result<Sample> Executor::read_at_once(Task& task, Work& work) try {
  const auto reserve = [&](std::size_t bytes) {
    const bool unpacking = task.hold.read_bytes() > 0;
    // Reads in flight hold memory that only a thread can free: it must not wait for them.
    if (stored_ != nullptr || unpacking)
      gate_.force_read(bytes);
    else
      gate_.begin_read(bytes);
    task.hold.has_read(bytes);
    if (!unpacking) work.bytes_read += bytes;
  };
  return what_.source->read(task.ticket.id, {*pool_, reserve});
} catch (...) {
  return caught(task.ticket.id, "read");
}

Result<Sample> Executor::make_sample(Task& task, Result<Sample> stored, Work& work) {
  struct AtEnd {
    ~AtEnd() { hold.give_back(); }
    GateHold& hold;
  } at_end{task.hold};
  try {
    if (!stored) return stored;
    const Pipeline& pipeline = what_.pipeline;
    Result<Draws> draws = pipeline.draw(stored.value(), what_.seed, task.run->epoch());
    if (!draws) return std::move(draws.failure());

    TicketSlots slots(*this, task);
    RunContext how;
    how.pool = pool_;
    how.slots = &slots;
    how.fuse = options_.fuse;
    how.times = &work.ops;
    how.hints = options_.hints;
    how.reserve = [&](std::size_t bytes) { task.hold.enter(bytes); };
    const Cut from = stored.value().cut;
    Result<Sample> made =
        pipeline.run(std::move(stored).value(), from, pipeline.last_cut(), draws.value(), how);
    if (!made) return made;

    // Fields that no op has written are copied.
    for (const Field& field : made.value().fields) {
      if (std::ranges::find(made_fields_, field.name) != made_fields_.end()) continue;
      const TensorSpan place = slots.slot(field.name, field.tensor.spec());
      const std::size_t size = field.tensor.spec().bytes();
      if (size > 0) std::memcpy(place.bytes(), field.tensor.view().bytes(), size);
    }
    return made;
  } catch (...) {
    return caught(task.ticket.id, "batch");
  }
}

void Executor::finish(Task& task, Result<Sample> made, Work& work) {
  MutexLock lock(mutex_);
  work.move_to(work_);
  wake_deferred();
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

}  // namespace cutwater
