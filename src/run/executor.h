// SPDX-License-Identifier: Apache-2.0
// Executor: native threads that take the next sample of the order, run the pipeline on it, and
// write it into its slot. The sample, not the batch, is the unit of work.
//
// Threads never wait for each other's samples: only for room (open batches, memory), and for
// storage when there is nothing else to do. The consumer waits for a batch, the end of the epoch, a
// failure, or close(). Every wait has one of these ends.
//
// Nor do they wait for another job that makes the same sample for the cache that both use: they
// take other tickets, come back to this one now and then, and in the end make it themselves if it
// is still not there.
//
// executor.cc: threads, tickets, the consumer's side. executor_reads.cc: reads in flight.
// executor_fetch.cc: samples that somebody else brings. executor_make.cc: one sample, from its
// bytes to its slot. executor_refill.cc: samples for the cache, in spare time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "cutwater/options.h"
#include "run/epoch_run.h"
#include "run/form_keeper.h"
#include "run/memory_gate.h"
#include "run/op_record.h"
#include "run/read_times.h"
#include "run/ring.h"
#include "run/sample_read.h"
#include "source/fetcher.h"
#include "source/hint_book.h"

namespace cutwater {

struct ExecutorOptions {
  int threads = 1;
  std::size_t memory_limit = 0;
  std::int64_t prefetch_batches = 1;
  bool fuse = true;
  int reads_in_flight = 0;       // besides what the threads read themselves; 0: none
  std::string policy = "auto";   // of sources that do some of the work
  HintBook* hints = nullptr;     // null: nothing is learned
  FormKeeper* keeper = nullptr;  // null: nothing is kept
  CacheSeat* seat = nullptr;     // at the keeper's cache; null: it knows nothing of this job
  OpRecord* record = nullptr;    // null: nothing is recorded
};

// The cuts between which a pipeline ran in one go.
struct Route {
  Cut from, to;
  bool operator==(const Route&) const = default;
  bool operator<(const Route& other) const {
    return from != other.from ? from < other.from : to < other.to;
  }
};

// What the threads have done so far; times are summed over them.
struct Work {
  std::uint64_t bytes_read = 0;
  OpTime read;
  std::uint64_t reads_queued = 0;         // that went through the ring
  std::array<std::int64_t, 3> made = {};  // samples, by From
  KeeperWork keeper;
  std::int64_t made_ahead = 0;               // samples, for the keeper, in spare time
  std::map<Route, std::vector<OpTime>> ops;  // of each route, indexed by a group's first step
  std::uint64_t worker_wait_ns = 0, consumer_wait_ns = 0;
  std::map<SampleId, Failure> skipped, substituted;  // bad in every epoch: listed once

  std::int64_t made_from(From from) const { return made[static_cast<std::size_t>(from)]; }
  void move_to(Work& sum);  // and starts anew
};

class Executor {
 public:
  using Clock = std::chrono::steady_clock;

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
  // Nobody waits for a batch until restart(): no more samples are begun.
  void rest();
  bool wait(std::chrono::nanoseconds time);  // false: next() would still wait
  void close();
  bool closed() const;
  // False in a forked child: its threads, and locks they may hold, are another process's. Nothing
  // but this may be called there, the destructor included.
  bool belongs_here() const;

  // Positions that the running epoch left out so far.
  std::vector<std::int64_t> skipped_positions() const;
  Work work() const;
  std::optional<FetchReport> fetched() const;  // nothing: samples are read
  const BufferPool& pool() const { return *pool_; }

 private:
  class TicketSlots;

  static std::uint64_t nanoseconds_since(Clock::time_point start) {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  }

  // What one sample holds of the gate, given back when it is done.
  class GateHold {
   public:
    explicit GateHold(MemoryGate& gate) : gate_(&gate) {}
    GateHold(GateHold&& other) noexcept : gate_(other.gate_) { *this = std::move(other); }
    GateHold& operator=(GateHold&& other) noexcept {
      std::swap(read_bytes_, other.read_bytes_);
      std::swap(inside_bytes_, other.inside_bytes_);
      return *this;
    }
    ~GateHold() { give_back(); }

