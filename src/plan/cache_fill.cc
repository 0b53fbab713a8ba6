// SPDX-License-Identifier: Apache-2.0
// The program has a row for each resource and one for the bytes; a column is a way to keep all
// samples. Columns are made as they are needed: at the prices of the rows so far, each sample is
// kept as it is cheapest, and a column that beats those prices joins. It ends when none does.
#include "plan/cache_fill.h"

#include <algorithm>
#include <numeric>

#include "plan/packing.h"

namespace cutwater {
namespace {

constexpr int kMostRounds = 200;
constexpr double kGain = 1e-6;  // a column has to beat the prices by this share

// What the resources cost, so that the value of a program's column is a sum of amounts.
struct Tariff {
  double cpu_s = 0, read = 0, read_byte = 0, cache_byte = 0;
  double held_byte = 0;

  Tariff(const std::array<double, Demand::kResources>& prices, double byte,
         const SharedRates& rates)
      : held_byte(byte) {
    const auto of = [&](const Amounts& one) {
      const Demand taken(one, rates);
      return std::inner_product(taken.seconds.begin(), taken.seconds.end(), prices.begin(), 0.0);
    };
    cpu_s = of({1, 0, 0, 0});
    read = of({0, 1, 0, 0});
    read_byte = of({0, 0, 1, 0});
    cache_byte = of({0, 0, 0, 1});
  }
  double cost(const Amounts& a) const {
    return cpu_s * a.cpu_s + read * a.reads + read_byte * a.read_bytes + cache_byte * a.cache_bytes;
  }
};

enum class Kept { kNot, kPassing, kResident };

class Filler {
 public:
  Filler(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
         double cache_bytes)
      : model_(model),
        rates_(rates),
        sharing_(sharing),
        budget_(cache_bytes / model.samples - fresh_bytes()) {}

  template <class Offers>
  Filled best(const Offers& offers) const {
    std::vector<Fill> fills = {not_kept()};
    const double unit = demand(fills[0]).longest();
    const double bytes_unit = std::max(budget_, 1.0);
    std::vector<std::vector<double>> columns;
    const auto add_column = [&](const Fill& fill) {
      std::vector<double> column;
      for (const double seconds : demand(fill).seconds) column.push_back(seconds / unit);
      column.push_back((fill.bytes - budget_) / bytes_unit);
      columns.push_back(std::move(column));
    };
    add_column(fills[0]);
    std::vector<double> limits(Demand::kResources, 1.0);
    limits.push_back(0);
    Packed packed = pack(columns, limits);
    for (int round = 0; round < kMostRounds && budget_ > 0; ++round) {
      std::array<double, Demand::kResources> prices{};
      for (std::size_t r = 0; r < Demand::kResources; ++r) prices[r] = packed.prices[r] / unit;
      const Tariff tariff(prices, packed.prices[Demand::kResources] / bytes_unit, rates_);
      const std::size_t before = fills.size();
      offers(tariff, (1 + tariff.held_byte * budget_) * (1 - kGain), fills);
      if (fills.size() == before) break;
      for (std::size_t k = before; k < fills.size(); ++k) add_column(fills[k]);
      packed = pack(columns, limits);
    }
    Filled filled;
    filled.samples_per_s = packed.value / unit;
    filled.fill.forms.resize(model_.forms.size());
    for (std::size_t k = 0; k < fills.size(); ++k)
      filled.fill.add(packed.amounts[k] / packed.value, fills[k]);
    for (std::size_t r = 0; r < Demand::kResources; ++r)
      filled.weights[r] = packed.prices[r] / packed.value;
    filled.price = packed.prices[Demand::kResources] / bytes_unit / filled.samples_per_s;
    return filled;
  }

  // These append ways to keep all samples that cost less than `below`, if there are any.
  void per_sample(const Tariff& tariff, double below, std::vector<Fill>& found) const {
    Fill fill = empty();
    double cost = fresh_cost(tariff);
    for (std::size_t i = 0; i < model_.classes(); ++i) {
      std::size_t form = 0;
      Choice best = miss(tariff, i);
      for (std::size_t f = 0; f < model_.forms.size(); ++f)
        if (const Choice choice = cheapest(tariff, f, i); choice.cost < best.cost) {
          best = choice;
          form = f;
        }
      cost += weight() * best.cost;
      keep(form, i, best.kept, weight(), fill);
    }
    if (cost < below) found.push_back(std::move(fill));
  }

  // All samples in one form, of each form that is cheap enough.
  void by_form(const Tariff& tariff, double below, std::vector<Fill>& found) const {
    for (std::size_t f = 0; f < model_.forms.size(); ++f) {
      if (fresh_cost(tariff) + cost_of_form(tariff, f) >= below) continue;
      found.push_back(empty());
      keep_form(tariff, f, 1, found.back());
    }
  }

  void by_shares(const Tariff& tariff, double below, std::span<const double> shares,
                 std::vector<Fill>& found) const {
    double cost = fresh_cost(tariff), rest = 1;
    for (std::size_t f = 0; f < shares.size(); ++f) {
      cost += shares[f] > 0 ? shares[f] * cost_of_form(tariff, f) : 0;
      rest -= shares[f];
    }
    rest = std::max(rest, 0.0);
    for (std::size_t i = 0; i < model_.classes(); ++i)
      cost += rest * weight() * miss(tariff, i).cost;
    if (cost >= below) return;
    Fill fill = empty();
    for (std::size_t f = 0; f < shares.size(); ++f)
      if (shares[f] > 0) keep_form(tariff, f, shares[f], fill);
    for (std::size_t i = 0; i < model_.classes(); ++i)
      keep(0, i, Kept::kNot, rest * weight(), fill);
    found.push_back(std::move(fill));
  }

