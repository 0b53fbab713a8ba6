// SPDX-License-Identifier: Apache-2.0
// EpochRun: one epoch on its way. It issues tickets (which sample next), gives each sample a slot,
// and closes batches. One implementation per order; the executor's lock guards all of it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/options.h"
#include "run/slab.h"
#include "run/ticket_order.h"

namespace cutwater {

// A slot of a slab.
struct Place {
  std::shared_ptr<Slab> slab;
  std::int64_t index = 0;
};

// One sample to be made. Held by the worker that makes it.
struct Ticket {
  std::int64_t position = 0;  // in the epoch's order
  std::int64_t sequence = 0;  // see TicketOrder::Next
  SampleId id = 0;
  Place place;  // set at issue (strict) or when the sample's last op starts (ready)
};

struct FinishedBatch {
  std::shared_ptr<Slab> slab;
  std::int64_t count = 0;
  std::uint32_t epoch = 0;
  std::int64_t index = 0;
};

class EpochRun {
 public:
  EpochRun(const What& what, BufferPool& pool, EpochOrder order, const EpochStart& start,
           CacheSeat* seat);
  virtual ~EpochRun() = default;

  std::uint32_t epoch() const { return epoch_; }
  std::uint64_t draw() const { return tickets_.draw(); }
  bool all_issued() const { return tickets_.all_issued(); }
  // Whether the next ticket needs a batch that is not open yet: the moment to ask for memory.
  virtual bool next_opens_batch() const = 0;
  // REQUIRES: !all_issued()
  virtual Ticket issue() = 0;

  // Where this field of the ticket's sample is written. Throws Error(kInvalidArgument).
  virtual TensorSpan slot(Ticket& ticket, std::string_view field, const TensorSpec& spec) = 0;

  // Each ticket ends in exactly one of these.
  void complete(const Ticket& ticket);
  void fail(const Ticket& ticket, Failure failure);
  // Ends the epoch for a reason that is no sample's.
  void abort(Failure failure) {
    if (!stopped_) stop(std::move(failure));
  }

  // Batches in the order of delivery; a failure ends the epoch.
  std::deque<Result<FinishedBatch>> finished;
  bool over() const { return all_issued() && unresolved_ == 0 && finished.empty(); }

  std::int64_t open_batches() const { return open_batches_; }  // opened, not yet handed out
  void handed_out() { --open_batches_; }

  bool failed() const { return stopped_; }

  // Positions of samples that this epoch left out, in the order found; and why, once each.
  const std::vector<std::int64_t>& skipped_positions() const { return skipped_positions_; }
  std::vector<Failure> take_skipped() { return std::exchange(skipped_, {}); }

 protected:
  virtual void on_complete(const Ticket& ticket) = 0;
  virtual void on_fail(const Ticket& ticket, Failure failure) = 0;  // calls leave_out
  virtual void on_last() = 0;                                       // every ticket has ended

  Ticket next_ticket();
  std::shared_ptr<Slab> open_batch();
  void drop_batch() { --open_batches_; }
  void close_batch(std::shared_ptr<Slab> slab, std::int64_t count);
  // Applies the policy for bad samples: the sample is left out, or the epoch ends here.
  void leave_out(const Ticket& ticket, Failure failure);

  const What& what_;
  BufferPool& pool_;
  const std::int64_t batch_size_;

 private:
  template <class F>
  void guarded(F&& step);
  void resolve_one();
  void stop(Failure failure);

  TicketOrder tickets_;
  const std::uint32_t epoch_;
  std::int64_t next_batch_;
  std::int64_t unresolved_ = 0, open_batches_ = 0, completed_ = 0;
  bool stopped_ = false;
  std::vector<std::int64_t> skipped_positions_;
  std::vector<Failure> skipped_;
};

// `seat`: the job's at a cache, if it has one; it outlives the run.
std::unique_ptr<EpochRun> make_strict_run(const What& what, BufferPool& pool, EpochOrder order,
                                          const EpochStart& start, CacheSeat* seat = nullptr);
std::unique_ptr<EpochRun> make_ready_run(const What& what, BufferPool& pool, EpochOrder order,
                                         const EpochStart& start, CacheSeat* seat = nullptr);

}  // namespace cutwater
