// SPDX-License-Identifier: Apache-2.0
// Reads in flight: a read that would wait for storage goes into the ring, and its thread takes the
// next ticket. Whoever comes next goes on with a read that has arrived.
//
// No thread waits for memory with reads in flight, for they hold memory that only a thread can
// free: a task that finds none is put aside until some other one has given back its own.
#include <algorithm>
#include <exception>
#include <span>
#include <system_error>
#include <utility>

#include "run/executor.h"

namespace cutwater {
namespace {

// A read that takes longer than this came from storage, not from memory.
constexpr std::chrono::microseconds kSlow{300};
// Of the reads that cannot be tried, so many go into the ring for each that a thread does itself.
constexpr unsigned kBetweenTrials = 32;

}  // namespace

bool Executor::bring(Task& task, Worker& worker) try {
  task.begun = true;
  if (fetcher_ != nullptr) return fetch(task, worker);
  if (stored_ == nullptr) return true;
  if (!task.read) task.read = std::make_unique<SampleRead>(*stored_, task.ticket.id);
  for (;;) {
    const SampleRead::Next next = task.read->advance();
    if (next == SampleRead::Next::kSample) return true;
    if (next == SampleRead::Next::kMemory) {
      if (!admit(task)) return false;
      continue;
    }
    const bool in_doubt = next == SampleRead::Next::kRead && task.read->untried();
    if (in_doubt && (!seems_slow_ || ++untried_reads_ % kBetweenTrials == 0)) {
      const auto start = Clock::now();
      task.read->leave_to_me();
      task.read->advance();
      seems_slow_ = Clock::now() - start > kSlow;
      continue;
    }
    if (send(task, next, worker)) return false;
    task.read->leave_to_me();
  }
} catch (...) {  // out of memory
  if (task.read) task.read->fail(std::current_exception());
  return true;
}

// Memory for the task's bytes; false: it was put aside.
bool Executor::admit(Task& task) {
  const std::size_t bytes = task.read->size();
  if (!gate_.try_begin_read(bytes)) {
    // Under the lock that all who give back take afterwards: none of them can be missed.
    MutexLock lock(mutex_);
    if (!gate_.try_begin_read(bytes)) {
      deferred_.push_back(std::move(task));
      return false;
    }
  }
  task.hold.has_read(bytes);
  task.read->give(pool_->allocate(bytes));
  return true;
}

// Into the ring; false: there is no ring, or no room in it.
bool Executor::send(Task& task, SampleRead::Next what, Worker& worker) {
  SampleRead& read = *task.read;
  const bool is_read = what == SampleRead::Next::kRead;
  const char* const path = what == SampleRead::Next::kOpen ? read.path().c_str() : nullptr;
  const int fd = is_read ? read.fd() : -1;
  const std::span<std::uint8_t> rest = is_read ? read.rest() : std::span<std::uint8_t>();
  const std::uint64_t offset = is_read ? read.offset() : 0;
  const Clock::time_point due = read.due();
  std::uint64_t token = 0;
  {
    MutexLock lock(mutex_);
    if (closed_ || reads_out() >= options_.reads_in_flight || !start_ring()) return false;
    token = ++last_token_;
    task.sent = Clock::now();
    in_flight_.emplace(token, std::move(task));
  }
  // It may arrive, and be another thread's, before the call returns.
  const bool sent = path != nullptr ? ring_->open(path, File::kOpenFlags, token)
                    : is_read       ? ring_->read(fd, rest, offset, token)
                                    : ring_->wait_until(due, token);
  if (sent) {
    ++worker.work.reads_queued;
    worker.arrived_first = false;
    return true;
  }
  MutexLock lock(mutex_);
  auto back = in_flight_.extract(token);
  read.leave_to_me();
  arrived_.push_front(std::move(back.mapped()));
  if (closed_) ring_->wake();  // whoever waits for the last one to arrive
  return true;
}

bool Executor::start_ring() {
  if (!ring_tried_) {
    ring_tried_ = true;
    std::unique_ptr<Ring> ring = Ring::create(static_cast<unsigned>(options_.reads_in_flight));
    if (ring) {
      ring_ = std::move(ring);
      try {
        reaper_ = std::thread([this] { reap(); });
      } catch (const std::system_error&) {
        ring_.reset();
      }
    }
  }
  return ring_ != nullptr;
}

void Executor::reap() {
  for (;;) {
    const std::vector<Ring::Done> all = ring_->wait();
    MutexLock lock(mutex_);
    const auto in_flight = static_cast<double>(in_flight_.size());
    for (const Ring::Done& done : all) {
      auto task = in_flight_.extract(done.token);
      task.mapped().stored_seconds +=
          1e-9 * static_cast<double>(nanoseconds_since(task.mapped().sent)) / in_flight;
      task.mapped().read->done(done.result);
      arrived_.push_back(std::move(task.mapped()));
      room_.notify_one();
    }
    if (closed_ && in_flight_.empty()) return;
  }
}

// Reads of epochs that nobody will consume.
void Executor::drop_stale() {
  const auto stale = [this](const Task& task) CUTWATER_REQUIRES(mutex_) {
    return std::find(runs_.begin(), runs_.end(), task.run) == runs_.end();
  };
  std::erase_if(put_aside_, stale);
  if (std::erase_if(arrived_, stale) + std::erase_if(deferred_, stale) > 0) wake_deferred();
}

void Executor::wake_deferred() {
  if (deferred_.empty()) return;
  arrived_.splice(arrived_.end(), deferred_);
  room_.notify_all();
}

}  // namespace cutwater
