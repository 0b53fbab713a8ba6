// SPDX-License-Identifier: Apache-2.0
// Samples for the cache, in spare time: while the consumer has all batches that it may have and
// every thread waits for room, one more thread, which gives way to whatever else the machine has to
// do, makes samples that the cache lacks and has free room for. In its first epoch a loader makes
// every sample anyway; afterwards there is such room where values were of use to nobody any more,
// jobs have gone, or a server was begun anew.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>

#include "core/thread_clock.h"
#include "run/executor.h"

namespace cutwater {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 50ms, kLongestPause = 10s;
// nice(1). Not the lowest of all: who keeps a sample asks the cache's daemon, and others may wait
// until it has its answer.
constexpr int kModest = 10;
constexpr int kOthersMake = 32;  // samples in a row that other jobs are at, before it rests

struct NoSpareMemory : std::exception {
  const char* what() const noexcept override { return "no memory to spare"; }
};

}  // namespace

void Executor::start_refilling() try {
  if (options_.keeper != nullptr && options_.keeper->refills() && fetcher_ == nullptr)
    refiller_ = std::thread([this] { refill_loop(); });
} catch (const std::system_error&) {  // no thread for it: all is made when it is needed
}

bool Executor::time_to_spare() const {
  return !at_rest_ && resting_ == options_.threads && reads_out() == 0 && !runs_.empty() &&
         runs_.front()->epoch() > first_epoch_ && something_for_consumer();
}

void Executor::refill_loop() {
  // What it takes from others is then little; where the system refuses, somewhat more.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kModest);
  std::chrono::milliseconds pause = kFirstPause;
  for (;;) {
    std::uint32_t epoch = 0;
    {
      MutexLock lock(mutex_);
      while (!closed_ && !time_to_spare()) spare_.wait(mutex_);
      if (closed_) return;
      epoch = runs_.front()->epoch();
    }
    const Ahead ahead = make_what_is_lacking(epoch);
    if (ahead == Ahead::kKept) pause = kFirstPause;
    if (ahead != Ahead::kNothing) continue;
    MutexLock lock(mutex_);
    const auto until = Clock::now() + pause;  // others wake it up all the time
    while (!closed_ && Clock::now() < until) spare_.wait_for(mutex_, until - Clock::now());
    pause = std::min(2 * pause, kLongestPause);
  }
}

Executor::Ahead Executor::make_what_is_lacking(std::uint32_t epoch) try {
  for (int tries = 0; tries < kOthersMake; ++tries) {
    const std::optional<SampleId> id = options_.keeper->lacks();
    if (!id) break;
    if (is_known_bad(*id)) continue;
    if (options_.seat == nullptr) return make_ahead(*id, epoch);
    if (!options_.seat->start_making(*id)) continue;
    const Making making(*options_.seat, *id);
    return make_ahead(*id, epoch);
  }
  return Ahead::kNothing;
} catch (...) {  // out of memory: there is none to spare
  return Ahead::kNothing;
}

bool Executor::is_known_bad(SampleId id) const {
  MutexLock lock(mutex_);
  return work_.skipped.contains(id) || work_.substituted.contains(id);
}

bool Executor::still_has_time() const {
  MutexLock lock(mutex_);
  return !closed_ && time_to_spare();
}

// Counts what was read, whatever becomes of it, and says how long as much usually takes: this
// thread's own time would be that of one that gives way.
double Executor::note_read_ahead(Work& work) {
  MutexLock lock(mutex_);
  const double usual_s = read_times_.usual(static_cast<double>(work.bytes_read));
  work.move_to(work_);
  return usual_s;
}

// kNothing: it cannot be made just now, or not at all, or is not kept. Whoever needs it will find
// out why. Where time is over it gives the sample up, and does not ask the cache: the threads that
// have work again must not wait for one that has little of the processor.
Executor::Ahead Executor::make_ahead(SampleId id, std::uint32_t epoch) {
  const Turn turn{id, epoch};
  const std::optional<Cut> cut = wanted_cut(turn, what_.source->cut(), From::kSource);
  if (!cut || !what_.pipeline.stable(*cut)) return Ahead::kNothing;
  GateHold hold(gate_);
  const auto take = [&](std::size_t bytes) {
    if (!gate_.try_enter(bytes)) throw NoSpareMemory();
    hold.has_entered(bytes);
  };
  Work work;
  Result<Sample> sample = what_.source->read(id, {*pool_, [&](std::size_t bytes) {
                                                    take(bytes);
                                                    // What follows is what it is unpacked to.
                                                    if (work.bytes_read == 0)
                                                      work.bytes_read = bytes;
                                                  }});
  const double read_s = note_read_ahead(work);
  if (!sample) return Ahead::kNothing;
  if (!still_has_time()) return Ahead::kNoTime;
  Result<Draws> draws = what_.pipeline.draw(sample.value(), what_.seed, epoch);
  if (!draws) return Ahead::kNothing;
  RunContext how;
  how.pool = pool_;
  how.fuse = options_.fuse;
  how.hints = options_.hints;
  how.reserve = take;
  const double start = thread_seconds();
  sample =
      what_.pipeline.run(std::move(sample).value(), what_.source->cut(), *cut, draws.value(), how);
  if (!sample) return Ahead::kNothing;
  const double made_s = thread_seconds() - start;
  if (!still_has_time()) return Ahead::kNoTime;
  const bool kept =
      options_.keeper->keep_ahead(sample.value(), epoch, read_s + made_s, work.keeper);
  work.made_ahead = kept ? 1 : 0;
  MutexLock lock(mutex_);
  work.move_to(work_);
  return kept ? Ahead::kKept : Ahead::kNothing;
}

}  // namespace cutwater
