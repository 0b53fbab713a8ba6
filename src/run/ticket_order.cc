// SPDX-License-Identifier: Apache-2.0
#include "run/ticket_order.h"

#include <unistd.h>

#include <utility>

#include "cutwater/rng.h"

namespace cutwater {
namespace {

// The seat is asked under the executor's lock: not for every ticket.
constexpr std::int64_t kTicketsBetween = 2;

Ledger ledger_of(const What& what, EpochOrder order, const EpochStart& start, Ledger::ById by_id) {
  std::int64_t end = order.size();
  // What would be dropped need not be made; only where samples may be left out is all of it needed.
  if (what.drop_last && what.bad_samples.policy != OnError::kSkip) end -= end % what.batch_size;
  return Ledger(std::move(order), end, start.position, start.done_beyond, by_id);
}

// Jobs of one seed would make the same samples at the same time if they chose alike.
std::uint64_t own_number(const CacheSeat* seat) {
  return Rng({reinterpret_cast<std::uintptr_t>(seat), static_cast<std::uint32_t>(getpid()), 0, 0})
      .bits64();
}

}  // namespace

TicketOrder::TicketOrder(const What& what, EpochOrder order, const EpochStart& start,
                         CacheSeat* seat)
    : seed_(what.seed),
      epoch_(start.epoch),
      draw_(draw_number(what.seed, start.epoch)),
      seat_(seat),
      free_(seat != nullptr && what.order == Order::kReady),
      ledger_(
          ledger_of(what, std::move(order), start, free_ ? Ledger::ById::kYes : Ledger::ById::kNo)),
      number_(start.next_batch * what.batch_size) {}

TicketOrder::Next TicketOrder::next() {
  if (seat_ != nullptr && !begun_) begin_at_seat();
  if (!choose_) {
    const Ledger::Claim claim = ledger_.claim_head();
    return {claim.position, claim.position, claim.id};
  }
  if (tickets_until_ask_-- == 0) ask_seat();
  const Ledger::Claim claim = choose_->next();
  return {claim.position, number_++, claim.id};
}

// Samples that this epoch has had already, or will not have, nobody need keep for it.
void TicketOrder::begin_at_seat() {
  begun_ = true;
  const std::uint64_t tide = seat_->begin_epoch(draw_);
  if (ledger_.left() < size())
    for (std::int64_t position = 0; position < size(); ++position)
      if (!ledger_.is_left(position)) seat_->had(draw_, ledger_.order()[position]);
  if (!free_) return;
  choose_.emplace(ledger_, seed_ ^ own_number(seat_), epoch_, tide);
  seat_->arrivals(arrivals_);
  choose_->begin(arrivals_);
}

void TicketOrder::ask_seat() {
  tickets_until_ask_ = kTicketsBetween - 1;
  choose_->set_others(seat_->others(), seat_->others_alike() > 0);
  arrivals_.clear();
  seat_->arrivals(arrivals_);
  choose_->arrived(arrivals_);
}

}  // namespace cutwater
