// SPDX-License-Identifier: Apache-2.0
// All strategies of a profile, ranked; and the same again under other circumstances.
#include "cutwater/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "cutwater/error.h"
#include "cutwater/param.h"
#include "plan/begun_plan.h"
#include "plan/cache_plan.h"
#include "plan/cost_model.h"
#include "plan/offload_plan.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr double kTie = 0.01;  // as good as equal: the simpler one is taken
constexpr int kMostJobs = 1024;
constexpr double kMore = 1.1;  // of a resource, to price it

struct Ranking {
  Strategy unprepared;
  std::vector<Strategy> strategies;  // the choice first, the infeasible ones last
  Load later;                        // of the choice
};

Circumstances circumstances(const Profile& profile, const PlanOptions& options) {
  const auto limit = [](const std::optional<std::uint64_t>& bytes) {
    return bytes ? static_cast<double>(*bytes) : kUnlimited;
  };
  Circumstances c;
  c.epochs = static_cast<double>(options.epochs);
  c.threads = options.threads.value_or(profile.threads);
  c.disk_bytes = limit(options.disk_bytes);
  c.memory_bytes = limit(options.memory_bytes);
  c.cold = profile.storage.cold_random;
  c.write_bytes_per_s = profile.storage.write_bytes_per_s;
  const auto& consumer = options.consumer_samples_per_s ? options.consumer_samples_per_s
                                                        : profile.consumer_samples_per_s;
  c.consumer_samples_per_s = consumer.value_or(0);
  c.residency = options.residency;
  c.prices = options.prices;
  return c;
}

void check(const PlanOptions& options) {
  const auto refuse = [](const std::string& what, const Value& value) {
    throw Error(Code::kInvalidArgument, what + ", got " + to_text(value));
  };
  if (options.epochs < 1 || static_cast<double>(options.epochs) > kMostEpochs)
    refuse("epochs must be in 1..1000000", Value{options.epochs});
  if (options.threads && *options.threads < 1)
    refuse("threads must be at least 1", Value{std::int64_t{*options.threads}});
  if (const auto& rate = options.consumer_samples_per_s; rate && !(*rate > 0 && *rate < kUnlimited))
    refuse("the consumer's samples per second must be positive", Value{*rate});
  if (options.jobs < 1 || options.jobs > kMostJobs)
    refuse("jobs must be in 1..1024", Value{std::int64_t{options.jobs}});
  if (options.window_samples && *options.window_samples < 1)
    refuse("the window must be at least 1 sample", Value{*options.window_samples});
  for (const auto& [name, rate] : {std::pair{"the storage's", options.storage_bytes_per_s},
                                   {"the cache's", options.cache_bytes_per_s},
                                   {"the link's", options.link_bytes_per_s}})
    if (rate && !(*rate > 0 && *rate < kUnlimited))
      refuse(std::string(name) + " bytes per second must be positive", Value{*rate});
  const bool offload = offload_policy(options.policy).has_value();
  const bool shared = options.jobs > 1 || options.same_seed || options.processes ||
                      options.storage_bytes_per_s || options.cache_bytes_per_s ||
                      (options.link_bytes_per_s && !offload) || options.window_samples ||
                      !options.split.empty();
  if (shared && options.policy != Policy::kSeneca)
    throw Error(
        Code::kInvalidArgument,
        "jobs, their processes, split, seed, rates and a window go with policy seneca, got " +
            std::string(name_of(options.policy)));
  if (const auto& threads = options.storage_threads; threads && !(*threads >= 0 && *threads <= 1e6))
    refuse("storage threads must be in 0..1000000", Value{*threads});
  if (!(options.storage_speed > 0 && options.storage_speed < kUnlimited))
    refuse("the speed of storage must be positive", Value{options.storage_speed});
  if ((options.storage_threads || options.storage_speed != 1) && !offload)
    throw Error(Code::kInvalidArgument,
                "storage threads and their speed go with the policies sophon, no-off, all-off, "
                "resize-off and paper, got " +
                    std::string(name_of(options.policy)));
  if (offload && options.prices)
    throw Error(Code::kInvalidArgument,
                "prices go with the policies auto, none, presto and seneca, got " +
                    std::string(name_of(options.policy)));
  if (options.prices) {
    const Prices& p = *options.prices;
    for (const auto& [name, price] : {std::pair{"the price of disk", p.disk_gb_month},
                                      {"the price of a core hour", p.core_hour},
                                      {"the months that a store is kept", p.months}})
      if (!(price >= 0 && price < kUnlimited))
        refuse(std::string(name) + " must not be negative", Value{price});
  }
}

double cost(const Strategy& strategy) { return strategy.money.value_or(strategy.total_s); }

// Bytes that are alike within a percent are alike.
long percents(double bytes) { return bytes > 1 ? std::lround(100 * std::log(bytes)) : 0; }

