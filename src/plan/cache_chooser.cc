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

// Samples that are never kept may as well belong to a form.
std::vector<double> assigned(const Filled& filled) {
  std::vector<double> shares;
  for (const FormUse& use : filled.fill.forms) shares.push_back(use.share);
  const double all = sum(shares);
  for (double& share : shares) share = all > 0 ? share / all : 0;
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
  like.filled = fill_by_shares(model_, like.rates, like.sharing, like.cache_bytes, like.shares);
  like.samples_per_s = like.setting.consumed(like.filled.samples_per_s);
  return like;
}

CacheChoice CacheChooser::best(const CacheSetting& setting) const {
  const auto rate = [](const CacheChoice& choice) {
    return std::pair{choice.samples_per_s, choice.filled.samples_per_s};
  };
  std::optional<CacheChoice> best;
  for (CacheChoice& choice : candidates(setting)) {
    if (!split_.empty()) {
      choice = with_shares(std::move(choice), split_);
    } else {
      choice.filled =
          fill_cache(model_, choice.rates, choice.sharing, choice.cache_bytes, Freedom::kSplit);
      choice.shares = assigned(choice.filled);
      choice.samples_per_s = setting.consumed(choice.filled.samples_per_s);
    }
    if (!best || rate(*best) < rate(choice)) best = std::move(choice);
  }
  if (split_.empty()) simplify(*best);
  return *best;
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

// One form, if that is as good; else shares in thousandths, without those that do not matter.
void CacheChooser::simplify(CacheChoice& best) const {
  std::vector<std::vector<double>> simpler;
  for (std::size_t f = 0; f < model_.forms.size(); ++f)
    if (best.shares[f] >= 0.05) simpler.emplace_back(model_.forms.size(), 0.0)[f] = 1;
  for (const double least : {0.05, 0.005, 0.0}) {
    std::vector<double> shares = best.shares;
    for (double& share : shares)
      if (share < least) share = 0;
    const double all = sum(shares);
    if (!(all > 0)) continue;
    for (double& share : shares) share = std::round(share / all * 1000) / 1000;
    // Rounding must not make more than all of it.
    *std::max_element(shares.begin(), shares.end()) += 1 - sum(shares);
    simpler.push_back(std::move(shares));
  }
  for (std::vector<double>& shares : simpler) {
    CacheChoice choice = with_shares(best, std::move(shares));
    if (choice.filled.samples_per_s < best.filled.samples_per_s * (1 - kTie)) continue;
    // What more of something is worth is another matter: then the split would be another.
    choice.filled.weights = best.filled.weights;
    choice.filled.price = best.filled.price;
    best = std::move(choice);
    return;
  }
}

}  // namespace cutwater
