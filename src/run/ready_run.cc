// SPDX-License-Identifier: Apache-2.0
// Ready order: a sample takes a slot when its last op starts, so a slow one holds nobody up.
//
// Batches are delivered by number. Displacement from the order of the tickets is bounded on both
// sides. Early: no further ahead than batches may be open. Late: batch n closes only with every
// sample whose place in sequence is max_late_batches before it; slots are kept for those that have
// none yet.
#include <algorithm>
#include <set>
#include <utility>

#include "run/epoch_run.h"

namespace cutwater {
namespace {

class ReadyRun final : public EpochRun {
 public:
  ReadyRun(const What& what, BufferPool& pool, EpochOrder order, const EpochStart& start,
           CacheSeat* seat)
      : EpochRun(what, pool, std::move(order), start, seat), next_number_(start.next_batch) {}

  bool next_opens_batch() const override {
    std::size_t free = 0;
    for (const OpenBatch& batch : batches_) free += batch.free.size();
    return free <= waiting_.size();
  }

  Ticket issue() override {
    Ticket ticket = next_ticket();
    waiting_.insert(ticket.sequence);
    return ticket;
  }

  TensorSpan slot(Ticket& ticket, std::string_view field, const TensorSpec& spec) override {
    if (!ticket.place.slab) ticket.place = claim(ticket.sequence);
    return ticket.place.slab->slot(ticket.place.index, ticket.id, field, spec);
  }

 private:
  struct OpenBatch {
    std::int64_t number;
    std::shared_ptr<Slab> slab;
    std::vector<std::int64_t> free;  // slots that nobody has claimed, the next one last
    std::vector<std::int64_t> made;
  };

  // Samples without a slot, other than `except`, that must be delivered in this batch or before.
  std::size_t due(std::int64_t number, std::int64_t except) const {
    std::size_t count = 0;
    for (const std::int64_t sequence : waiting_) {
      if (sequence / batch_size_ + what_.max_late_batches > number) break;
      count += sequence == except ? 0 : 1;
    }
    return count;
  }

  // A slot in the first batch that has one to spare: more than are due, with what is free before
  // it.
  Place claim(std::int64_t sequence) {
    std::size_t free_before = 0, at = 0;
    for (;; ++at) {
      if (at == batches_.size()) add_batch();
      const OpenBatch& batch = batches_[at];
      if (!batch.free.empty() && free_before + batch.free.size() > due(batch.number, sequence))
        break;
      free_before += batch.free.size();
    }
    waiting_.erase(sequence);
    OpenBatch& batch = batches_[at];
    const std::int64_t slot = batch.free.back();
    batch.free.pop_back();
    return {batch.slab, slot};
  }

  void add_batch() {
    OpenBatch fresh{next_number_++, open_batch(), {}, {}};
    for (std::int64_t slot = fresh.slab->slots() - 1; slot >= 0; --slot) fresh.free.push_back(slot);
    batches_.push_back(std::move(fresh));
  }

  std::vector<OpenBatch>::iterator batch_of(const Ticket& ticket) {
    return std::find_if(batches_.begin(), batches_.end(),
                        [&](const OpenBatch& one) { return one.slab == ticket.place.slab; });
  }

  bool is_full(const OpenBatch& batch) const {
    return static_cast<std::int64_t>(batch.made.size()) == batch_size_;
  }

  void on_complete(const Ticket& ticket) override {
    batch_of(ticket)->made.push_back(ticket.place.index);
    while (!batches_.empty() && is_full(batches_.front())) {
      close_batch(std::move(batches_.front().slab), batch_size_);
      batches_.erase(batches_.begin());
    }
  }

  void on_fail(const Ticket& ticket, Failure failure) override {
    waiting_.erase(ticket.sequence);
    if (ticket.place.slab) batch_of(ticket)->free.push_back(ticket.place.index);
    leave_out(ticket, std::move(failure));
  }

  // What is left over fills batches from the front, as the strict order would.
  void on_last() override {
    std::vector<OpenBatch> partial = std::move(batches_);
    batches_.clear();
    std::shared_ptr<Slab> packed;
    std::int64_t count = 0;
    const auto close = [&] {
      if (count == batch_size_ || (count > 0 && !what_.drop_last))
        close_batch(std::move(packed), count);
      else if (packed)
        drop_batch();
      packed.reset();
      count = 0;
    };
    for (OpenBatch& batch : partial) {
      if (is_full(batch) && count == 0) {
        close_batch(std::move(batch.slab), batch_size_);
        continue;
      }
      for (const std::int64_t slot : batch.made) {
        if (!packed) packed = open_batch();
        batch.slab->copy_slot(slot, *packed, count);
        if (++count == batch_size_) close();
      }
      drop_batch();
    }
    close();
  }

  std::vector<OpenBatch> batches_;  // by number
  std::set<std::int64_t> waiting_;  // those issued, without a slot yet, in sequence
  std::int64_t next_number_;        // of the next batch to open, counted from the epoch's start
};

}  // namespace

std::unique_ptr<EpochRun> make_ready_run(const What& what, BufferPool& pool, EpochOrder order,
                                         const EpochStart& start, CacheSeat* seat) {
  return std::make_unique<ReadyRun>(what, pool, std::move(order), start, seat);
}

}  // namespace cutwater
