// SPDX-License-Identifier: Apache-2.0
// The best split of a cache for jobs that share it; and the same again under other circumstances.
#include "plan/cache_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "cutwater/error.h"
#include "plan/begun_plan.h"
#include "plan/cache_chooser.h"
#include "plan/cost_model.h"
#include "plan/paper_equations.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

constexpr double kBusy = 0.999;  // of the time: it bounds
constexpr double kMore = 1.1;    // of a resource, to price it

double mean(const std::vector<double>& column) {
  return std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(column.size());
}

CacheSetting setting_of(const Profile& profile, const PlanOptions& options) {
  CacheSetting s;
  s.jobs = options.jobs;
  s.cache_bytes = options.memory_bytes ? static_cast<double>(*options.memory_bytes)
                                       : std::numeric_limits<double>::max();
  s.for_values = 1 - options.cache_books;
  const auto& consumer = options.consumer_samples_per_s ? options.consumer_samples_per_s
                                                        : profile.consumer_samples_per_s;
  s.consumer = consumer.value_or(0);
  s.rates.threads = options.threads.value_or(profile.threads);
  s.rates.storage = profile.storage.cold_random;
  s.storage_given = options.storage_bytes_per_s.has_value();
  if (s.storage_given) s.rates.storage = {0, *options.storage_bytes_per_s};
  s.rates.cache_bytes_per_s = options.cache_bytes_per_s.value_or(0);
  s.rates.link_bytes_per_s = options.link_bytes_per_s.value_or(0);
  if (options.window_samples) s.window_samples = static_cast<double>(*options.window_samples);
  s.residency = options.residency;
  s.same_seed = options.same_seed;
  s.epochs = static_cast<double>(options.epochs);
  return s;
}

class CachePlanner {
 public:
  CachePlanner(const Profile& profile, const PlanOptions& options)
      : options_(options),
        model_(profile, options.processes),
        chooser_(model_,
                 options.split.empty() ? std::vector<double>() : shares_of(model_, options.split)),
        base_(setting_of(profile, options)) {}

  const CacheModel& model() const { return model_; }
  const CacheSetting& base() const { return base_; }
  CacheChoice best() const { return chooser_.best(base_); }

  CacheChoice with_shares(const CacheChoice& like, std::vector<double> shares) const {
    return chooser_.with_shares(like, std::move(shares));
  }

  double per_sample(const CacheChoice& found) const {
    return found.setting.consumed(
        fill_cache(model_, found.rates, found.sharing, found.cache_bytes, Freedom::kPerSample)
            .samples_per_s);
  }

  std::string bound_by(const CacheChoice& found) const {
    if (found.samples_per_s < found.filled.samples_per_s) return "consumer";
    const Demand demand(found.filled.fill.later, found.rates);
    std::size_t bound = 0;
    while (demand.seconds[bound] < kBusy * demand.longest()) ++bound;
    return std::string(Demand::kNames[bound]);
  }

  Strategy strategy(const CacheChoice& found) const {
    Strategy s;
    const Fill& fill = found.filled.fill;
    std::size_t main = 0;
    for (std::size_t f = 0; f < fill.forms.size(); ++f) {
      if (fill.forms[f].bytes > fill.forms[main].bytes) main = f;
      s.cached_share += fill.forms[f].resident_share;
    }
    const FormName& name = model_.forms[main].name;
    const bool kept = fill.bytes + fill.window_bytes > 0;
    s.cut = name.cut;
    s.cut_name = name.cut_name;
    s.codec = name.codec;
    s.place = kept ? Place::kMemory : Place::kNone;
    s.page_cache = !kept && found.page_cache;
    const double accesses = model_.samples * found.setting.jobs;
    s.first_epoch_s = accesses / CacheChooser::first_samples_per_s(found);
    s.epoch_s = accesses / found.samples_per_s;
    s.total_s = s.first_epoch_s + static_cast<double>(options_.epochs - 1) * s.epoch_s;
    s.samples_per_s = found.samples_per_s;
    s.memory_bytes = std::min(held_bytes(found), found.cache_bytes);
    s.bound_by = bound_by(found);
    if (options_.prices) s.money = money_of(*options_.prices, 0, s.total_s, found.rates.threads);
    return s;
  }

  double held_bytes(const CacheChoice& found) const {
    double bytes = found.filled.fill.bytes;
    if (found.sharing.fresh) bytes += found.filled.fill.window_bytes;
    return model_.samples * bytes;
  }