    void has_read(std::size_t bytes) { read_bytes_ += bytes; }
    void has_entered(std::size_t bytes) { inside_bytes_ += bytes; }
    void enter(std::size_t bytes) {
      gate_->enter(bytes);
      has_entered(bytes);
    }
    // What was read and worked with makes way for a result of so many bytes, which is then as if
    // it had been read: whoever holds it may wait to enter again.
    void leave_with(std::size_t bytes) {
      gate_->force_read(bytes);
      give_back();
      read_bytes_ = bytes;
    }
    void give_back() {
      gate_->end_read(std::exchange(read_bytes_, 0));
      gate_->leave(std::exchange(inside_bytes_, 0));
    }
    std::size_t read_bytes() const { return read_bytes_; }

   private:
    MemoryGate* gate_;
    std::size_t read_bytes_ = 0, inside_bytes_ = 0;
  };

  // The word to other jobs that this one makes a sample, taken back when it is there, or will not
  // be.
  class Making {
   public:
    Making() = default;  // no such word
    Making(CacheSeat& seat, SampleId id) : seat_(&seat), id_(id) {}
    Making(Making&& other) noexcept { *this = std::move(other); }
    Making& operator=(Making&& other) noexcept {
      std::swap(seat_, other.seat_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Making() { end(); }
    void end() {
      if (seat_ != nullptr) std::exchange(seat_, nullptr)->made(id_);
    }

   private:
    CacheSeat* seat_ = nullptr;
    SampleId id_ = 0;
  };

  // A ticket on its way, with the thread that works on it or waiting for storage, memory or another
  // job.
  struct Task {
    Task(GateHold its_hold, std::shared_ptr<EpochRun> its_run)
        : run(std::move(its_run)), ticket(run->issue()), id(ticket.id), hold(std::move(its_hold)) {}

    std::shared_ptr<EpochRun> run;
    Ticket ticket;
    SampleId id;  // that was asked for; the ticket's may be a substitute
    GateHold hold;
    bool begun = false;                // to be brought: it is in no cache
    std::unique_ptr<SampleRead> read;  // null: the source reads in one go
    std::optional<Fetched> fetched;    // set: it was brought…
    bool as_stored = true;             // …and nothing was done to it
    std::string path;                  // where it comes from; empty: as the source says
    Clock::time_point sent;            // into the ring
    double stored_seconds = 0;         // of storage, whose time is shared by all in flight
    double read_seconds = 0;           // that storage and a thread usually take to bring it
    Making making;
    int times_aside = 0;
    std::uint64_t back_at = 0;  // once it was put aside: when so many were issued
  };

  // What a thread keeps from sample to sample.
  struct Worker {
    Work work;
    bool arrived_first = true;  // whether reads that have arrived go before new tickets
  };

  void work_loop();
  std::optional<Task> take(Worker& worker);
  std::optional<Task> next_task(Worker& worker) CUTWATER_REQUIRES(mutex_);
  std::optional<Task> first_of(std::list<Task>& tasks) CUTWATER_REQUIRES(mutex_);
  bool leave_to_another_job(Task& task);
  bool room_for_next() CUTWATER_REQUIRES(mutex_);
  std::shared_ptr<EpochRun> make_run(const EpochStart& start) const;
  bool something_for_consumer() const CUTWATER_REQUIRES(mutex_);
  void note_batch_bytes() CUTWATER_REQUIRES(mutex_);

  // Reads in flight. bring() is false when the task has gone into other hands.
  bool bring(Task& task, Worker& worker);
  bool admit(Task& task);
  bool send(Task& task, SampleRead::Next what, Worker& worker);
  bool start_ring() CUTWATER_REQUIRES(mutex_);
  void reap();
  bool fetch(Task& task, Worker& worker);
  void reap_fetched();
  void tell_fetcher() CUTWATER_REQUIRES(mutex_);
  void drop_stale() CUTWATER_REQUIRES(mutex_);
  void wake_deferred() CUTWATER_REQUIRES(mutex_);
  bool note_enough_out() CUTWATER_REQUIRES(mutex_);
  int reads_out() const CUTWATER_REQUIRES(mutex_) {
    return static_cast<int>(in_flight_.size() + arrived_.size());
  }

  bool time_to_spare() const CUTWATER_REQUIRES(mutex_);
  void start_refilling();
  void refill_loop();
  enum class Ahead : std::uint8_t { kKept, kNoTime, kNothing };
  Ahead make_what_is_lacking(std::uint32_t epoch);
  Ahead make_ahead(SampleId id, std::uint32_t epoch);
  bool is_known_bad(SampleId id) const;
  bool still_has_time() const;
  double note_read_ahead(Work& work);

  std::optional<Kept> look_up(Task& task, Work& work);
  std::function<void(std::size_t)> room_for_read(Task& task, std::uint64_t* read_bytes);
  void make_kept(Task& task, Kept kept, Work& work);
  void make_read(Task& task, Work& work, Clock::time_point start);
  Result<Sample> take_read(Task& task, Work& work);
  Result<Sample> take_fetched(Task& task, Work& work);
  Result<Sample> read_at_once(Task& task, Work& work);
  Result<Sample> make_sample(Task& task, Result<Sample> brought, From from, Work& work);
  Result<Sample> make_substitute(Task& task, Result<Sample> made, Work& work);
  void complete_path(const Task& task, Failure& failure) const;
  static Turn turn_of(const Task& task) { return {task.ticket.id, task.run->epoch()}; }
  Result<Sample> run_to_kept(Task& task, Sample sample, From from, const Draws& draws,
                             RunContext how, Work& work);
  std::optional<Cut> wanted_cut(Turn turn, Cut first, From made_from) const;
  std::optional<Sample> run_recorded(Task& task, Sample& sample, const Draws& draws, RunContext how,
                                     SlotProvider& slots, Work& work);
  Result<Sample> run(Sample sample, Cut to, const Draws& draws, RunContext& how, Work& work);
  std::vector<OpTime>* times_of(Route route, Work& work) const;
  bool written_from(Cut cut, std::string_view field) const;
  void finish(Task& task, Result<Sample> made, Work& work);

  const What& what_;
  const ExecutorOptions options_;
  const StoredBytes* const stored_;  // null: no reads in flight
  const std::shared_ptr<BufferPool> pool_;
  std::atomic<int> process_{0};  // where the threads live; 0: not started
  MemoryGate gate_;

  mutable Mutex mutex_;
  Condition room_, output_, spare_;
  std::deque<std::shared_ptr<EpochRun>> runs_ CUTWATER_GUARDED_BY(mutex_);
  std::uint64_t issued_ CUTWATER_GUARDED_BY(mutex_) = 0;   // tickets, of all runs
  std::list<Task> put_aside_ CUTWATER_GUARDED_BY(mutex_);  // that another job makes; by back_at
  std::size_t largest_batch_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::size_t noted_batch_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool at_rest_ CUTWATER_GUARDED_BY(mutex_) = false;  // see rest()
  Work work_ CUTWATER_GUARDED_BY(mutex_);
  ReadTimes read_times_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
  int resting_ CUTWATER_GUARDED_BY(mutex_) = 0;  // threads that wait for room
  std::uint32_t first_epoch_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::thread refiller_;

  // Whether reads of a file system that cannot say if they would wait are slow: now and then a
  // thread does one itself and looks at the clock.
  std::atomic<bool> seems_slow_{false};
  std::atomic<unsigned> untried_reads_{0};

  const std::unique_ptr<Fetcher> fetcher_;  // null: threads, or the ring, read
  Clock::time_point started_ CUTWATER_GUARDED_BY(mutex_);
  std::int64_t handed_out_ CUTWATER_GUARDED_BY(mutex_) = 0;  // samples

  std::unique_ptr<Ring> ring_;  // set once, under the lock, before anybody uses it
  bool ring_tried_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::uint64_t last_token_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Task> in_flight_ CUTWATER_GUARDED_BY(mutex_);  // in the ring, by token
  std::list<Task> arrived_ CUTWATER_GUARDED_BY(mutex_);  // that a thread can go on with
  bool asked_enough_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::list<Task> deferred_ CUTWATER_GUARDED_BY(mutex_);  // that found no memory for their bytes
  std::thread reaper_;
};

}  // namespace cutwater