 private:
  struct Choice {
    double cost = 0;
    Kept kept = Kept::kNot;
  };

  double weight() const { return 1 / static_cast<double>(model_.classes()); }
  Demand demand(const Fill& fill) const { return {fill.later, rates_}; }
  const FreshForm* fresh() const {
    return sharing_.fresh ? &model_.fresh[*sharing_.fresh] : nullptr;
  }
  double fresh_bytes() const {
    return fresh() != nullptr ? sharing_.window_share * fresh()->bytes : 0;
  }
  // Of the accesses to a sample, those that go to its stable form or to the source.
  double makers() const { return fresh() != nullptr ? 1 / sharing_.jobs : 1; }

  Amounts fresh_amounts() const {
    const double takers = (sharing_.jobs - 1) / sharing_.jobs;
    return {fresh()->put_s / sharing_.jobs + takers * fresh()->hit_s, 0, 0, fresh()->bytes};
  }

  Fill empty() const {
    Fill fill;
    fill.forms.resize(model_.forms.size());
    if (fresh() == nullptr) return fill;
    fill.later = fill.first = fresh_amounts();
    fill.window_bytes = fresh_bytes();
    fill.hit_rate = (sharing_.jobs - 1) / sharing_.jobs;
    return fill;
  }

  Fill not_kept() const {
    Fill fill = empty();
    for (std::size_t i = 0; i < model_.classes(); ++i) keep(0, i, Kept::kNot, weight(), fill);
    return fill;
  }

  double fresh_cost(const Tariff& tariff) const {
    return fresh() != nullptr ? tariff.cost(fresh_amounts()) : 0;
  }
  Choice miss(const Tariff& tariff, std::size_t sample) const {
    return {makers() * tariff.cost(model_.miss(sample)), Kept::kNot};
  }

  Amounts passing(std::size_t form, std::size_t sample) const {
    Amounts amounts;
    amounts.add(1 / sharing_.jobs, model_.make(form, sample));
    amounts.add(1 - 1 / sharing_.jobs, model_.hit(form, sample));
    return amounts;
  }

  Choice cheapest(const Tariff& tariff, std::size_t form, std::size_t sample) const {
    Choice best = miss(tariff, sample);
    const double bytes_cost = tariff.held_byte * model_.forms[form].bytes[sample];
    const auto consider = [&](double cost, Kept kept) {
      if (cost < best.cost) best = {cost, kept};
    };
    if (sharing_.jobs > 1 && fresh() == nullptr)
      consider(tariff.cost(passing(form, sample)) + sharing_.window_share * bytes_cost,
               Kept::kPassing);
    consider(makers() * tariff.cost(model_.hit(form, sample)) + bytes_cost, Kept::kResident);
    return best;
  }

  // Every sample in this form, each kept as it is cheapest.
  double cost_of_form(const Tariff& tariff, std::size_t form) const {
    double cost = 0;
    for (std::size_t i = 0; i < model_.classes(); ++i)
      cost += weight() * cheapest(tariff, form, i).cost;
    return cost;
  }
  void keep_form(const Tariff& tariff, std::size_t form, double share, Fill& fill) const {
    for (std::size_t i = 0; i < model_.classes(); ++i)
      keep(form, i, cheapest(tariff, form, i).kept, share * weight(), fill);
    // Samples belong to the form by their ids, whether they are kept just now or not.
    fill.forms[form].share = share;
  }

  void keep(std::size_t form, std::size_t sample, Kept kept, double share, Fill& fill) const {
    if (kept == Kept::kNot) {
      Amounts first = model_.miss(sample);
      fill.later.add(share * makers(), first);
      first.cpu_s = model_.first_miss_s[sample];
      fill.first.add(share * makers(), first);
      return;
    }
    const double jobs = sharing_.jobs, bytes = model_.forms[form].bytes[sample];
    const bool resident = kept == Kept::kResident;
    FormUse& use = fill.forms[form];
    use.share += share;
    use.resident_share += resident ? share : 0;
    const double held = share * bytes * (resident ? 1 : sharing_.window_share);
    use.bytes += held;
    fill.bytes += held;
    if (!resident) fill.window_bytes += held;
    fill.hit_rate += share * (resident ? makers() : 1 - 1 / jobs);
    fill.later.add(share * makers(), resident ? model_.hit(form, sample) : passing(form, sample));
    // In the first epoch nothing is resident: one job makes the sample, the others take it.
    Amounts made = model_.make(form, sample);
    made.cpu_s = model_.forms[form].first_make_s[sample];
    fill.first.add(share / jobs, made);
    if (fresh() == nullptr) fill.first.add(share * (1 - 1 / jobs), model_.hit(form, sample));
  }

  const CacheModel& model_;
  const SharedRates& rates_;
  const Sharing& sharing_;
  const double budget_;  // per sample of the data set
};

}  // namespace

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

Filled fill_cache(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                  double cache_bytes, Freedom freedom) {
  const Filler filler(model, rates, sharing, cache_bytes);
  return filler.best([&](const Tariff& tariff, double below, std::vector<Fill>& found) {
    if (freedom == Freedom::kPerSample)
      filler.per_sample(tariff, below, found);
    else
      filler.by_form(tariff, below, found);
  });
}

Filled fill_by_shares(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                      double cache_bytes, std::span<const double> shares) {
  const Filler filler(model, rates, sharing, cache_bytes);
  return filler.best([&](const Tariff& tariff, double below, std::vector<Fill>& found) {
    filler.by_shares(tariff, below, shares, found);
  });
}

}  // namespace cutwater