  CachePlan cache_plan(const CacheChoice& found) const {
    const Fill& fill = found.filled.fill;
    CachePlan plan;
    plan.split = split_text(model_, found.shares);
    for (std::size_t f = 0; f < model_.forms.size(); ++f) {
      if (!(found.shares[f] > 0)) continue;
      const FormName& name = model_.forms[f].name;
      const FormUse& use = fill.forms[f];
      plan.forms.push_back({name.cut, name.cut_name, name.codec, found.shares[f],
                            use.resident_share, model_.samples * use.bytes,
                            fill.bytes > 0 ? use.bytes / fill.bytes : 0});
    }
    std::stable_sort(
        plan.forms.begin(), plan.forms.end(),
        [](const CacheForm& a, const CacheForm& b) { return a.samples_share > b.samples_share; });
    if (found.sharing.fresh) plan.fresh = model_.fresh[*found.sharing.fresh].cut_name;
    plan.hit_rate = fill.hit_rate;
    plan.samples_per_s = found.samples_per_s;
    plan.per_job = found.samples_per_s / found.setting.jobs;
    plan.first_epoch_samples_per_s = CacheChooser::first_samples_per_s(found);
    plan.per_sample_choice = std::max(per_sample(found), found.samples_per_s);
    plan.window_bytes = model_.samples * fill.window_bytes;
    const bool consumed = found.samples_per_s < found.filled.samples_per_s;
    plan.price_s_per_byte = consumed ? 0 : found.setting.jobs * found.filled.price;
    plan.paper = paper(found);
    return plan;
  }

  std::vector<ResourceUse> resources(const CacheChoice& found) const {
    const double total = strategy(found).total_s;
    const auto saved = [&](auto&& change) {
      CacheSetting more = base_;
      change(more);
      return total - strategy(chooser_.best(more)).total_s;
    };
    const Demand demand(found.filled.fill.later, found.rates);
    const auto use = [&](std::size_t r) { return found.samples_per_s * demand.seconds[r]; };
    std::vector<ResourceUse> uses;
    uses.push_back(
        {"cpu", use(Demand::kCpu), saved([](CacheSetting& s) { s.rates.threads *= kMore; })});
    uses.push_back({"storage", std::max(use(Demand::kReads), use(Demand::kStorage)), {}});
    const ReadCost& storage = base_.rates.storage;
    if (storage.reads_per_s > 0 || storage.bytes_per_s > 0)
      uses.back().price = saved([](CacheSetting& s) {
        s.rates.storage.reads_per_s *= kMore;
        s.rates.storage.bytes_per_s *= kMore;
      });
    uses.push_back({"cache", use(Demand::kCache), {}});
    if (base_.rates.cache_bytes_per_s > 0)
      uses.back().price = saved([](CacheSetting& s) { s.rates.cache_bytes_per_s *= kMore; });
    uses.push_back({"link", use(Demand::kLink), {}});
    if (base_.rates.link_bytes_per_s > 0)
      uses.back().price = saved([](CacheSetting& s) { s.rates.link_bytes_per_s *= kMore; });
    const double consumer = base_.consumer * found.setting.jobs;
    uses.push_back({"consumer", consumer > 0 ? found.samples_per_s / consumer : 0, {}});
    if (consumer > 0) uses.back().price = saved([](CacheSetting& s) { s.consumer *= kMore; });
    uses.push_back({"memory",
                    options_.memory_bytes && *options_.memory_bytes > 0
                        ? held_bytes(found) / base_.cache_bytes
                        : 0,
                    {}});
    if (options_.memory_bytes)
      uses.back().price = saved([](CacheSetting& s) { s.cache_bytes *= kMore; });
    return uses;
  }

  std::vector<WhatIf> what_if(const CacheChoice& now) const {
    std::vector<WhatIf> found;
    const auto add = [&](const std::string& when, auto&& change) {
      CacheSetting other = base_;
      change(other);
      const CacheChoice then = chooser_.best(other);
      const std::string text = split_text(model_, then.shares);
      found.push_back({when, text.empty() ? "nothing kept" : text, strategy(then).total_s,
                       text != split_text(model_, now.shares)});
    };
    for (const auto& [word, times] : {std::pair{"half", 0.5}, {"twice", 2.0}}) {
      const double factor = times;
      if (options_.memory_bytes)
        add(std::string("with ") + word + " the cache (" + size_text(base_.cache_bytes * factor) +
                ")",
            [&](CacheSetting& s) { s.cache_bytes *= factor; });
    }
    if (base_.jobs > 1) add("with one job", [](CacheSetting& s) { s.jobs = 1; });
    add("with " + rate_text(2 * base_.jobs) + " jobs", [](CacheSetting& s) { s.jobs *= 2; });
    return found;
  }

