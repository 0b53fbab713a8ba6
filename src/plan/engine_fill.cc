// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_fill.h"

#include <algorithm>

namespace cutwater {

double worth_s(const CacheModel& model, const SharedRates& rates, std::size_t form,
               std::size_t sample) {
  const Demand read({0, 1, model.source_bytes[sample], 0}, rates);
  return read.longest() + std::max(model.miss_s[sample] - model.forms[form].hit_s[sample], 0.0);
}

EngineFill::EngineFill(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                       double cache_bytes)
    : model_(model),
      rates_(rates),
      keeping_(model, sharing),
      budget_(cache_bytes / model.samples - keeping_.handed_on_bytes()) {
  for (std::size_t f = 0; f < model.forms.size(); ++f)
    for (std::size_t i = 0; i < model.classes(); ++i)
      entries_.push_back(
          {f, i, worth_s(model, rates, f, i) / std::max(model.forms[f].bytes[i], 1.0)});
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.density > b.density; });
}

Filled EngineFill::with(std::span<const double> shares) const {
  const Filled staying = filled(shares, 0, 0);
  if (!keeping_.passes() || budget_ <= 0) return staying;
  double window = 0;
  for (const Entry& entry : entries_)
    window += shares[entry.form] * keeping_.weight() * keeping_.window_share() *
              model_.forms[entry.form].bytes[entry.sample];
  if (!(window > 0)) return staying;
  // Unless there is room for little else: what all jobs have yet to see is worth more than what
  // one of them has just made.
  Filled passing = filled(shares, std::min(budget_ / window, 1.0), window);
  return passing.samples_per_s >= staying.samples_per_s ? passing : staying;
}

// `passing`: of those that do not stay, the share that is handed on, in a window of so many bytes.
Filled EngineFill::filled(std::span<const double> shares, double passing, double window) const {
  Filled filled;
  Fill& fill = filled.fill = keeping_.empty();
  double rest = 1;
  double left = std::max(budget_ - passing * window, 0.0);
  std::optional<Entry> next;  // to stay, were there more room
  for (const Entry& entry : entries_) {
    const double share = shares[entry.form] * keeping_.weight();
    if (!(share > 0)) continue;
    const double bytes = model_.forms[entry.form].bytes[entry.sample];
    const double more = share * bytes * (1 - passing * keeping_.window_share());
    const double stays = more > left ? left / more : 1;
    left -= stays * more;
    if (stays < 1 && !next) next = entry;
    keeping_.add(entry.form, entry.sample, Kept::kResident, stays * share, fill);
    if (passing > 0)
      keeping_.add(entry.form, entry.sample, Kept::kPassing, (1 - stays) * passing * share, fill);
    keeping_.add(entry.form, entry.sample, Kept::kNot, (1 - stays) * (1 - passing) * share, fill);
  }
  for (std::size_t f = 0; f < shares.size(); ++f) rest -= fill.forms[f].share = shares[f];
  for (std::size_t i = 0; rest > 0 && i < model_.classes(); ++i)
    keeping_.add(0, i, Kept::kNot, rest * keeping_.weight(), fill);
  const Demand demand(fill.later, rates_);
  filled.samples_per_s = 1 / demand.longest();
  if (!next) return filled;
  const Demand without(
      passing > 0 ? keeping_.passing(next->form, next->sample) : keeping_.miss(next->sample),
      rates_);
  const Demand with(keeping_.hit(next->form, next->sample), rates_);
  for (std::size_t r = 0; r < Demand::kResources; ++r)
    if (demand.seconds[r] >= demand.longest())
      filled.price = std::max(0.0, (without.seconds[r] - with.seconds[r]) /
                                       model_.forms[next->form].bytes[next->sample]);
  return filled;
}

}  // namespace cutwater
