// SPDX-License-Identifier: Apache-2.0
#include "sampler/ledger.h"

#include <algorithm>
#include <utility>

namespace cutwater {

Ledger::Ledger(EpochOrder order, std::int64_t end, std::int64_t position,
               std::span<const std::int64_t> done_beyond, ById by_id)
    : order_(std::move(order)),
      end_(end),
      positions_(by_id == ById::kYes ? order_.positions() : std::vector<std::uint32_t>()),
      issued_(order_.size()),
      left_(end) {
  const auto done = [this](std::int64_t at) {
    if (at >= end_ || issued_[at]) return;
    issued_.set(at);
    --left_;
  };
  for (std::int64_t at = 0; at < std::min(position, end_); ++at) done(at);
  for (const std::int64_t at : done_beyond) done(at);
}

Ledger::Claim Ledger::claim_head() {
  head_ = issued_.next_clear(head_);
  return take(head_);
}

std::optional<Ledger::Claim> Ledger::claim_behind_head(std::int64_t behind) {
  head_ = issued_.next_clear(head_);
  if (!is_left(head_ + behind)) return std::nullopt;
  return take(head_ + behind);
}

std::optional<Ledger::Claim> Ledger::claim(SampleId id) {
  const std::int64_t position = position_of(id);
  if (position < 0) return std::nullopt;
  return take(position);
}

std::int64_t Ledger::position_of(SampleId id) const {
  if (id < 0 || id >= order_.size()) return -1;
  const std::int64_t position =
      positions_.empty() ? id : std::int64_t{positions_[static_cast<std::size_t>(id)]};
  return is_left(position) ? position : -1;
}

Ledger::Claim Ledger::take(std::int64_t position) {
  issued_.set(position);
  --left_;
  return {position, order_[position]};
}

}  // namespace cutwater
