// SPDX-License-Identifier: Apache-2.0
// Ready order: a sample takes a slot when its last op starts, so a slow one holds nobody up.
//
// Displacement is bounded on both sides. Early: tickets are issued in order, no further ahead than
// batches may be open. Late: a sample that is max_late_batches behind its strict place has a slot
// kept for it, and that batch waits.
#include <algorithm>
#include <utility>

#include "run/epoch_run.h"

namespace cutwater {
namespace {

class ReadyRun final : public EpochRun {
 public:
  ReadyRun(const What& what, BufferPool& pool, EpochOrder order, const EpochStart& start)
      : EpochRun(what, pool, std::move(order), start), next_number_(start.next_batch) {}

  bool next_opens_batch() const override {
    std::size_t free = 0;
    for (const OpenBatch& batch : batches_) free += batch.free.size();
    return free <= waiting_.size();
  }

  Ticket issue() override {
    Ticket ticket = next_ticket();
    waiting_.insert(ticket.position);
    return ticket;
  }

  TensorSpan slot(Ticket& ticket, std::string_view field, const TensorSpec& spec) override {
    if (!ticket.place.slab) ticket.place = claim(ticket.position);
    return ticket.place.slab->slot(ticket.place.index, ticket.id, field, spec);
  }

 private:
  struct OpenBatch {
    std::int64_t number;
    std::shared_ptr<Slab> slab;
    std::vector<std::int64_t> free;  // slots that nobody has claimed, the next one last
    std::vector<std::int64_t> made;
  };

  // Slots of this batch that belong to samples which may not be delivered any later.
  std::size_t kept_for_late(std::int64_t number, std::int64_t except) const {
    std::size_t late = 0;
    for (const std::int64_t position : waiting_) {
      if (position / batch_size_ + what_.max_late_batches > number) break;
      late += position == except ? 0 : 1;
    }
    return late;
  }

  Place claim(std::int64_t position) {
    auto batch = std::find_if(batches_.begin(), batches_.end(), [&](const OpenBatch& one) {
      return one.free.size() > kept_for_late(one.number, position);
    });
    if (batch == batches_.end()) {
      OpenBatch fresh{next_number_++, open_batch(), {}, {}};
      for (std::int64_t slot = batch_size_ - 1; slot >= 0; --slot) fresh.free.push_back(slot);
      batch = batches_.insert(batches_.end(), std::move(fresh));
    }
    waiting_.erase(position);
    const std::int64_t slot = batch->free.back();
    batch->free.pop_back();
    return {batch->slab, slot};
  }

  std::vector<OpenBatch>::iterator batch_of(const Ticket& ticket) {
    return std::find_if(batches_.begin(), batches_.end(),
                        [&](const OpenBatch& one) { return one.slab == ticket.place.slab; });
  }

  void on_complete(const Ticket& ticket) override {
    const auto batch = batch_of(ticket);
    batch->made.push_back(ticket.place.index);
    if (static_cast<std::int64_t>(batch->made.size()) < batch_size_) return;
    close_batch(std::move(batch->slab), batch_size_);
    batches_.erase(batch);
  }

  void on_fail(const Ticket& ticket, Failure failure) override {
    waiting_.erase(ticket.position);
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
    for (const OpenBatch& batch : partial) {
      for (const std::int64_t slot : batch.made) {
        if (!packed) packed = open_batch();
        batch.slab->copy_slot(slot, *packed, count);
        if (++count == batch_size_) close();
      }
      drop_batch();
    }
    close();
  }

  std::vector<OpenBatch> batches_;
  std::set<std::int64_t> waiting_;  // positions issued, without a slot yet
  std::int64_t next_number_;        // of the next batch to open, counted from the epoch's start
};

}  // namespace

std::unique_ptr<EpochRun> make_ready_run(const What& what, BufferPool& pool, EpochOrder order,
                                         const EpochStart& start) {
  return std::make_unique<ReadyRun>(what, pool, std::move(order), start);
}

}  // namespace cutwater
