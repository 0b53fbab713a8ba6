// SPDX-License-Identifier: Apache-2.0
// TicketOrder: which sample the next ticket of an epoch is for. The epoch's order, or, where it is
// free (Order::kReady) and the job has a seat at a cache, a choice between it and what is resident.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cutwater/cache.h"
#include "cutwater/options.h"
#include "sampler/ledger.h"
#include "sampler/opportunist.h"

namespace cutwater {

// What an epoch needs to know to start, also in its middle.
struct EpochStart {
  std::uint32_t epoch = 0;
  std::int64_t next_batch = 0;            // index of the first batch to close
  std::int64_t position = 0;              // all before are done…
  std::vector<std::int64_t> done_beyond;  // …and these as well
};

class TicketOrder {
 public:
  struct Next {
    std::int64_t position = 0;  // in the epoch's order
    // Its place among the samples if each were delivered when its turn came: the position, or,
    // where the order is free, the number of the ticket.
    std::int64_t sequence = 0;
    SampleId id = 0;
  };

  // `seat` may be null. REQUIRES: it outlives this.
  TicketOrder(const What& what, EpochOrder order, const EpochStart& start, CacheSeat* seat);
  TicketOrder(const TicketOrder&) = delete;
  TicketOrder& operator=(const TicketOrder&) = delete;

  std::int64_t size() const { return ledger_.order().size(); }
  // By which the seat knows this epoch.
  std::uint64_t draw() const { return draw_; }
  bool all_issued() const { return ledger_.all_issued(); }
  // The first one begins the epoch at the seat. REQUIRES: !all_issued()
  Next next();
  void stop() { ledger_.stop(); }  // no more tickets

 private:
  void begin_at_seat();
  void ask_seat();

  const std::uint64_t seed_;
  const std::uint32_t epoch_;
  const std::uint64_t draw_;
  CacheSeat* const seat_;
  const bool free_;  // whether the order is
  Ledger ledger_;
  std::optional<Opportunist> choose_;  // once begun, where it is
  bool begun_ = false;
  std::int64_t number_;  // of the next ticket, counted from the epoch's start
  std::int64_t tickets_until_ask_ = 0;
  std::vector<SampleId> arrivals_;  // kept for its memory
};

}  // namespace cutwater
