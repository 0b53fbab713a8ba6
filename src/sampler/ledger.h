// SPDX-License-Identifier: Apache-2.0
// Ledger: what one job has yet to be issued in one epoch. A sample is unissued, then claimed by a
// ticket, then delivered; who has had what is its loader's matter. Claiming by id takes a sample
// out of the order: those that it overtakes stay where they are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bit_set.h"
#include "cutwater/sample.h"
#include "sampler/epoch_order.h"

namespace cutwater {

class Ledger {
 public:
  struct Claim {
    std::int64_t position = 0;  // in the epoch's order
    SampleId id = 0;
  };
  enum class ById : bool { kNo, kYes };  // kYes: 4 bytes a sample more

  // Positions before `position`, those in `done_beyond`, and those from `end` on are not issued.
  // REQUIRES: 0 <= position; end <= order.size(); 0 <= done_beyond < order.size().
  Ledger(EpochOrder order, std::int64_t end, std::int64_t position = 0,
         std::span<const std::int64_t> done_beyond = {}, ById by_id = ById::kNo);

  const EpochOrder& order() const { return order_; }
  std::int64_t end() const { return end_; }
  std::int64_t left() const { return left_; }           // unissued
  std::int64_t issued() const { return end_ - left_; }  // or done before this ledger was made
  bool all_issued() const { return left_ == 0; }
  void stop() { left_ = 0; }  // nothing more is issued

  // The first unissued position. REQUIRES: left() > 0
  Claim claim_head();
  // The one so many behind it; nothing: that has been issued. REQUIRES: left() > 0, behind >= 0
  std::optional<Claim> claim_behind_head(std::int64_t behind);
  // This sample; nothing: it has been issued, or is none of this epoch, or of no data set at all.
  // Constant time, as is unissued(). REQUIRES, of both: made with ById::kYes.
  std::optional<Claim> claim(SampleId id);
  bool unissued(SampleId id) const { return position_of(id) >= 0; }
  // Whether what stands at this position is still to be issued. REQUIRES: 0 <= position
  bool is_left(std::int64_t position) const {
    return left_ > 0 && position < end_ && !issued_[position];
  }

 private:
  std::int64_t position_of(SampleId id) const;  // -1: not to be issued
  Claim take(std::int64_t position);

  const EpochOrder order_;
  const std::int64_t end_;
  const std::vector<std::uint32_t> positions_;  // by id; empty: the listing order, or not wanted
  BitSet issued_;                               // by position
  std::int64_t head_ = 0, left_;
};

}  // namespace cutwater
