// SPDX-License-Identifier: Apache-2.0
// Opportunist: which sample next, where several jobs share a cache. Either the head of the epoch's
// order, or a sample that is resident in the cache and that this job has yet to see: it comes
// earlier, the samples that it overtakes stay where they are, and each is issued exactly once.
//
// Of J jobs each would like to make only one sample in J and to take the rest from the others. So,
// with `others` jobs besides this one, a ticket is a resident with the probability
//   p = max(others / (others + 1), a / (1 - q)), at most 1
//   a   residents that have arrived lately and were unissued here, per ticket
//   q   the unissued that are known to be resident, of all that are unissued
// With p = a / (1 - q) the share q stays as it is while the epoch goes on: hits are as frequent at
// its end as at its start, and no tail of misses is left.
//
// Residents that arrive are taken as they come, about in that order: others, too, have yet to see
// them, and once all have, they make way for what is made next. Where a job draws alike, so are
// those that were resident before and arrive in another form: what it has just made of them needs
// least work. What this is more than p, the residents of the epoch's start are the fewer: they fill
// up what is lacking to p, drawn from (seed, epoch, number of the ticket), and in an order that
// follows from the tide alone, so that jobs of one tide soon have had the same, and it can make
// way.
//
// Jobs that draw alike have the same order, and would make the same heads at the same time. So each
// of them takes, instead of the head, any that is unissued of the next kNearHead.
//
// Displacement is bounded: after run_limit() others in a row comes the head, so a sample of
// position n is issued with one of the first (n + 1) * (kLongestRun + 1) tickets. A job that is
// alone takes heads only: its order is the epoch's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/bit_set.h"
#include "cutwater/sample.h"
#include "sampler/ledger.h"

namespace cutwater {

class Opportunist {
 public:
  static constexpr std::int64_t kLongestRun = 64, kNearHead = 64;

  // REQUIRES: the ledger outlives this, and was made with ById::kYes.
  Opportunist(Ledger& ledger, std::uint64_t seed, std::uint32_t epoch, std::uint64_t tide);

  // What is resident as the epoch begins; then, again and again, what has arrived since. Samples
  // that are named twice, that are gone again (they become misses) or that do not exist do no harm.
  void begin(std::span<const SampleId> residents);
  void arrived(std::span<const SampleId> residents);
  // Jobs besides this one that use the same data set in the same cache, and whether some of them
  // draw as this one does.
  void set_others(int others, bool alike = false) {
    others_ = others;
    others_alike_ = alike;
  }

  // The next ticket's sample. REQUIRES: ledger.left() > 0
  Ledger::Claim next();

  double share_of_residents() const;  // p, as of now
  std::int64_t run_limit() const;     // ceil(4 / (1 - p)), at most kLongestRun

 private:
  bool note(SampleId id);  // false: nothing new
  std::optional<Ledger::Claim> claim_resident(double chance, std::uint32_t random);
  std::optional<Ledger::Claim> claim_arrival(std::uint32_t random);
  std::optional<Ledger::Claim> claim_of_start();
  void count_ticket();

  Ledger& ledger_;
  const std::uint64_t seed_;
  const std::uint32_t epoch_;
  const std::uint64_t tide_;
  const std::int64_t window_;  // tickets over which arrivals are counted

  int others_ = 0;
  bool others_alike_ = false;
  BitSet noted_;    // by id: known to be resident, at some time
  BitSet arrived_;  // by id: among the arrivals
  std::int64_t noted_unissued_ = 0;
  std::vector<SampleId> at_start_;  // in the order of the tide; from next_at_start_ on
  std::vector<SampleId> arrivals_;  // in the order of their coming; from next_arrival_ on
  std::size_t next_at_start_ = 0, next_arrival_ = 0;

  double arrival_rate_ = 0;  // per ticket
  std::int64_t window_arrivals_ = 0, window_tickets_ = 0;
  std::int64_t run_ = 0;      // tickets since the last head
  double residents_due_ = 0;  // by p, less those that were taken
};

}  // namespace cutwater
