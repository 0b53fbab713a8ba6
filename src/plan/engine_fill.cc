// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_fill.h"

#include <algorithm>

namespace cutwater {

double worth_s(const CacheModel& model, const SharedRates& rates, std::size_t form,
               std::size_t sample) {
  const Demand read({0, 1, model.source_bytes[sample], 0}, rates);
  return read.longest() + model.forms[form].until_s[sample];
}

EngineFill::EngineFill(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                       double cache_bytes, std::span<const double> used)
    : rates_(rates),
      keeping_(model, sharing),
      not_kept_(keeping_.not_kept()),
      budget_(cache_bytes / model.samples - keeping_.handed_on_bytes()) {
  const double window = keeping_.passes() ? keeping_.window_share() : 0;
  const double handed = keeping_.passes() ? sharing.jobs - 1 : 0;
  for (std::size_t f = 0; f < model.forms.size(); ++f) {
    if (!used.empty() && !(used[f] > 0)) continue;
    for (std::size_t i = 0; i < model.classes(); ++i) {
      const double bytes = std::max(model.forms[f].bytes[i], 1.0);
      const double density = worth_s(model, rates, f, i) / bytes;
      // Handed on, it saves all but one making of each epoch; if it stays, that one, too.
      if (handed > 0) steps_.push_back({f, i, false, window * bytes, density * handed / window});
      steps_.push_back({f, i, true, (1 - window) * bytes, density / (1 - window)});
    }
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.density > b.density; });
}

// As the cache of a lone job fills, a part of every kind of sample finds room. Then those that are
// worth clearly more than the least of them drive it out, until nothing outside is worth clearly
// more than anything inside: what has come in above least / kClearlyLess has the room of what was
// there below, and in between all is as at first.
EngineFill::Band EngineFill::band(std::span<const double> shares, double room) const {
  const auto bytes = [&](const Step& step) {
    return shares[step.form] * keeping_.weight() * step.bytes;
  };
  double below = 0, above = 0;
  for (const Step& step : steps_) below += bytes(step);
  if (below <= room) return {};
  Band band;
  band.part = room / below;
  auto entering = steps_.begin();
  for (const Step& step : steps_) {
    band.least = step.density;
    band.full = step.density / kClearlyLess;
    for (; entering->density > band.full; ++entering) above += bytes(*entering);
    below -= bytes(step);
    if (above * (1 - band.part) >= below * band.part) break;
  }
  return band;
}

Filled EngineFill::with(std::span<const double> shares) const {
  Filled filled;
  Fill& fill = filled.fill = not_kept_;
  const Kept before_staying = keeping_.passes() ? Kept::kPassing : Kept::kNot;
  double left = std::max(budget_, 0.0);
  const Band kept = keeping_.passes() ? Band{} : band(shares, left);
  const Step* next = nullptr;  // to be done, were there more room
  for (const Step& step : steps_) {
    const double share = shares[step.form] * keeping_.weight();
    if (!(share > 0)) continue;
    const double done = std::min(kept.part_of(step), left / (share * step.bytes)) * share;
    left -= done * step.bytes;
    if (done > 0) {
      const Kept before = step.stays ? before_staying : Kept::kNot;
      const Kept after = step.stays ? Kept::kResident : Kept::kPassing;
      keeping_.add(step.form, step.sample, before, -done, fill);
      keeping_.add(step.form, step.sample, after, done, fill);
    }
    if (next == nullptr && done < share) next = &step;
    if (next != nullptr && !(left > 0)) break;
  }
  for (std::size_t f = 0; f < shares.size(); ++f) fill.forms[f].share = shares[f];
  const Demand demand(fill.later, rates_);
  filled.samples_per_s = 1 / demand.longest();
  if (next == nullptr) return filled;
  const Amounts miss = keeping_.miss(next->sample);
  const Amounts passing = keeping_.passes() ? keeping_.passing(next->form, next->sample) : miss;
  const Demand without(next->stays ? passing : miss, rates_);
  const Demand with(next->stays ? keeping_.hit(next->form, next->sample) : passing, rates_);
  for (std::size_t r = 0; r < Demand::kResources; ++r)
    if (demand.seconds[r] >= demand.longest())
      filled.price = std::max(0.0, (without.seconds[r] - with.seconds[r]) / next->bytes);
  return filled;
}

}  // namespace cutwater
