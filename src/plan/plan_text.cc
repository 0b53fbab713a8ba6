// SPDX-License-Identifier: Apache-2.0
// A plan in words: the names of its parts, the reason, the table.
#include "plan/plan_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cutwater/error.h"
#include "plan/cache_plan.h"
#include "plan/offload_plan.h"

namespace cutwater {
namespace {

constexpr std::array<std::string_view, 9> kPolicies = {
    "auto", "none", "presto", "seneca", "sophon", "no-off", "all-off", "resize-off", "paper"};
constexpr std::array<std::string_view, 3> kPlaces = {"none", "store", "memory"};
constexpr std::array<std::string_view, 3> kResidencies = {"fits", "warm", "cold"};

// Three significant digits, and no more zeros than that.
std::string number(double value) {
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string shown(text);
  if (shown.find('.') != std::string::npos) {
    while (shown.back() == '0') shown.pop_back();
    if (shown.back() == '.') shown.pop_back();
  }
  return shown;
}

template <class Names>
std::size_t named(const Names& names, const char* what, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string known;
  for (const std::string_view one : names) known += (known.empty() ? "" : ", ") + std::string(one);
  throw Error(Code::kInvalidArgument,
              std::string(what) + " must be one of " + known + ", got '" + std::string(name) + "'");
}

std::string epochs_text(std::int64_t epochs) {
  return std::to_string(epochs) + (epochs == 1 ? " epoch" : " epochs");
}

std::string cost_text(const Strategy& s) {
  return s.money ? number(*s.money) + " in money, " + duration_text(s.total_s) + " in all"
                 : duration_text(s.total_s) + " in all";
}

std::string why_best(const Plan& plan, const Strategy& unprepared) {
  const Strategy& best = plan.choice;
  std::string text = "Best for " + epochs_text(plan.options.epochs) + ": " + to_string(best) +
                     ", " + cost_text(best);
  if (best.place == Place::kNone)
    return text + (plan.options.policy == Policy::kNone
                       ? ", because nothing else was to be tried."
                       : "; nothing that could be prepared earns its own time back.");
  if (best.build_s > 0) text += ", " + duration_text(best.build_s) + " of them to build it";
  text += ". Unprepared it would be " + cost_text(unprepared) + ".";
  if (best.break_even_epochs)
    text += " It pays from " + epochs_text(*best.break_even_epochs) + " on.";
  if (best.place == Place::kMemory && best.cached_share < 1)
    text += " The cache holds " + percent_text(best.cached_share) +
            " of the samples; the others take the unprepared way.";
  return text;
}

std::string what_bounds(const Plan& plan) {
  const Strategy& best = plan.choice;
  std::string text = "After the first epoch it gives " + rate_text(best.samples_per_s) +
                     " samples/s, bound by " + best.bound_by;
  if (best.bound_by == "memory") text += ", because a larger cache would hold more";
  for (const ResourceUse& use : plan.resources)
    if (use.name != best.bound_by && use.use >= 0.005 && use.name != "memory" && use.name != "disk")
      text += "; " + use.name + " is busy " + percent_text(use.use) + " of the time";
  return text + ".";
}

std::string why_not_second(const Plan& plan) {
  const Strategy& best = plan.choice;
  const Strategy& second = plan.alternatives.front();
  const double a = best.money.value_or(best.total_s), b = second.money.value_or(second.total_s);
  std::string text = "Runner-up: " + to_string(second) + ", " + cost_text(second);
  if (b <= a * 1.01) return text + ": as good within one percent, but less simple.";
  const double build = second.build_s - best.build_s;
  const double first = second.first_epoch_s - best.first_epoch_s;
  const double later =
      static_cast<double>(plan.options.epochs - 1) * (second.epoch_s - best.epoch_s);
  if (best.money && second.disk_bytes > best.disk_bytes && second.total_s <= best.total_s)
    return text + ": it is no slower, but takes " + size_text(second.disk_bytes) + " of disk.";
  if (later >= build && later >= first)
    text += ": its later epochs take " + duration_text(second.epoch_s) + " instead of " +
            duration_text(best.epoch_s) + " each (" + second.bound_by + ")";
  else if (build >= first)
    text += ": it takes " + duration_text(second.build_s) + " to build" +
            (best.build_s > 0 ? " instead of " + duration_text(best.build_s) : "");
  else
    text += ": its first epoch takes " + duration_text(second.first_epoch_s) + " instead of " +
            duration_text(best.first_epoch_s);
  return text + ".";
}

std::string impossible(const Plan& plan) {
  const Strategy* best = nullptr;  // the one that would be missed most
  std::size_t count = 0;
  for (const Strategy& s : plan.alternatives)
    if (!s.feasible) {
      if (best == nullptr) best = &s;
      ++count;
    }
  if (best == nullptr) return {};
  return std::to_string(count) + (count == 1 ? " strategy is" : " strategies are") +
         " not possible; the best of them is " + to_string(*best) + ", " +
         duration_text(best->total_s) + " in all: " + best->why_not + ".";
}

std::string refused(const Plan& plan) {
  const RefusedCodec& first = plan.refused.front();
  std::string text = std::to_string(plan.refused.size()) +
                     (plan.refused.size() == 1 ? " codec is" : " codecs are") +
                     " out of the question: " + to_string(first.codec) + " at '" + first.cut_name +
                     "' " + first.why;
  return text + (plan.refused.size() > 1 ? ", and others likewise." : ".");
}

std::string row(const Strategy& s, bool money) {
  char text[256];
  std::snprintf(
      text, sizeof text, "%-16s %-15s %-7s %-12s %9s %9s %9s %9s %10s %9s %9s  %-8s %6s",
      s.cut_name.c_str(), to_string(s.codec).c_str(), std::string(name_of(s.place)).c_str(),
      std::string(cache_name(s)).c_str(), duration_text(s.total_s).c_str(),
      s.build_s > 0 ? duration_text(s.build_s).c_str() : "-",
      duration_text(s.first_epoch_s).c_str(), duration_text(s.epoch_s).c_str(),
      rate_text(s.samples_per_s).c_str(), s.disk_bytes > 0 ? size_text(s.disk_bytes).c_str() : "-",
      s.memory_bytes > 0 ? size_text(s.memory_bytes).c_str() : "-", s.bound_by.c_str(),
      s.break_even_epochs ? std::to_string(*s.break_even_epochs).c_str() : "-");
  std::string line(text);
  if (money) line += "  " + number(s.money.value_or(0));
  if (!s.feasible) line += "  not possible: " + s.why_not;
  return line + "\n";
}

std::string strategy_table(const Plan& plan, std::size_t rows) {
  char head[256];
  std::snprintf(head, sizeof head, "%-16s %-15s %-7s %-12s %9s %9s %9s %9s %10s %9s %9s  %-8s %6s",
                "cut", "codec", "place", "cache", "total", "build", "first", "epoch", "samples/s",
                "disk", "memory", "bound by", "pays");
  const bool money = plan.choice.money.has_value();
  std::string text = std::string(head) + (money ? "  money" : "") + "\n" + row(plan.choice, money);
  const std::size_t shown = std::min(rows > 0 ? rows - 1 : 0, plan.alternatives.size());
  for (std::size_t i = 0; i < shown; ++i) text += row(plan.alternatives[i], money);
  if (shown < plan.alternatives.size())
    text += "… and " + std::to_string(plan.alternatives.size() - shown) + " more\n";
  return text;
}

}  // namespace

std::string size_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {" bytes", " kB", " MB", " GB", " TB", " PB"};
  if (std::isinf(bytes)) return "no limit";
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < kUnits.size(); ++unit) bytes /= 1000;
  return number(bytes) + kUnits[unit];
}

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return number(seconds * 1e6) + " us";
  if (seconds < 1) return number(seconds * 1e3) + " ms";
  if (seconds < 120) return number(seconds) + " s";
  if (seconds < 7200) return number(seconds / 60) + " min";
  if (seconds < 172800) return number(seconds / 3600) + " h";
  return number(seconds / 86400) + " days";
}