// Smaller is simpler: nothing on disk, fewer bytes, no codec, what the kernel does by itself.
auto simplicity(const Strategy& s) {
  return std::tuple{
      s.place == Place::kStore, s.place == Place::kMemory,
      percents(s.disk_bytes),   s.place == Place::kMemory ? percents(s.memory_bytes) : 0L,
      !s.codec.is_none(),       !s.page_cache};
}

bool shrinks(const CutMeans& cut, const VariantMeans& variant) {
  return variant.codec.is_none() || variant.bytes < cut.variants.front().bytes;
}

Ranking rank(const CostModel& model, Policy policy, const Circumstances& c) {
  struct Row {
    Strategy strategy;
    Load later;
  };
  std::vector<Row> rows(1);
  rows[0].strategy = model.unprepared(c, rows[0].later);
  if (policy != Policy::kNone)
    for (const CutMeans& cut : model.cuts())
      for (const VariantMeans& variant : cut.variants) {
        if (!shrinks(cut, variant)) continue;
        for (const bool page_cache : {true, false}) {
          Row& row = rows.emplace_back();
          row.strategy = model.store(cut, variant, page_cache, c, row.later);
        }
        Row& row = rows.emplace_back();
        row.strategy = model.memory(cut, variant, c, row.later);
      }

  Ranking ranking;
  ranking.unprepared = rows[0].strategy;
  for (Row& row : rows) set_break_even(row.strategy, ranking.unprepared);
  ranking.unprepared.break_even_epochs = rows[0].strategy.break_even_epochs = {};
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    const auto key = [](const Strategy& s) {
      return std::tuple{!s.feasible, cost(s), simplicity(s)};
    };
    return key(a.strategy) < key(b.strategy);
  });
  std::size_t choice = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Strategy& s = rows[i].strategy;
    if (!s.feasible || cost(s) > cost(rows[0].strategy) * (1 + kTie)) break;
    if (simplicity(s) < simplicity(rows[choice].strategy)) choice = i;
  }
  const auto first = rows.begin();
  std::rotate(first, first + static_cast<std::ptrdiff_t>(choice),
              first + static_cast<std::ptrdiff_t>(choice) + 1);
  ranking.later = rows[0].later;
  for (Row& row : rows) ranking.strategies.push_back(std::move(row.strategy));
  return ranking;
}

bool same_choice(const Strategy& a, const Strategy& b) {
  return a.cut == b.cut && a.codec == b.codec && a.place == b.place && a.page_cache == b.page_cache;
}

class Planner {
 public:
  Planner(const CostModel& model, Policy policy, const Circumstances& base)
      : model_(model), policy_(policy), base_(base), ranking_(at(base_)) {}

  const Ranking& ranking() const { return ranking_; }
  const Strategy& choice() const { return ranking_.strategies.front(); }

  std::vector<ResourceUse> resources() const {
    const Load& load = ranking_.later;
    const double time = load.longest();
    const auto share = [&](double seconds) { return time > 0 ? seconds / time : 0; };
    const double reads = std::max(load.seconds[Load::kReads], load.seconds[Load::kBytes]);
    const bool rates = base_.cold.reads_per_s > 0 || base_.cold.bytes_per_s > 0;
    std::vector<ResourceUse> uses;
    uses.push_back({"cpu", share(load.seconds[Load::kCpu]),
                    saved([](Circumstances& c) { c.threads *= kMore; })});
    uses.push_back({"storage", share(reads), {}});
    if (rates || base_.write_bytes_per_s > 0)
      uses.back().price = saved([](Circumstances& c) {
        c.cold.reads_per_s *= kMore;
        c.cold.bytes_per_s *= kMore;
        c.write_bytes_per_s *= kMore;
      });
    uses.push_back({"consumer", share(load.seconds[Load::kConsumer]), {}});
    if (base_.consumer_samples_per_s > 0)
      uses.back().price = saved([](Circumstances& c) { c.consumer_samples_per_s *= kMore; });
    uses.push_back({"memory", taken(choice().memory_bytes, base_.memory_bytes), {}});
    if (base_.memory_bytes < kUnlimited)
      uses.back().price = saved([](Circumstances& c) { c.memory_bytes *= kMore; });
    uses.push_back({"disk", taken(choice().disk_bytes, base_.disk_bytes), {}});
    if (base_.disk_bytes < kUnlimited)
      uses.back().price = saved([](Circumstances& c) { c.disk_bytes *= kMore; });
    return uses;
  }

