// SPDX-License-Identifier: Apache-2.0
#include "plan/cache_chooser.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace cutwater {
namespace {

constexpr double kTie = 0.005;  // as good as equal: the split with fewer forms is taken
constexpr double kWindowPerJob = 128, kWindowShare = 0.01;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// A move of a share from one form to another, or to none, in steps that get smaller.
class Search {
 public:
  Search(const EngineFill& engine, std::size_t forms) : engine_(engine), best_(forms) {}

  const std::vector<double>& best() const { return best_; }
  double rate() const { return rate_; }

  bool consider(std::vector<double> shares, double gain = 0) {
    const double rate = engine_.with(shares).samples_per_s;
    if (rate <= rate_ * (1 + gain)) return false;
    rate_ = rate;
    best_ = std::move(shares);
    return true;
  }

  // Between these forms, and not kept.
  void refine(const std::vector<std::size_t>& forms) {
    for (const double step : {0.32, 0.16, 0.08, 0.04, 0.02, 0.01})
      for (int round = 0; round < 8; ++round)
        if (!improve(forms, step)) break;
  }

 private:
  bool improve(const std::vector<std::size_t>& forms, double step) {
    bool better = false;
    for (std::size_t from = 0; from <= forms.size(); ++from)
      for (std::size_t to = 0; to <= forms.size(); ++to) {
        if (from == to) continue;
        std::vector<double> shares = best_;
        const double there = from < forms.size() ? shares[forms[from]] : 1 - sum(shares);
        const double moved = std::min(step, there);
        if (!(moved > 1e-9)) continue;
        if (from < forms.size()) shares[forms[from]] -= moved;
        if (to < forms.size()) shares[forms[to]] += moved;
        better |= consider(std::move(shares), 1e-4);
      }
    return better;
  }

  const EngineFill& engine_;
  std::vector<double> best_;
  double rate_ = 0;
};

std::vector<double> rounded(std::vector<double> shares, double least) {
  double excess = -1;
  for (double& share : shares) {
    share = share < least ? 0 : std::round(share * 1000) / 1000;
    excess += share;
  }
  if (excess > 0) *std::max_element(shares.begin(), shares.end()) -= excess;
  return shares;
}

}  // namespace

double CacheSetting::consumed(double samples_per_s) const {
  return consumer > 0 ? std::min(samples_per_s, jobs * consumer) : samples_per_s;
}

CacheChooser::CacheChooser(const CacheModel& model, std::vector<double> split)
    : model_(model), split_(std::move(split)) {
  double most = 0;
  for (const FormColumns& form : model_.forms)
    most = std::max(most, sum(form.bytes) / static_cast<double>(model_.classes()));
  for (const FreshForm& form : model_.fresh) most = std::max(most, form.bytes);
  most_bytes_ = model_.samples * (2 * most + model_.mean_source_bytes());
}

CacheChoice CacheChooser::with_shares(CacheChoice like, std::vector<double> shares) const {
  like.shares = std::move(shares);
  like.filled = EngineFill(model_, like.rates, like.sharing, like.cache_bytes).with(like.shares);
  like.samples_per_s = like.setting.consumed(like.filled.samples_per_s);
  return like;
}

CacheChoice CacheChooser::best(const CacheSetting& setting) const {
  const auto rate = [](const CacheChoice& choice) {
    return std::pair{choice.samples_per_s, choice.filled.samples_per_s};
  };
  std::optional<CacheChoice> best;
  for (CacheChoice& choice : candidates(setting)) {
    if (split_.empty())
      search(choice);
    else
      choice = with_shares(std::move(choice), split_);
    if (!best || rate(*best) < rate(choice)) best = std::move(choice);
  }
  return *best;
}

// Begins with each form alone and with what the program says, which knows the forms that matter.
void CacheChooser::search(CacheChoice& choice) const {
  const EngineFill engine(model_, choice.rates, choice.sharing, choice.cache_bytes);
  const std::size_t count = model_.forms.size();
  Search alone(engine, count);
  for (std::size_t f = 0; f < count; ++f) {
    std::vector<double> one(count);
    one[f] = 1;
    alone.consider(std::move(one));
  }
  const Filled bound =
      fill_cache(model_, choice.rates, choice.sharing, choice.cache_bytes, Freedom::kSplit);
  std::vector<double> kept(count), all(count);
  double sum_kept = 0;
  for (const FormUse& use : bound.fill.forms) sum_kept += use.share;
  std::vector<std::size_t> forms;
  for (std::size_t f = 0; f < count; ++f) {
    kept[f] = std::min(bound.fill.forms[f].share, 1.0);
    all[f] = sum_kept > 0 ? kept[f] / sum_kept : 0;
    if (kept[f] > 0.005 || alone.best()[f] > 0 || f == 0) forms.push_back(f);
  }
  Search mixed = alone;
  mixed.consider(std::vector<double>(count));
  mixed.consider(kept);
  mixed.consider(all);
  if (mixed.rate() < bound.samples_per_s * (1 - 1e-4)) mixed.refine(forms);

  std::vector<double> shares = rounded(mixed.best(), 0);
  for (const std::vector<double>& simpler :
       {std::vector<double>(count), alone.best(), rounded(mixed.best(), 0.05),
        rounded(mixed.best(), 0.01)})
    if (engine.with(simpler).samples_per_s >= mixed.rate() * (1 - kTie)) {
      shares = simpler;
      break;
    }
  choice = with_shares(std::move(choice), std::move(shares));
  choice.filled.price = bound.price;  // with more room, the split would be another
}

// Where the source lies, and whether a fresh form is handed on.
std::vector<CacheChoice> CacheChooser::candidates(const CacheSetting& setting) const {
  const double source_bytes = model_.samples * model_.mean_source_bytes();
  CacheChoice cold;
  cold.setting = setting;
  cold.rates = setting.rates;
  cold.cache_bytes = std::min(setting.cache_bytes, most_bytes_);
  cold.sharing.jobs = setting.jobs;
  const double window = setting.window_samples.value_or(
      std::max(kWindowPerJob * setting.jobs, kWindowShare * model_.samples));
  cold.sharing.window_share = std::min(1.0, window / model_.samples);
  std::vector<CacheChoice> found;
  const bool pages = !setting.storage_given && setting.residency != Residency::kCold;
  if (!pages || setting.residency == Residency::kFits) found.push_back(cold);
  if (pages && (setting.residency == Residency::kWarm || source_bytes <= cold.cache_bytes)) {
    CacheChoice warm = cold;
    warm.rates.storage = {};
    warm.page_cache = true;
    if (setting.residency == Residency::kFits) warm.cache_bytes -= source_bytes;
    found.push_back(std::move(warm));
  }
  if (!setting.same_seed || setting.jobs < 2 || model_.fresh.empty()) return found;
  std::size_t fresh = 0;  // as the engine: the fewest bytes, and of those the last
  for (std::size_t k = 1; k < model_.fresh.size(); ++k)
    if (model_.fresh[k].bytes <= model_.fresh[fresh].bytes) fresh = k;
  for (std::size_t i = 0, count = found.size(); i < count; ++i) {
    CacheChoice handed = found[i];
    handed.sharing.fresh = fresh;
    const double on_their_way =
        model_.samples * handed.sharing.window_share * model_.fresh[fresh].bytes;
    if (on_their_way < handed.cache_bytes) found.push_back(std::move(handed));
  }
  return found;
}

}  // namespace cutwater
