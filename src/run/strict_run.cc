// SPDX-License-Identifier: Apache-2.0
// Strict order: the epoch's permutation with the bad samples taken out, cut into batches.
//
// A ticket gets its slot when it is issued, as if no sample before it were bad. Tickets are
// committed in order; where a sample before was left out, the committed one moves down to the next
// free slot. Later tickets know of it and aim right, so a bad sample costs a few copies, once.
#include <utility>

#include "run/epoch_run.h"

namespace cutwater {
namespace {

class StrictRun final : public EpochRun {
 public:
  using EpochRun::EpochRun;

  bool next_opens_batch() const override {
    const std::int64_t slot = next_slot();
    return slot > highest_slot_ && slot / batch_size_ >= first_batch_ + open();
  }

  Ticket issue() override {
    Ticket ticket = next_ticket();
    const std::int64_t slot = next_slot();
    ++issued_;
    if (slot > highest_slot_) {
      highest_slot_ = slot;
      if (slot / batch_size_ >= first_batch_ + open()) batches_.push_back(open_batch());
      ticket.place = place(slot);
    } else {
      // The slot is still taken by a sample that will move down: wait beside it.
      ticket.place = {std::make_shared<Slab>(1, pool_), 0};
    }
    entries_.push_back({ticket, State::kPending, {}});
    return ticket;
  }

  TensorSpan slot(Ticket& ticket, std::string_view field, const TensorSpec& spec) override {
    return ticket.place.slab->slot(ticket.place.index, ticket.id, field, spec);
  }

 private:
  enum class State : std::uint8_t { kPending, kMade, kBad };
  struct Entry {
    Ticket ticket;
    State state;
    Failure failure;
  };

  std::int64_t open() const { return static_cast<std::int64_t>(batches_.size()); }
  std::int64_t next_slot() const { return issued_ - left_out_; }
  Place place(std::int64_t slot) {
    return {batches_[static_cast<std::size_t>(slot / batch_size_ - first_batch_)],
            slot % batch_size_};
  }

  Entry& entry_of(const Ticket& ticket) {
    for (Entry& entry : entries_)
      if (entry.ticket.position == ticket.position) return entry;
    throw Error(Code::kInternal, "a ticket ended twice");
  }

  void on_complete(const Ticket& ticket) override {
    entry_of(ticket).state = State::kMade;
    commit();
  }
  void on_fail(const Ticket& ticket, Failure failure) override {
    Entry& entry = entry_of(ticket);
    entry.state = State::kBad;
    entry.failure = std::move(failure);
    commit();
  }

  void commit() {
    while (!failed() && !entries_.empty() && entries_.front().state != State::kPending) {
      Entry entry = std::move(entries_.front());
      entries_.pop_front();
      if (entry.state == State::kBad) {
        ++left_out_;
        leave_out(entry.ticket, std::move(entry.failure));
        continue;
      }
      const Place from = entry.ticket.place, to = place(committed_);
      if (from.slab != to.slab || from.index != to.index)
        from.slab->copy_slot(from.index, *to.slab, to.index);
      if (++committed_ % batch_size_ != 0) continue;
      close_batch(std::move(batches_.front()), batch_size_);
      batches_.pop_front();
      ++first_batch_;
    }
  }

  void on_last() override {
    const std::int64_t count = committed_ % batch_size_;
    if (count > 0 && !what_.drop_last) {
      close_batch(std::move(batches_.front()), count);
      batches_.pop_front();
    }
    for (; !batches_.empty(); batches_.pop_front()) drop_batch();
  }

  std::deque<Entry> entries_;                  // issued, not yet committed
  std::deque<std::shared_ptr<Slab>> batches_;  // open, the first is batch first_batch_
  std::int64_t first_batch_ = 0;
  std::int64_t issued_ = 0, committed_ = 0, left_out_ = 0;
  std::int64_t highest_slot_ = -1;  // ever given to a ticket
};

}  // namespace

std::unique_ptr<EpochRun> make_strict_run(const What& what, BufferPool& pool, EpochOrder order,
                                          const EpochStart& start, CacheSeat* seat) {
  return std::make_unique<StrictRun>(what, pool, std::move(order), start, seat);
}

}  // namespace cutwater
