// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_fill.h"

#include <algorithm>
#include <cmath>

namespace cutwater {

namespace {

// While jobs wait for storage, others go on: they come to a sample further out of step. By so much
// at most, and from where storage works so much of the time.
constexpr double kMostStretch = 0.6, kCalm = 0.5, kBusy = 0.9;

}  // namespace

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
Sharing EngineFill::sharing_in(double room, double mean_bytes, double stretch) const {
  Sharing sharing = keeping_.sharing();
  sharing.window_share *= stretch;
  const double samples = mean_bytes > 0 ? room / mean_bytes : 0;  // of all
  const double lag = lag_share(sharing);
  sharing.handed = lag > 0 ? -std::expm1(-samples / lag) : 1;
  sharing.window_share = std::min(sharing.window_share, samples);
  return sharing;
}

// Forms with a share; where jobs share them, those of more worth by the byte first: they drive the
// others out, however soon those would be used.
std::vector<std::vector<std::size_t>> EngineFill::groups(std::span<const double> shares) const {
  std::vector<std::vector<std::size_t>> groups;
  if (!keeping_.passes()) {
    groups.emplace_back();
    for (std::size_t f = 0; f < shares.size(); ++f) groups.back().push_back(f);
    return groups;
  }
  std::vector<double> seconds(shares.size()), bytes(shares.size());
  for (const Step& step : steps_) {
    if (!(shares[step.form] > 0)) continue;
    seconds[step.form] += step.density * step.bytes;
    bytes[step.form] += step.bytes;
  }
  std::vector<std::pair<double, std::size_t>> by_density;
  for (std::size_t f = 0; f < shares.size(); ++f)
    if (bytes[f] > 0) by_density.emplace_back(-seconds[f] / bytes[f], f);
  std::sort(by_density.begin(), by_density.end());
  for (const auto& [density, form] : by_density) groups.push_back({form});
  return groups;
}

// Adds what is kept of these forms, and returns the room that they leave.
double EngineFill::keep(std::span<const double> shares, double room, double stretch, Fill& fill,
                        std::optional<Next>& next) const {
  const double all_bytes = mean_bytes(shares);
  const bool passes = keeping_.passes() && room > 0;
  const Keeping keeping(model_, passes ? sharing_in(room, all_bytes, stretch) : keeping_.sharing());
  const Kept before = passes ? Kept::kPassing : Kept::kNot;
  const double window = passes ? keeping.sharing().window_share : 0;
  double left = std::max(room - window * all_bytes, 0.0);
  const Kind kept = passes ? Kind{} : kept_alone(shares, left);
  for (const Step& step : steps_) {
    const double share = shares[step.form] * keeping.weight();
    if (!(share > 0)) continue;
    const double bytes = (1 - window) * step.bytes;
    const double done = std::min(kept.part_of(step), left / (share * bytes)) * share;
    left -= done * bytes;
    keeping.add(step.form, step.sample, Kept::kNot, -share, fill);
    keeping.add(step.form, step.sample, before, share - done, fill);
    keeping.add(step.form, step.sample, Kept::kResident, done, fill);
    if (done >= share || next) continue;
    next = Next{passes ? keeping.passing(step.form, step.sample) : keeping.miss(step.sample),
                keeping.hit(step.form, step.sample), bytes};
  }
  return left;
}

Filled EngineFill::with(std::span<const double> shares) const {
  Filled filled = with(shares, 1);
  if (!keeping_.passes()) return filled;
  const Demand demand(filled.fill.later, rates_);
  const double busy =
      std::max(demand.seconds[Demand::kReads], demand.seconds[Demand::kStorage]) / demand.longest();
  const double part = std::clamp((busy - kCalm) / (kBusy - kCalm), 0.0, 1.0);
  return part > 0 ? with(shares, 1 + kMostStretch * part) : filled;
}

Filled EngineFill::with(std::span<const double> shares, double stretch) const {
  Filled filled;
  Fill& fill = filled.fill = not_kept_;
  std::optional<Next> next;
  double room = budget_;
  for (const std::vector<std::size_t>& forms : groups(shares)) {
    std::vector<double> of_these(shares.size());
    for (const std::size_t f : forms) of_these[f] = shares[f];
    room = keep(of_these, room, stretch, fill, next);
  }
  for (std::size_t f = 0; f < shares.size(); ++f) fill.forms[f].share = shares[f];
  const Demand demand(fill.later, rates_);
  filled.samples_per_s = 1 / demand.longest();
  if (!next) return filled;
  const Demand without(next->now, rates_), with(next->then, rates_);
  for (std::size_t r = 0; r < Demand::kResources; ++r)
    if (demand.seconds[r] >= demand.longest())
      filled.price = std::max(0.0, (without.seconds[r] - with.seconds[r]) / next->bytes);
  return filled;
}

}  // namespace cutwater
