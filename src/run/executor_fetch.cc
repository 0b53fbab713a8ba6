// SPDX-License-Identifier: Apache-2.0
// Samples that a fetcher brings: a thread asks and takes the next ticket. Whoever comes next goes
// on with one that has arrived. Memory is asked for before, as much as samples usually come with.
#include <algorithm>
#include <utility>

#include "run/executor.h"

namespace cutwater {

// True: it is here. False: it has gone into other hands.
bool Executor::fetch(Task& task, Worker& worker) {
  if (task.fetched) return true;
  const std::size_t bytes = fetcher_->usual_bytes();
  const SampleId id = task.ticket.id;
  const std::uint32_t epoch = task.run->epoch();
  // What is to be kept must come whole, for what others get of it is for this epoch's draws alone;
  // and so must what is to be recorded op by op.
  const bool as_stored = wanted_cut(turn_of(task), 0, From::kSource).has_value() ||
                         (options_.record != nullptr && options_.record->would_draw(id, epoch));
  task.as_stored = as_stored;
  std::uint64_t token = 0;
  {
    MutexLock lock(mutex_);
    if (closed_) return false;
    if (!gate_.try_begin_read(bytes)) {
      deferred_.push_back(std::move(task));
      return false;
    }
    task.hold.has_read(bytes);
    if (!reaper_.joinable()) reaper_ = std::thread([this] { reap_fetched(); });
    token = ++last_token_;
    in_flight_.emplace(token, std::move(task));
  }
  ++worker.work.reads_queued;
  worker.arrived_first = false;
  fetcher_->ask(token, id, epoch, as_stored);
  return false;
}

void Executor::reap_fetched() {
  for (;;) {
    std::vector<Fetched> all = fetcher_->wait();
    MutexLock lock(mutex_);
    if (closed_) {
      in_flight_.clear();
      return;
    }
    for (Fetched& fetched : all) {
      auto task = in_flight_.extract(fetched.token);
      const std::size_t asked_for = task.mapped().hold.read_bytes();
      const std::size_t held = std::max(fetched.bytes, fetched.held_bytes);
      if (held > asked_for) {
        gate_.force_read(held - asked_for);
        task.mapped().hold.has_read(held - asked_for);
      }
      task.mapped().fetched = std::move(fetched);
      arrived_.push_back(std::move(task.mapped()));
      room_.notify_one();
    }
  }
}

Result<Sample> Executor::take_fetched(Task& task, Work& work) {
  work.bytes_read += task.fetched->bytes;
  task.path = std::move(task.fetched->path);
  if (task.fetched->sample) return std::move(*task.fetched->sample);
  task.as_stored = true;
  return read_at_once(task, work);
}

// How the job goes: what is decided at the other end depends on it.
void Executor::tell_fetcher() {
  if (!fetcher_) return;
  const double elapsed = 1e-9 * static_cast<double>(nanoseconds_since(started_));
  const double waited = 1e-9 * static_cast<double>(work_.worker_wait_ns + work_.read.nanoseconds);
  fetcher_->note({elapsed, 1e-9 * static_cast<double>(work_.consumer_wait_ns), handed_out_,
                  std::max(options_.threads * elapsed - waited, 0.0)});
}

std::optional<FetchReport> Executor::fetched() const {
  return fetcher_ ? std::optional(fetcher_->report()) : std::nullopt;
}

}  // namespace cutwater
