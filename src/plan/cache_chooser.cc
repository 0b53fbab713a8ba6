// SPDX-License-Identifier: Apache-2.0
#include "plan/cache_chooser.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace cutwater {
namespace {

constexpr double kTie = 0.005;     // as good as equal: no need to look further
constexpr double kSimpler = 0.02;  // more than a split with fewer forms may cost: no model knows
constexpr double kClearlySooner = 0.95;  // than with what is kept: predictions are no better
constexpr std::size_t kBestAlone = 6;    // forms that are tried besides those of the program
constexpr double kWindowPerJob = 16, kWindowShare = 0.01;  // samples; of all samples
constexpr double kMostWindow = 0.25;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Moves shares from one form to another, in steps that get smaller, while that is faster.
class Search {
 public:
  Search(const EngineFill& engine, std::vector<double> shares)
      : engine_(engine), best_(std::move(shares)), rate_(engine.with(best_).samples_per_s) {}

  const std::vector<double>& best() const { return best_; }
  double rate() const { return rate_; }

  // `leave`: samples may belong to none of the forms.
  void refine(const std::vector<std::size_t>& forms, bool leave) {
    const std::size_t ends = forms.size() + (leave ? 1 : 0);
    for (const double step : {0.32, 0.16, 0.08, 0.04, 0.02, 0.01})
      for (bool better = true; better;) {
        better = false;
        for (std::size_t from = 0; from < ends; ++from)
          for (std::size_t to = 0; to < ends; ++to)
            if (from != to) better |= move(forms, from, to, step);
      }
  }

 private:
  bool move(const std::vector<std::size_t>& forms, std::size_t from, std::size_t to, double step) {
    std::vector<double> shares = best_;
    const double there = from < forms.size() ? shares[forms[from]] : 1 - sum(shares);
    const double moved = std::min(step, there);
    if (!(moved > 1e-9)) return false;
    if (from < forms.size()) shares[forms[from]] -= moved;
    if (to < forms.size()) shares[forms[to]] += moved;
    const double rate = engine_.with(shares).samples_per_s;
    if (rate <= rate_ * (1 + kGain)) return false;
    rate_ = rate;
    best_ = std::move(shares);
    return true;
  }

