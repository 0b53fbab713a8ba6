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

class Filler {
 public:
  Filler(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
         double cache_bytes)
      : model_(model),
        rates_(rates),
        keeping_(model, bound(sharing)),
        budget_(cache_bytes / model.samples - keeping_.handed_on_bytes()) {}

  Filled best(Freedom freedom) const {
    std::vector<Fill> fills = {keeping_.not_kept()};
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
      const double below = (1 + tariff.held_byte * budget_) * (1 - kGain);
      const std::size_t before = fills.size();
      if (freedom == Freedom::kPerSample)
        per_sample(tariff, below, fills);
      else
        by_form(tariff, below, fills);
      if (fills.size() == before) break;
      for (std::size_t k = before; k < fills.size(); ++k) add_column(fills[k]);
      packed = pack(columns, limits);
    }
    Filled filled;
    filled.samples_per_s = packed.value / unit;
    filled.fill.forms.resize(model_.forms.size());
    for (std::size_t k = 0; k < fills.size(); ++k)
      filled.fill.add(packed.amounts[k] / packed.value, fills[k]);
    filled.price = packed.prices[Demand::kResources] / bytes_unit / filled.samples_per_s;
    return filled;
  }

 private:
  // No room is used better than that of the first who come.
  static Sharing bound(Sharing sharing) {
    if (!sharing.fresh) sharing.window_share = lag_share(sharing);
    return sharing;
  }

  struct Choice {
    double cost = 0;
    Kept kept = Kept::kNot;
  };

  // These append ways to keep all samples that cost less than `below`, if there are any.
  void per_sample(const Tariff& tariff, double below, std::vector<Fill>& found) const {
    Fill fill = keeping_.empty();
    double cost = tariff.cost(keeping_.handed_on());
    for (std::size_t i = 0; i < model_.classes(); ++i) {
      std::size_t form = 0;
      Choice best{tariff.cost(keeping_.miss(i)), Kept::kNot};
      for (std::size_t f = 0; f < model_.forms.size(); ++f)
        if (const Choice choice = cheapest(tariff, f, i); choice.cost < best.cost) {
          best = choice;
          form = f;
        }
      cost += keeping_.weight() * best.cost;
      keeping_.add(form, i, best.kept, keeping_.weight(), fill);
    }
    if (cost < below) found.push_back(std::move(fill));
  }

  // All samples in one form, or not kept, of each form that is cheap enough.
  void by_form(const Tariff& tariff, double below, std::vector<Fill>& found) const {
    for (std::size_t f = 0; f < model_.forms.size(); ++f) {
      double cost = tariff.cost(keeping_.handed_on());
      for (std::size_t i = 0; i < model_.classes(); ++i)
        cost += keeping_.weight() * cheapest(tariff, f, i).cost;
      if (cost >= below) continue;
      Fill& fill = found.emplace_back(keeping_.empty());
      for (std::size_t i = 0; i < model_.classes(); ++i)
        keeping_.add(f, i, cheapest(tariff, f, i).kept, keeping_.weight(), fill);
    }
  }

  Demand demand(const Fill& fill) const { return {fill.later, rates_}; }

  Choice cheapest(const Tariff& tariff, std::size_t form, std::size_t sample) const {
    Choice best{tariff.cost(keeping_.miss(sample)), Kept::kNot};
    const double bytes_cost = tariff.held_byte * model_.forms[form].bytes[sample];
    const auto consider = [&](double cost, Kept kept) {
      if (cost < best.cost) best = {cost, kept};
    };
    if (keeping_.passes())
      consider(tariff.cost(keeping_.passing(form, sample)) +
                   keeping_.sharing().window_share * bytes_cost,
               Kept::kPassing);
    consider(tariff.cost(keeping_.hit(form, sample)) + bytes_cost, Kept::kResident);
    return best;
  }

  const CacheModel& model_;
  const SharedRates& rates_;
  const Keeping keeping_;
  const double budget_;  // per sample of the data set
};

}  // namespace

Filled fill_cache(const CacheModel& model, const SharedRates& rates, const Sharing& sharing,
                  double cache_bytes, Freedom freedom) {
  return Filler(model, rates, sharing, cache_bytes).best(freedom);
}

}  // namespace cutwater
