// SPDX-License-Identifier: Apache-2.0
// What both orders share: tickets in order, the count of what is still out, the policy for bad
// ones.
#include "run/epoch_run.h"

#include <algorithm>
#include <utility>

namespace cutwater {

EpochRun::EpochRun(const What& what, BufferPool& pool, EpochOrder order, const EpochStart& start,
                   CacheSeat* seat)
    : what_(what),
      pool_(pool),
      batch_size_(what.batch_size),
      tickets_(what, std::move(order), start, seat),
      epoch_(start.epoch),
      next_batch_(start.next_batch) {}

Ticket EpochRun::next_ticket() {
  const TicketOrder::Next next = tickets_.next();
  ++unresolved_;
  return {next.position, next.sequence, next.id, {}};
}

void EpochRun::complete(const Ticket& ticket) {
  const auto index = static_cast<std::size_t>(ticket.place.index);
  ticket.place.slab->ids[index] = ticket.id;
  ticket.place.slab->positions[index] = ticket.position;
  if (!stopped_) {
    ++completed_;
    guarded([&] { on_complete(ticket); });
  }
  resolve_one();
}

void EpochRun::fail(const Ticket& ticket, Failure failure) {
  if (!stopped_) guarded([&] { on_fail(ticket, std::move(failure)); });
  resolve_one();
}

void EpochRun::leave_out(const Ticket& ticket, Failure failure) {
  const BadSamples& policy = what_.bad_samples;
  if (failure.code != Code::kBadSample || policy.policy != OnError::kSkip)
    return stop(std::move(failure));
  skipped_positions_.push_back(ticket.position);
  const auto count = static_cast<std::int64_t>(skipped_positions_.size());
  const bool too_many =
      (policy.max_count && count > *policy.max_count) ||
      (policy.max_share &&
       static_cast<double>(count) > *policy.max_share * static_cast<double>(tickets_.size()));
  if (!too_many) {
    skipped_.push_back(std::move(failure));
    return;
  }
  failure.reason = std::to_string(count) + " bad samples in epoch " + std::to_string(epoch_) +
                   " are more than max_errors allows; the last one: " + failure.reason;
  stop(std::move(failure));
}

void EpochRun::stop(Failure failure) {
  stopped_ = true;
  tickets_.stop();
  finished.emplace_back(std::move(failure));
}

void EpochRun::resolve_one() {
  --unresolved_;
  if (unresolved_ > 0 || !all_issued() || stopped_) return;
  if (completed_ == 0 && !skipped_positions_.empty() && next_batch_ == 0)
    return stop(
        {Code::kBadSample,
         "all " + std::to_string(skipped_positions_.size()) + " samples of the epoch are bad",
         -1,
         {},
         {}});
  guarded([&] { on_last(); });
}

// Samples that are moved together may turn out not to fit together.
template <class F>
void EpochRun::guarded(F&& step) {
  try {
    step();
  } catch (const Error& error) {
    stop(error.failure());
  }
}

std::shared_ptr<Slab> EpochRun::open_batch() {
  ++open_batches_;
  return std::make_shared<Slab>(std::min(batch_size_, tickets_.size()), pool_);
}

void EpochRun::close_batch(std::shared_ptr<Slab> slab, std::int64_t count) {
  finished.emplace_back(FinishedBatch{std::move(slab), count, epoch_, next_batch_++});
}

}  // namespace cutwater