  std::vector<WhatIf> what_if() const {
    std::vector<WhatIf> found;
    const auto add = [&](const std::string& when, auto&& change) {
      const Strategy other = changed(change).strategies.front();
      found.push_back({when, to_string(other), other.total_s, !same_choice(other, choice())});
    };
    if (const double fewer = fewer_epochs(); fewer > 0)
      add("up to " + epochs_text(fewer), [&](Circumstances& c) { c.epochs = fewer; });
    if (const double more = more_epochs(); more > 0)
      add("from " + epochs_text(more) + " on", [&](Circumstances& c) { c.epochs = more; });
    for (const auto& [word, times] : {std::pair{"half", 0.5}, {"twice", 2.0}}) {
      const double factor = times;
      if (base_.memory_bytes < kUnlimited)
        add(std::string("with ") + word + " the memory (" + size_text(base_.memory_bytes * factor) +
                ")",
            [&](Circumstances& c) { c.memory_bytes *= factor; });
      if (base_.disk_bytes < kUnlimited)
        add(std::string("with ") + word + " the disk (" + size_text(base_.disk_bytes * factor) +
                ")",
            [&](Circumstances& c) { c.disk_bytes *= factor; });
    }
    if (base_.residency != Residency::kWarm)
      add("if everything is in the page cache from the start",
          [](Circumstances& c) { c.residency = Residency::kWarm; });
    if (base_.residency != Residency::kCold)
      add("if nothing stays in the page cache",
          [](Circumstances& c) { c.residency = Residency::kCold; });
    return found;
  }

 private:
  Ranking at(const Circumstances& c) const { return rank(model_, policy_, c); }

  template <class Change>
  Ranking changed(const Change& change) const {
    Circumstances c = base_;
    change(c);
    return at(c);
  }

  template <class Change>
  double saved(const Change& change) const {
    return cost(choice()) - cost(changed(change).strategies.front());
  }

  static double taken(double bytes, double of) {
    return of > 0 && of < kUnlimited ? bytes / of : 0;
  }

  static std::string epochs_text(double epochs) {
    return rate_text(epochs) + (epochs > 1 ? " epochs" : " epoch");
  }

  bool same_at(double epochs) const {
    return same_choice(changed([&](Circumstances& c) { c.epochs = epochs; }).strategies.front(),
                       choice());
  }

  // The most epochs below ours with another choice; 0: there are none. Preparing pays with the
  // number of epochs, so one bisection finds it.
  double fewer_epochs() const {
    if (base_.epochs <= 1 || same_at(1)) return 0;
    double other = 1, same = base_.epochs;
    while (same - other > 1) {
      const double middle = std::floor((other + same) / 2);
      (same_at(middle) ? same : other) = middle;
    }
    return other;
  }

  // The fewest epochs above ours with another choice; 0: there are none.
  double more_epochs() const {
    double same = base_.epochs, other = same * 2;
    while (same_at(other)) {
      if (other >= kMostEpochs) return 0;
      same = other;
      other *= 2;
    }
    while (other - same > 1) {
      const double middle = std::floor((other + same) / 2);
      (same_at(middle) ? same : other) = middle;
    }
    return other;
  }

  const CostModel& model_;
  const Policy policy_;
  const Circumstances base_;
  const Ranking ranking_;
};

std::vector<RefusedCodec> refused_codecs(const CostModel& model) {
  std::vector<RefusedCodec> refused;
  for (const CutMeans& cut : model.cuts())
    for (const VariantMeans& variant : cut.variants)
      if (!shrinks(cut, variant))
        refused.push_back({cut.cut, cut.name, variant.codec,
                           "does not shrink the cut: " + size_text(variant.bytes) + " for " +
                               size_text(cut.variants.front().bytes)});
  return refused;
}

}  // namespace

Plan make_plan(const Profile& profile, const PlanOptions& options) {
  check(options);
  if (options.policy == Policy::kSeneca) return make_cache_plan(profile, options);
  if (offload_policy(options.policy)) return make_offload_plan(profile, options);
  const CostModel model(profile);
  const Circumstances base = circumstances(profile, options);
  const Planner planner(model, options.policy, base);
  const Ranking& ranking = planner.ranking();
  const bool presto = options.policy != Policy::kNone;

  Plan plan = begun_plan(profile, options, model.samples());
  plan.choice = planner.choice();
  plan.alternatives.assign(ranking.strategies.begin() + 1, ranking.strategies.end());
  if (presto) plan.refused = refused_codecs(model);
  plan.resources = planner.resources();
  plan.what_if = planner.what_if();
  put_into_words(plan, {.draws_first = model.cuts().size() == 1 && profile.cuts.size() > 1,
                        .bad_samples = profile.bad.size(),
                        .cold_reads_unknown = !(base.cold.reads_per_s > 0),
                        .cold_bytes_unknown = !(base.cold.bytes_per_s > 0),
                        .write_unknown = !(base.write_bytes_per_s > 0),
                        .profile_threads = profile.threads,
                        .relative_error = profile.relative_error,
                        .unprepared = ranking.unprepared});
  return plan;
}

}  // namespace cutwater