std::string rate_text(double per_s) { return number(per_s); }

std::string percent_text(double share) { return number(share * 100) + " %"; }

std::string needs(double bytes, const std::string& what, double given) {
  return "needs " + size_text(bytes) + " of " + what + ", " + size_text(given) + " given";
}

std::string_view name_of(Policy policy) { return kPolicies[static_cast<std::size_t>(policy)]; }
std::string_view name_of(Place place) { return kPlaces[static_cast<std::size_t>(place)]; }
std::string_view name_of(Residency residency) {
  return kResidencies[static_cast<std::size_t>(residency)];
}
std::optional<OffloadPolicy> offload_policy(Policy policy) {
  if (policy < Policy::kSophon) return {};
  return kOffloadPolicies[static_cast<std::size_t>(policy) -
                          static_cast<std::size_t>(Policy::kSophon)];
}
Policy policy_named(std::string_view name) {
  return static_cast<Policy>(named(kPolicies, "policy", name));
}
Residency residency_named(std::string_view name) {
  return static_cast<Residency>(named(kResidencies, "residency", name));
}

std::string_view cache_name(const Strategy& strategy) {
  if (strategy.place == Place::kMemory) return "application";
  return strategy.page_cache ? "page" : "none";
}

std::string to_string(const Strategy& strategy) {
  if (strategy.offload)
    return std::string(name_of(strategy.offload->policy)) + ": " + shares_text(*strategy.offload);
  const std::string at = " at '" + strategy.cut_name + "', " +
                         (strategy.codec.is_none() ? "uncompressed" : to_string(strategy.codec));
  switch (strategy.place) {
    case Place::kMemory: return "a memory cache" + at;
    case Place::kStore:
      return "a store" + at + (strategy.page_cache ? ", in the page cache" : ", read from disk");
    case Place::kNone: break;
  }
  return strategy.page_cache ? "unprepared, the source in the page cache"
                             : "unprepared, the source read from disk";
}