  static constexpr double kGain = 1e-4;
  const EngineFill& engine_;
  std::vector<double> best_;
  double rate_ = 0;
};

// In thousandths, without those that are smaller than `least`; what they had goes to the largest.
std::vector<double> rounded(std::vector<double> shares, double least) {
  const double whole = std::round(sum(shares) * 1000) / 1000;
  for (double& share : shares) share = share < least ? 0 : std::round(share * 1000) / 1000;
  *std::max_element(shares.begin(), shares.end()) += whole - sum(shares);
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
  like.filled =
      EngineFill(model_, like.rates, like.sharing, like.cache_bytes, like.shares).with(like.shares);
  like.samples_per_s = like.setting.consumed(like.filled.samples_per_s);
  return like;
}

double CacheChooser::first_samples_per_s(const CacheChoice& choice) {
  const SharedRates& cold =
      choice.setting.residency == Residency::kWarm ? choice.rates : choice.setting.rates;
  return choice.setting.consumed(1 / Demand(choice.filled.fill.first, cold).longest());
}

double CacheChooser::mean_seconds(const CacheChoice& choice) {
  const double first = 1 / first_samples_per_s(choice), later = 1 / choice.samples_per_s;
  return later + (first - later) / choice.setting.epochs;
}

CacheChoice CacheChooser::best(const CacheSetting& setting) const {
  const auto rank = [](const CacheChoice& choice) {
    return std::pair{mean_seconds(choice), -choice.filled.samples_per_s};
  };
  std::optional<CacheChoice> best;
  const auto consider = [&](CacheChoice choice) {
    if (!best || rank(choice) < rank(*best)) best = std::move(choice);
  };
  for (CacheChoice& choice : candidates(setting)) {
    if (!split_.empty()) {
      consider(with_shares(std::move(choice), split_));
      continue;
    }
    search(choice);
    CacheChoice nothing = with_shares(choice, std::vector<double>(model_.forms.size()));
    nothing.filled.price = choice.filled.price;
    const bool sooner = mean_seconds(nothing) < kClearlySooner * mean_seconds(choice);
    consider(std::move(sooner ? nothing : choice));
  }
  return *best;
}

// Begins with the best form alone and with what the program says, which knows the forms that
// matter.
void CacheChooser::search(CacheChoice& choice) const {
  const std::size_t count = model_.forms.size();
  const auto alone = [&](std::size_t form) {
    std::vector<double> shares(count);
    shares[form] = 1;
    return shares;
  };
  std::vector<std::pair<double, std::size_t>> by_rate;
  for (std::size_t f = 0; f < count; ++f)
    by_rate.emplace_back(-with_shares(choice, alone(f)).filled.samples_per_s, f);
  std::sort(by_rate.begin(), by_rate.end());
  const Filled bound =
      fill_cache(model_, choice.rates, choice.sharing, choice.cache_bytes, Freedom::kSplit);
  std::vector<double> kept, used(count);
  std::vector<std::size_t> forms;
  for (std::size_t k = 0; k < std::min(by_rate.size(), kBestAlone); ++k)
    forms.push_back(by_rate[k].second);
  for (std::size_t f = 0; f < count; ++f) {
    kept.push_back(bound.fill.forms[f].share);
    if (kept[f] > 0.005 && std::find(forms.begin(), forms.end(), f) == forms.end())
      forms.push_back(f);
    if (kept[f] > 0) used[f] = 1;
  }
  for (const std::size_t form : forms) used[form] = 1;
  const EngineFill engine(model_, choice.rates, choice.sharing, choice.cache_bytes, used);

  // Several jobs go to what is in the cache first: samples that never are there would be left for
  // the end of an epoch, all of them misses. One job keeps its order.
  const bool leave = choice.setting.jobs < 2;
  std::vector<double> all = alone(forms.front());
  if (const double whole = sum(kept); whole > 0)
    for (std::size_t f = 0; f < count; ++f) all[f] = kept[f] / whole;
  if (const double excess = sum(kept) - 1; excess > 0) kept = all;

  std::vector<Search> searches = {Search(engine, alone(forms.front())), Search(engine, all)};
  if (leave) searches.emplace_back(engine, kept);
  for (std::size_t k = 1; k < forms.size(); ++k) searches.emplace_back(engine, alone(forms[k]));
  const Search* best = nullptr;
  for (Search& one : searches) {
    if (best != nullptr && best->rate() > bound.samples_per_s * (1 - kTie)) break;
    if (one.rate() < bound.samples_per_s * (1 - kTie)) one.refine(forms, leave);
    if (best == nullptr || one.rate() > best->rate()) best = &one;
  }
  std::vector<double> shares = rounded(best->best(), 0);
  for (const std::vector<double>& simpler :
       {std::vector<double>(count), alone(forms.front()), rounded(best->best(), 0.05),
        rounded(best->best(), 0.01)})
    if (engine.with(simpler).samples_per_s >= best->rate() * (1 - kSimpler)) {
      shares = simpler;
      break;
    }
  choice.filled = engine.with(shares);
  choice.shares = std::move(shares);
  choice.samples_per_s = choice.setting.consumed(choice.filled.samples_per_s);
  choice.filled.price = bound.price;  // with more room, the split would be another
}

// Where the source lies, and whether a fresh form is handed on.
std::vector<CacheChoice> CacheChooser::candidates(const CacheSetting& setting) const {
  const double source_bytes = model_.samples * model_.mean_source_bytes();
  CacheChoice cold;
  cold.setting = setting;
  cold.rates = setting.rates;
  cold.cache_bytes = std::min(setting.for_values * setting.cache_bytes, most_bytes_);
  cold.sharing.jobs = setting.jobs;
  const double window = setting.window_samples.value_or(
      std::max(kWindowPerJob * setting.jobs, kWindowShare * model_.samples));
  cold.sharing.window_share = std::min(kMostWindow, window / model_.samples);
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
