// SPDX-License-Identifier: Apache-2.0
#include "sampler/opportunist.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "cutwater/rng.h"

namespace cutwater {
namespace {

constexpr std::int64_t kShortestWindow = 64, kWindowsPerEpoch = 50;
constexpr double kMostKnown = 0.95;          // of q: where all is resident, 1 - q says nothing
constexpr std::uint32_t kNextArrivals = 16;  // one of so many is taken: jobs need not go in step

// A stream of its own: the epoch's order has another last word, and samples have small ones.
constexpr std::uint32_t kStream = 0xfffffffeU;

// Mixes every bit of an id with the tide (the finisher of SplitMix64).
std::uint64_t place_in_tide(SampleId id, std::uint64_t tide) {
  std::uint64_t x = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15U + tide;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace

Opportunist::Opportunist(Ledger& ledger, std::uint64_t seed, std::uint32_t epoch,
                         std::uint64_t tide)
    : ledger_(ledger),
      seed_(seed),
      epoch_(epoch),
      tide_(tide),
      window_(std::max(kShortestWindow, ledger.order().size() / kWindowsPerEpoch)),
      noted_(ledger.order().size()),
      arrived_(ledger.order().size()) {}

void Opportunist::begin(std::span<const SampleId> residents) {
  std::vector<std::pair<std::uint64_t, SampleId>> by_place;
  for (const SampleId id : residents)
    if (note(id)) by_place.emplace_back(place_in_tide(id, tide_), id);
  std::sort(by_place.begin(), by_place.end());
  at_start_.reserve(by_place.size());
  for (const auto& [place, id] : by_place) at_start_.push_back(id);
}

void Opportunist::arrived(std::span<const SampleId> residents) {
  for (const SampleId id : residents) {
    const bool is_new = note(id);
    if (is_new) ++window_arrivals_;
    // In another form than before it is news only from a job that draws alike.
    if (!is_new && (!others_alike_ || !ledger_.unissued(id) || arrived_[id])) continue;
    arrived_.set(id);
    arrivals_.push_back(id);
  }
}

bool Opportunist::note(SampleId id) {
  if (!ledger_.unissued(id) || noted_[id]) return false;
  noted_.set(id);
  ++noted_unissued_;
  return true;
}

Ledger::Claim Opportunist::next() {
  const auto number = static_cast<std::uint64_t>(ledger_.issued());
  const std::array<std::uint32_t, 4> random =
      philox4x32({static_cast<std::uint32_t>(number), epoch_,
                  static_cast<std::uint32_t>(number >> 32), kStream},
                 {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  const double chance = static_cast<double>(random[0]) * 0x1.0p-32;
  std::optional<Ledger::Claim> claim;
  if (run_ < run_limit()) {
    claim = claim_resident(chance, random[1]);
    if (!claim && others_ > 0 && others_alike_)
      claim = ledger_.claim_behind_head(static_cast<std::int64_t>(random[2]) % kNearHead);
  }
  run_ = claim ? run_ + 1 : 0;
  if (!claim) claim = ledger_.claim_head();
  if (noted_[claim->id]) --noted_unissued_;
  count_ticket();
  return *claim;
}

std::optional<Ledger::Claim> Opportunist::claim_resident(double chance, std::uint32_t random) {
  if (others_ <= 0) return std::nullopt;
  residents_due_ =
      std::clamp(residents_due_ + share_of_residents(), -static_cast<double>(kLongestRun), 2.0);
  std::optional<Ledger::Claim> claim = claim_arrival(random);
  if (!claim && chance < residents_due_) claim = claim_of_start();
  if (claim) residents_due_ -= 1;
  return claim;
}

std::optional<Ledger::Claim> Opportunist::claim_arrival(std::uint32_t random) {
  while (next_arrival_ < arrivals_.size()) {
    const std::size_t waiting = arrivals_.size() - next_arrival_;
    const std::size_t other =
        next_arrival_ + random % std::min<std::size_t>(waiting, kNextArrivals);
    std::swap(arrivals_[next_arrival_], arrivals_[other]);
    if (const auto claim = ledger_.claim(arrivals_[next_arrival_++])) return claim;
  }
  return std::nullopt;
}

std::optional<Ledger::Claim> Opportunist::claim_of_start() {
  while (next_at_start_ < at_start_.size())
    if (const auto claim = ledger_.claim(at_start_[next_at_start_++])) return claim;
  return std::nullopt;
}

void Opportunist::count_ticket() {
  if (++window_tickets_ < window_) return;
  const double rate = static_cast<double>(window_arrivals_) / static_cast<double>(window_);
  arrival_rate_ = (arrival_rate_ + rate) / 2;
  window_arrivals_ = window_tickets_ = 0;
}

double Opportunist::share_of_residents() const {
  if (others_ <= 0) return 0;
  const double known =
      std::min(kMostKnown, static_cast<double>(noted_unissued_) /
                               static_cast<double>(std::max<std::int64_t>(ledger_.left(), 1)));
  const double fair = static_cast<double>(others_) / (others_ + 1.0);
  return std::max(fair, std::min(1.0, arrival_rate_ / (1 - known)));
}

std::int64_t Opportunist::run_limit() const {
  const double heads = 1 - share_of_residents();
  if (heads * static_cast<double>(kLongestRun) <= 4) return kLongestRun;
  return static_cast<std::int64_t>(std::ceil(4 / heads));
}

}  // namespace cutwater
