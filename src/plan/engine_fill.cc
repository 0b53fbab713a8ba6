// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_fill.h"

#include <algorithm>
#include <cmath>

namespace cutwater {

double worth_s(const CacheModel& model, const SharedRates& rates, std::size_t form,
               std::size_t sample) {
  const Demand read({0, 1, model.source_bytes[sample], 0}, rates);
  return read.longest() + model.forms[form].until_s[sample];
}

EngineFill::EngineFill(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                       double cache_bytes, std::span<const double> used)
    : model_(model),
      rates_(rates),
      keeping_(model, sharing),
      not_kept_(keeping_.not_kept()),
      budget_(std::max(cache_bytes / model.samples - keeping_.handed_on_bytes(), 0.0)) {
  for (std::size_t f = 0; f < model.forms.size(); ++f) {
    if (!used.empty() && !(used[f] > 0)) continue;
    for (std::size_t i = 0; i < model.classes(); ++i) {
      const double bytes = std::max(model.forms[f].bytes[i], 1.0);
      steps_.push_back({f, i, bytes, worth_s(model, rates, f, i) / bytes});
    }
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.density > b.density; });
}

double EngineFill::mean_bytes(std::span<const double> shares) const {
  double sum = 0;
  for (const Step& step : steps_) sum += shares[step.form] * keeping_.weight() * step.bytes;
  return sum;
}

// As the cache of a lone job fills, a part of every kind of sample finds room. A sample that was
// never kept counts as the usual one, and drives out what is worth clearly less: when that is gone,
// nothing moves any more.
EngineFill::Kind EngineFill::kept_alone(std::span<const double> shares, double room) const {
  const double all = mean_bytes(shares);
  if (all <= room) return {};
  Kind kind;
  double before = 0, whole = 0, above = 0;
  for (const Step& step : steps_) whole += shares[step.form];
  for (const Step& step : steps_) {  // to the median
    kind.least = kClearlyLess * step.density;
    if ((before += shares[step.form]) >= whole / 2) break;
  }
  for (const Step& step : steps_)
    if (step.density >= kind.least) above += shares[step.form] * keeping_.weight() * step.bytes;
  kind.part = std::min(1.0, room / above);
  return kind;
}

// In little room a sample makes way before all jobs have come for it: each comes by chance, so the
// part of them that finds it falls off as room and lag say.
Sharing EngineFill::sharing_in(double room, double mean_bytes) const {
  Sharing sharing = keeping_.sharing();
  const double samples = mean_bytes > 0 ? room / mean_bytes : 0;  // of all
  const double lag = lag_share(sharing);
  sharing.handed = lag > 0 ? -std::expm1(-samples / lag) : 1;
  sharing.window_share = std::min(sharing.window_share, samples);
  return sharing;
}

Filled EngineFill::with(std::span<const double> shares) const {
  Filled filled;
  Fill& fill = filled.fill = not_kept_;
  const double all_bytes = mean_bytes(shares);
  const bool passes = keeping_.passes() && budget_ > 0;
  const Keeping keeping(model_, passes ? sharing_in(budget_, all_bytes) : keeping_.sharing());
  const Kept before = passes ? Kept::kPassing : Kept::kNot;
  const double window = passes ? keeping.sharing().window_share : 0;
  if (passes)
    for (const Step& step : steps_) {
      const double share = shares[step.form] * keeping.weight();
      keeping.add(step.form, step.sample, Kept::kNot, -share, fill);
      keeping.add(step.form, step.sample, Kept::kPassing, share, fill);
    }
  double left = std::max(budget_ - window * all_bytes, 0.0);
  const Kind kept = passes ? Kind{} : kept_alone(shares, left);
  const Step* next = nullptr;  // that would stay, were there more room
  for (const Step& step : steps_) {
    const double share = shares[step.form] * keeping.weight();
    if (!(share > 0)) continue;
    const double bytes = (1 - window) * step.bytes;
    const double done = std::min(kept.part_of(step), left / (share * bytes)) * share;
    left -= done * bytes;
    keeping.add(step.form, step.sample, before, -done, fill);
    keeping.add(step.form, step.sample, Kept::kResident, done, fill);
    if (next == nullptr && done < share) next = &step;
    if (next != nullptr && !(left > 0)) break;
  }
  for (std::size_t f = 0; f < shares.size(); ++f) fill.forms[f].share = shares[f];
  const Demand demand(fill.later, rates_);
  filled.samples_per_s = 1 / demand.longest();
  if (next == nullptr) return filled;
  const Amounts miss = keeping.miss(next->sample);
  const Demand without(passes ? keeping.passing(next->form, next->sample) : miss, rates_);
  const Demand with(keeping.hit(next->form, next->sample), rates_);
  for (std::size_t r = 0; r < Demand::kResources; ++r)
    if (demand.seconds[r] >= demand.longest())
      filled.price =
          std::max(0.0, (without.seconds[r] - with.seconds[r]) / ((1 - window) * next->bytes));
  return filled;
}

}  // namespace cutwater
