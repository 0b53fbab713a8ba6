// SPDX-License-Identifier: Apache-2.0
#include "plan/keeping.h"

namespace cutwater {

double lag_share(const Sharing& sharing) {
  double times = 0;
  for (int job = 1; job < sharing.jobs; ++job) times += 1.0 / job;
  return times > 0 ? sharing.window_share / times : 0;
}

void Fill::add(double times, const Fill& other) {
  later.add(times, other.later);
  first.add(times, other.first);
  bytes += times * other.bytes;
  window_bytes += times * other.window_bytes;
  hit_rate += times * other.hit_rate;
  for (std::size_t f = 0; f < forms.size(); ++f) {
    forms[f].share += times * other.forms[f].share;
    forms[f].resident_share += times * other.forms[f].resident_share;
    forms[f].bytes += times * other.forms[f].bytes;
  }
}

Amounts Keeping::part(const Amounts& of) const {
  Amounts amounts;
  amounts.add(makers(), of);
  return amounts;
}

Amounts Keeping::passing(std::size_t form, std::size_t sample) const {
  Amounts amounts;
  amounts.add(1 - found(), model_.make(form, sample));
  amounts.add(found(), model_.hit(form, sample));
  return amounts;
}

Amounts Keeping::handed_on() const {
  if (!sharing_.fresh) return {};
  const FreshForm& fresh = model_.fresh[*sharing_.fresh];
  const double takers = 1 - 1 / sharing_.jobs;
  return {fresh.put_s / sharing_.jobs + takers * fresh.hit_s, 0, 0, fresh.bytes};
}

double Keeping::handed_on_bytes() const {
  return sharing_.fresh ? sharing_.window_share * model_.fresh[*sharing_.fresh].bytes : 0;
}

Fill Keeping::empty() const {
  Fill fill;
  fill.forms.resize(model_.forms.size());
  if (!sharing_.fresh) return fill;
  fill.later = fill.first = handed_on();
  fill.window_bytes = handed_on_bytes();
  fill.hit_rate = 1 - 1 / sharing_.jobs;
  return fill;
}

Fill Keeping::not_kept() const {
  Fill fill = empty();
  for (std::size_t i = 0; i < model_.classes(); ++i) add(0, i, Kept::kNot, weight(), fill);
  return fill;
}

void Keeping::add(std::size_t form, std::size_t sample, Kept kept, double share, Fill& fill) const {
  if (kept == Kept::kNot) {
    Amounts first = model_.miss(sample);
    fill.later.add(share * makers(), first);
    first.cpu_s = model_.first_miss_s[sample];
    fill.first.add(share * makers(), first);
    return;
  }
  const bool resident = kept == Kept::kResident;
  const double held =
      share * model_.forms[form].bytes[sample] * (resident ? 1 : sharing_.window_share);
  FormUse& use = fill.forms[form];
  use.share += share;
  use.resident_share += resident ? share : 0;
  use.bytes += held;
  fill.bytes += held;
  if (!resident) fill.window_bytes += held;
  fill.hit_rate += share * (resident ? makers() : found());
  fill.later.add(share, resident ? hit(form, sample) : passing(form, sample));
  // In the first epoch nothing is resident: one job makes the sample, the others take it.
  Amounts made = model_.make(form, sample);
  made.cpu_s = model_.forms[form].first_make_s[sample];
  if (sharing_.fresh) {
    fill.first.add(share / sharing_.jobs, made);
  } else {
    fill.first.add(share * (1 - found()), made);
    fill.first.add(share * found(), model_.first_hit(form, sample));
  }
}

}  // namespace cutwater
