// SPDX-License-Identifier: Apache-2.0
// One sample, from its bytes to its slot: draws, pipeline, and the policy for bad ones.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/caught.h"
#include "core/thread_clock.h"
#include "run/executor.h"

namespace cutwater {
namespace {

// How often a bad sample's substitute may itself be bad.
constexpr int kSubstitutes = 64;

std::size_t owned_bytes(const Sample& sample) {
  std::size_t bytes = 0;
  for (const Field& field : sample.fields)
    if (field.tensor.owns_bytes()) bytes += field.tensor.spec().bytes();
  return bytes;
}

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
  for (std::size_t from = 0; from < made.size(); ++from)
    sum.made[from] += std::exchange(made[from], 0);
  keeper.move_to(sum.keeper);
  sum.made_ahead += std::exchange(made_ahead, 0);
  sum.worker_wait_ns += std::exchange(worker_wait_ns, 0);
  const auto move_time = [](OpTime& from, OpTime& to) {
    to.nanoseconds += std::exchange(from.nanoseconds, 0);
    to.calls += std::exchange(from.calls, 0);
  };
  move_time(read, sum.read);
  for (auto& [route, times] : ops) {
    std::vector<OpTime>& to = sum.ops[route];
    to.resize(times.size());
    for (std::size_t k = 0; k < times.size(); ++k) move_time(times[k], to[k]);
  }
  sum.substituted.merge(substituted);
  substituted.clear();
}

// The ticket's sample, if the keeper has it.
std::optional<Kept> Executor::look_up(Task& task, Work& work) {
  if (options_.keeper == nullptr) return std::nullopt;
  std::optional<Kept> kept;
  try {
    const ReadContext into(*pool_, room_for_read(task, nullptr));
    kept = options_.keeper->find(turn_of(task), into, work.keeper);
  } catch (...) {  // out of memory, or closed: whoever reads will find out the same
  }
  if (!kept) task.hold.give_back();  // asked for in vain
  return kept;
}

void Executor::make_kept(Task& task, Kept kept, Work& work) {
  Result<Sample> made = make_sample(task, std::move(kept.sample), kept.from, work);
  finish(task, make_substitute(task, std::move(made), work), work);
}

void Executor::make_read(Task& task, Work& work, Clock::time_point start) {
  const std::uint64_t read_before = work.bytes_read;
  Result<Sample> stored = task.fetched ? take_fetched(task, work)
                          : task.read  ? take_read(task, work)
                                       : read_at_once(task, work);
  task.read.reset();
  const std::optional<Fetched> fetched = std::exchange(task.fetched, std::nullopt);
  const double begun = fetched ? thread_seconds() : 0;
  const std::uint64_t spent = nanoseconds_since(start);
  if (options_.keeper != nullptr) {
    const auto bytes = static_cast<double>(work.bytes_read - read_before);
    {
      MutexLock lock(mutex_);
      read_times_.learn(bytes, task.stored_seconds + 1e-9 * static_cast<double>(spent));
      task.read_seconds = read_times_.usual(bytes);
    }
    if (!fetched) options_.keeper->learn_read(task.read_seconds);
  }
  work.read.nanoseconds += spent;
  ++work.read.calls;
  Result<Sample> made = make_sample(task, std::move(stored), From::kSource, work);
  if (fetched && fetched->sample && made) fetcher_->took(*fetched, thread_seconds() - begun);
  finish(task, make_substitute(task, std::move(made), work), work);
}

// What was made, or, where that is the policy, the next good sample in place of a bad one.
Result<Sample> Executor::make_substitute(Task& task, Result<Sample> made, Work& work) {
  const SampleId asked_for = task.ticket.id;
  for (int i = 0; i < kSubstitutes && !made && made.failure().code == Code::kBadSample &&
                  what_.bad_samples.policy == OnError::kSubstitute;
       ++i) {
    Failure failure = std::move(made.failure());
    complete_path(task, failure);
    work.substituted.try_emplace(failure.sample, failure);
    task.ticket.id = (asked_for + i + 1) % what_.source->size();
    task.read_seconds = 0;
    task.as_stored = true;
    task.path.clear();
    if (std::optional<Kept> kept = look_up(task, work))
      made = make_sample(task, std::move(kept->sample), kept->from, work);
    else
      made = make_sample(task, read_at_once(task, work), From::kSource, work);
  }
  return made;
}

void Executor::complete_path(const Task& task, Failure& failure) const {
  if (!failure.path.empty()) return;
  failure.path = task.path.empty() ? what_.source->path(task.ticket.id) : task.path;
}

// Counts what is read, but not what it is unpacked to.
std::function<void(std::size_t)> Executor::room_for_read(Task& task, std::uint64_t* read_bytes) {
  return [this, &task, read_bytes](std::size_t bytes) {
    const bool unpacking = task.hold.read_bytes() > 0;
    // Reads in flight, and what a fetcher has brought, hold memory that only a thread can free: it
    // must not wait for them. Nor may it wait for room to unpack what it holds: others may do the
    // same. What it takes so is bounded by the number of threads.
    if (stored_ != nullptr || fetcher_ != nullptr || unpacking)
      gate_.force_read(bytes);
    else
      gate_.begin_read(bytes);
    task.hold.has_read(bytes);
    if (!unpacking && read_bytes != nullptr) *read_bytes += bytes;
  };
}

Result<Sample> Executor::take_read(Task& task, Work& work) try {
  work.bytes_read += task.hold.read_bytes();
  return task.read->take({*pool_, room_for_read(task, nullptr)});
} catch (...) {
  return caught(task.ticket.id, "read");
}

Result<Sample> Executor::read_at_once(Task& task, Work& work) try {
  return what_.source->read(task.ticket.id, {*pool_, room_for_read(task, &work.bytes_read)});
} catch (...) {
  return caught(task.ticket.id, "read");
}

Result<Sample> Executor::make_sample(Task& task, Result<Sample> brought, From from, Work& work) {
  struct AtEnd {
    ~AtEnd() { hold.give_back(); }
    GateHold& hold;
  } at_end{task.hold};
  ++work.made[static_cast<std::size_t>(from)];
  try {
    const bool recorded = from == From::kSource && task.as_stored && options_.record != nullptr &&
                          options_.record->draw(task.ticket.id, task.run->epoch());
    if (!brought) return brought;
    Sample sample = std::move(brought).value();
    const Pipeline& pipeline = what_.pipeline;
    Result<Draws> draws = pipeline.draw(sample, what_.seed, task.run->epoch());
    if (!draws) return std::move(draws.failure());

    RunContext how;
    how.pool = pool_;
    how.fuse = options_.fuse;
    how.hints = options_.hints;
    how.reserve = [&](std::size_t bytes) { task.hold.enter(bytes); };
    TicketSlots slots(*this, task);
    std::optional<Sample> done;
    if (recorded) done = run_recorded(task, sample, draws.value(), how, slots, work);
    if (!done) {
      Result<Sample> wanted = run_to_kept(task, std::move(sample), from, draws.value(), how, work);
      if (!wanted) return wanted;
      sample = std::move(wanted).value();
    }

    how.slots = &slots;
    const Cut cut = sample.cut;
    Result<Sample> made =
        done ? std::move(*done)
             : run(std::move(sample), pipeline.last_cut(), draws.value(), how, work);
    if (!made) return made;

    // Fields that no op has written are copied.
    for (const Field& field : made.value().fields) {
      if (written_from(cut, field.name)) continue;
      const TensorSpan place = slots.slot(field.name, field.tensor.spec());
      const std::size_t size = field.tensor.spec().bytes();
      if (size > 0) std::memcpy(place.bytes(), field.tensor.view().bytes(), size);
    }
    return made;
  } catch (...) {
    return caught(task.ticket.id, "batch");
  }
}

// If the keeper wants the sample, it is run up to that cut, and goes on from there. Otherwise it
// stays where it is: ops that run as one up to the batch are faster than in two parts.
Result<Sample> Executor::run_to_kept(Task& task, Sample sample, From from, const Draws& draws,
                                     RunContext how, Work& work) {
  if (!task.as_stored) return sample;  // it may be a part that no other draws could go on from
  const Turn turn = turn_of(task);
  Cut first = from == From::kSource ? sample.cut : sample.cut + 1;  // what was found is kept there
  std::optional<double> start;
  while (const std::optional<Cut> cut = wanted_cut(turn, first, from)) {
    if (!start) start = thread_seconds();
    const bool further = *cut > sample.cut;
    Result<Sample> made = run(std::move(sample), *cut, draws, how, work);
    if (!made) return made;
    sample = std::move(made).value();
    options_.keeper->keep(sample, turn.epoch, task.read_seconds + thread_seconds() - *start,
                          work.keeper);
    if (further) task.hold.leave_with(owned_bytes(sample));
    first = *cut + 1;
  }
  if (start) task.making.end();
  return sample;
}

std::optional<Cut> Executor::wanted_cut(Turn turn, Cut first, From made_from) const {
  if (options_.keeper == nullptr || first > what_.pipeline.last_cut()) return std::nullopt;
  return options_.keeper->wants(turn, first, made_from);
}

// Op by op, into the slots. Nothing: it cannot be done so, and the sample is as it was. Op by op
// takes more memory than fused, and whether a sample is bad is for the usual way to say. What is
// returned refers to what no op has changed in `sample`.
std::optional<Sample> Executor::run_recorded(Task& task, Sample& sample, const Draws& draws,
                                             RunContext how, SlotProvider& slots, Work& work) {
  GateHold hold(gate_);
  how.reserve = [&](std::size_t bytes) { hold.enter(bytes); };
  how.times = times_of({sample.cut, what_.pipeline.last_cut()}, work);
  const Turn turn = turn_of(task);
  const double start = thread_seconds();
  Result<Sample> made =
      options_.record->run(what_.pipeline, lent(sample), draws, how, slots, [&](const Sample& at) {
        hold.leave_with(owned_bytes(at));
        if (wanted_cut(turn, at.cut, From::kSource) == at.cut)
          options_.keeper->keep(at, turn.epoch, task.read_seconds + thread_seconds() - start,
                                work.keeper);
      });
  if (!made) return std::nullopt;
  return std::move(made).value();
}

Result<Sample> Executor::run(Sample sample, Cut to, const Draws& draws, RunContext& how,
                             Work& work) {
  const Cut from = sample.cut;
  if (from == to) return sample;
  how.times = times_of({from, to}, work);
  return what_.pipeline.run(std::move(sample), from, to, draws, how);
}

std::vector<OpTime>* Executor::times_of(Route route, Work& work) const {
  std::vector<OpTime>& times = work.ops[route];
  times.resize(what_.pipeline.steps().size());
  return &times;
}

// Whether a step after the cut writes the field, and so into its slot.
bool Executor::written_from(Cut cut, std::string_view field) const {
  const std::vector<Step>& steps = what_.pipeline.steps();
  return std::any_of(steps.begin() + cut, steps.end(),
                     [&](const Step& step) { return step.op.def().field == field; });
}

void Executor::finish(Task& task, Result<Sample> made, Work& work) {
  MutexLock lock(mutex_);
  // Only now: what the cache lent may have been in use until here. An epoch that was begun anew has
  // yet to see it.
  if (options_.seat != nullptr && std::ranges::find(runs_, task.run) != runs_.end())
    options_.seat->had(task.run->draw(), task.id);
  work.move_to(work_);
  wake_deferred();
  if (made) {
    task.run->complete(task.ticket);
  } else {
    Failure failure = std::move(made.failure());
    complete_path(task, failure);
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