 private:
  PaperPlan paper(const CacheChoice& found) const {
    const FormColumns& decoded = model_.forms[model_.decoded];
    const ReadCost& storage = found.rates.storage;
    PaperInputs in;
    in.samples = model_.samples;
    in.sample_bytes = model_.mean_source_bytes();
    in.inflation = mean(decoded.bytes) / in.sample_bytes;
    in.cache_bytes = std::min(base_.cache_bytes, chooser_.most_bytes());
    in.gpu_samples_per_s = found.setting.jobs * found.setting.consumer;
    // Without a consumer, what is ready still has to be copied into a batch.
    if (!(in.gpu_samples_per_s > 0))
      in.gpu_samples_per_s =
          found.rates.threads /
          (model_.fresh.empty() ? mean(decoded.hit_s) : model_.fresh.back().hit_s);
    in.decode_augment_samples_per_s = found.rates.threads / mean(model_.miss_s);
    in.augment_samples_per_s = found.rates.threads / mean(decoded.hit_s);
    in.cache_bytes_per_s = found.rates.cache_bytes_per_s;
    in.link_bytes_per_s = found.rates.link_bytes_per_s;
    in.storage_bytes_per_s = storage.bytes_per_s;
    if (storage.reads_per_s > 0) {
      const double by_reads = storage.reads_per_s * in.sample_bytes;
      in.storage_bytes_per_s =
          storage.bytes_per_s > 0 ? std::min(storage.bytes_per_s, by_reads) : by_reads;
    }
    const PaperSplit split = best_paper_split(in);
    return {split.encoded, split.decoded, split.augmented, split.samples_per_s,
            found.setting.consumed(our_rate(found, split))};
  }

  // The paper's split in our engine: what is encoded and decoded stays, what is augmented is made
  // anew once it was used by every job, and the rest is read.
  double our_rate(const CacheChoice& found, const PaperSplit& split) const {
    const double n = static_cast<double>(model_.classes()), jobs = found.setting.jobs;
    const double stored =
        1 - split.encoded_samples - split.decoded_samples - split.augmented_samples;
    Amounts amounts;
    for (std::size_t i = 0; i < model_.classes(); ++i) {
      amounts.add((stored + split.augmented_samples / jobs) / n, model_.miss(i));
      amounts.add(split.encoded_samples / n, model_.hit(0, i));
      amounts.add(split.decoded_samples / n, model_.hit(model_.decoded, i));
    }
    if (!model_.fresh.empty()) {
      const FreshForm& last = model_.fresh.back();
      amounts.add(split.augmented_samples / jobs, {last.put_s, 0, 0, last.bytes});
      amounts.add(split.augmented_samples * (1 - 1 / jobs), {last.hit_s, 0, 0, last.bytes});
    }
    return 1 / Demand(amounts, found.rates).longest();
  }

  const PlanOptions& options_;
  const CacheModel model_;
  const CacheChooser chooser_;
  const CacheSetting base_;
};

}  // namespace

Plan make_cache_plan(const Profile& profile, const PlanOptions& options) {
  const CachePlanner planner(profile, options);
  const CacheModel& model = planner.model();
  const CacheChoice found = planner.best();
  Plan plan = begun_plan(profile, options, model.samples);
  plan.cache = planner.cache_plan(found);
  plan.choice = planner.strategy(found);

  std::vector<double> shares(model.forms.size());
  const Strategy unprepared = planner.strategy(planner.with_shares(found, shares));
  plan.alternatives.push_back(unprepared);
  for (std::size_t f = 0; f < model.forms.size(); ++f) {
    if (found.shares[f] >= 1) continue;  // that is the choice
    shares.assign(model.forms.size(), 0);
    shares[f] = 1;
    Strategy one = planner.strategy(planner.with_shares(found, shares));
    one.cut = model.forms[f].name.cut;
    one.cut_name = model.forms[f].name.cut_name;
    one.codec = model.forms[f].name.codec;
    if (one.place != Place::kNone) plan.alternatives.push_back(std::move(one));
  }
  set_break_even(plan.choice, unprepared);
  for (Strategy& s : plan.alternatives)
    if (s.place != Place::kNone) set_break_even(s, unprepared);
  std::stable_sort(plan.alternatives.begin(), plan.alternatives.end(),
                   [](const Strategy& a, const Strategy& b) { return a.total_s < b.total_s; });
  plan.resources = planner.resources(found);
  plan.what_if = planner.what_if(found);
  const double bad = static_cast<double>(profile.bad.size());
  const ReadCost& storage = planner.base().rates.storage;
  put_cache_into_words(plan, {.page_cache = found.page_cache,
                              .storage_known = storage.reads_per_s > 0 || storage.bytes_per_s > 0,
                              .bad_share = bad / (bad + static_cast<double>(profile.ids.size())),
                              .unprepared = unprepared.samples_per_s});
  return plan;
}

}  // namespace cutwater