void note_profile(Plan& plan, int profile_threads, std::size_t bad_samples) {
  if (*plan.options.threads != profile_threads)
    plan.notes.push_back("Profiled with " + std::to_string(profile_threads) +
                         " threads, planned for " + std::to_string(*plan.options.threads) +
                         ": each is taken to be as fast as before.");
  if (bad_samples > 0)
    plan.notes.push_back(
        std::to_string(bad_samples) +
        " of the profiled samples were bad: that share of the data set is left out.");
}

void put_into_words(Plan& plan, const PlanFacts& facts) {
  plan.reason.push_back(why_best(plan, facts.unprepared));
  plan.reason.push_back(what_bounds(plan));
  if (!plan.alternatives.empty() && plan.alternatives.front().feasible)
    plan.reason.push_back(why_not_second(plan));
  if (facts.draws_first)
    plan.reason.push_back(
        "The pipeline draws in its first op: there is nothing to prepare but the plain "
        "concatenation of the source.");
  if (std::string text = impossible(plan); !text.empty()) plan.reason.push_back(std::move(text));
  if (!plan.refused.empty()) plan.reason.push_back(refused(plan));

  const bool cold = plan.options.residency != Residency::kWarm;
  if (cold && facts.cold_reads_unknown && facts.cold_bytes_unknown)
    plan.notes.push_back(
        "The profile has no rates of cold reads: storage is no bound here, first epochs are those "
        "of a warm page cache.");
  else if (cold && (facts.cold_reads_unknown || facts.cold_bytes_unknown))
    plan.notes.push_back(std::string("The profile has no rate of cold reads in ") +
                         (facts.cold_bytes_unknown ? "bytes" : "reads") +
                         " per second: storage is bound by the other rate only.");
  if (facts.write_unknown)
    plan.notes.push_back(
        "The profile has no rate of writing: a build is bound by its threads only.");
  else if (plan.choice.place == Place::kStore)
    plan.notes.push_back(
        "The rate of writing is that of the folder for temporary files when the profile was made "
        "(TMPDIR): on another disk, the store takes another time to build.");
  note_profile(plan, facts.profile_threads, facts.bad_samples);
  if (facts.relative_error > 0.05)
    plan.notes.push_back("The profile is uncertain by " + percent_text(facts.relative_error) +
                         ": strategies that are closer than that are equal.");
}

std::string explain(const Plan& plan, std::size_t rows) {
  std::string text;
  for (const std::string& sentence : plan.reason) text += sentence + "\n";
  text += "\n";
  if (plan.cache) text += split_table(plan);
  text += plan.offload ? offload_table_text(plan) : strategy_table(plan, rows);
  text += "\nWhat would change the choice:\n";
  for (const WhatIf& other : plan.what_if)
    text += "  " + other.when + ": " + (other.differs ? other.choice : "the same") + ", " +
            duration_text(other.total_s) + "\n";
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace cutwater
