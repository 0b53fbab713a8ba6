// SPDX-License-Identifier: Apache-2.0
// The plan of a server near the storage in words.
#include <algorithm>
#include <cstdio>

#include "plan/offload_plan.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

constexpr double kWorthNaming = 0.005;  // of the samples

std::string times_text(double times) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2fx", times);
  return text;
}

// "1.98x less than raw"
std::string against_raw(double bytes, double raw) {
  if (!(bytes > 0 && raw > 0) || bytes == raw) return "as much as raw";
  return bytes < raw ? times_text(raw / bytes) + " less than raw"
                     : times_text(bytes / raw) + " more than raw";
}

std::string what_is_sent(const Plan& plan, const OffloadOutcome& raw) {
  const OffloadOutcome& made = *plan.choice.offload;
  const std::string head = "By policy " + std::string(name_of(made.policy)) + ", ";
  if (made.shares.size() == 1 && made.shares[0].variant.is_raw())
    return head + "samples are sent raw: an epoch has " + size_text(made.bytes) + " and takes " +
           duration_text(plan.choice.epoch_s) + ".";
  return head + "an epoch sends " + size_text(made.bytes) + ", " +
         against_raw(made.bytes, raw.bytes) + ", and takes " + duration_text(plan.choice.epoch_s) +
         " instead of " + duration_text(raw.times.epoch_s()) + ": " + shares_text(made) + ".";
}

std::string what_bounds(const Plan& plan) {
  std::string text = "Bound by " + plan.choice.bound_by;
  for (const ResourceUse& use : plan.resources)
    if (use.name != plan.choice.bound_by && use.use >= kWorthNaming)
      text += "; " + use.name + " is busy " + percent_text(std::min(use.use, 1.0)) + " of the time";
  return text + ".";
}

// Why it does no more than it does.
std::string why_it_stops(const Plan& plan) {
  const OffloadPlan& offload = *plan.offload;
  if (*plan.options.storage_threads == 0)
    return "Storage has no threads to spare: it can only send samples as they are stored.";
  if (!plan.options.link_bytes_per_s)
    return "The link is no bound: nothing is sent otherwise but to relieve the trainer's threads. "
           "Give its rate.";
  std::string text;
  if (offload.prices.storage_s == 0)
    text = "Storage has time for every step that saves bytes.";
  else if (offload.prices.storage_s < std::numeric_limits<double>::infinity())
    text = "A second of a storage thread is spent where it saves at least " +
           size_text(offload.prices.storage_s) + ".";
  else
    text = "No step is worth a second of storage.";
  if (offload.prices.compute_s > 0)
    text +=
        " A second of the trainer's threads counts as " + size_text(offload.prices.compute_s) + ".";
  return text;
}

std::string how_good(const Plan& plan) {
  const double least = plan.offload->least_epoch_s;
  if (!(least > 0)) return {};
  char above[32];
  std::snprintf(above, sizeof above, "%.2g", 100 * std::max(plan.choice.epoch_s / least - 1, 0.0));
  return "No choice of options has an epoch below " + duration_text(least) + "; this one is " +
         above + " % longer.";
}

std::string line(const char* policy, const std::string& epoch, const std::string& bytes,
                 const std::string& raw, const OffloadTimes* t, const std::string& bound) {
  const auto seconds = [&](double OffloadTimes::*member, const char* head) {
    return t != nullptr ? duration_text(t->*member) : std::string(head);
  };
  char text[200];
  std::snprintf(text, sizeof text, "%-11s %9s %10s %8s %9s %9s %9s %9s  %s\n", policy,
                epoch.c_str(), bytes.c_str(), raw.c_str(),
                seconds(&OffloadTimes::consumer_s, "T_G").c_str(),
                seconds(&OffloadTimes::compute_s, "T_CC").c_str(),
                seconds(&OffloadTimes::storage_s, "T_CS").c_str(),
                seconds(&OffloadTimes::network_s, "T_Net").c_str(), bound.c_str());
  return text;
}

}  // namespace

std::string shares_text(const OffloadOutcome& outcome) {
  std::string text;
  double rest = 0;
  for (const OffloadShare& share : outcome.shares) {
    if (share.samples_share < kWorthNaming) {
      rest += share.samples_share;
      continue;
    }
    text += (text.empty() ? "" : ", ") + percent_text(share.samples_share) + " " +
            to_string(share.variant);
  }
  return rest > 0 ? text + ", " + percent_text(rest) + " otherwise" : text;
}

void put_offload_into_words(Plan& plan, const OffloadFacts& facts) {
  plan.reason.push_back(what_is_sent(plan, facts.raw));
  plan.reason.push_back(what_bounds(plan));
  if (plan.choice.offload->policy == OffloadPolicy::kSophon)
    plan.reason.push_back(why_it_stops(plan));
  if (std::string text = how_good(plan); !text.empty()) plan.reason.push_back(std::move(text));

  if (!facts.excerpts_known)
    plan.notes.push_back(
        "The profile knows nothing of excerpts: its pipeline has none, or a loader collected it.");
  if (!facts.fresh_known)
    plan.notes.push_back(
        "The profile has no codecs of fresh cuts, and their ops one by one only: cutwater profile "
        "measures them.");
  if (!plan.options.link_bytes_per_s)
    plan.notes.push_back("The link's rate is not given: it is no bound here.");
  plan.notes.push_back(
      "Fresh cuts and excerpts have the bytes of one epoch's draws; another epoch's are alike on "
      "average.");
  if (plan.options.storage_speed != 1)
    plan.notes.push_back("A storage thread is taken to be " +
                         rate_text(plan.options.storage_speed) +
                         " times as fast as a profiled one.");
  note_profile(plan, facts.profile_threads, facts.bad_samples);
}

std::string offload_table_text(const Plan& plan) {
  double raw = 0;
  std::vector<const Strategy*> rows = {&plan.choice};
  for (const Strategy& s : plan.alternatives) rows.push_back(&s);
  for (const Strategy* s : rows)
    if (s->offload->policy == OffloadPolicy::kNoOff) raw = s->offload->bytes;
  std::string text = line("policy", "epoch", "bytes", "of raw", nullptr, "bound by");
  for (const Strategy* s : rows)
    text += line(std::string(name_of(s->offload->policy)).c_str(), duration_text(s->epoch_s),
                 size_text(s->offload->bytes), percent_text(raw > 0 ? s->offload->bytes / raw : 1),
                 &s->offload->times, s->bound_by);
  text += "\n";
  for (const Strategy* s : rows) {
    char name[32];
    std::snprintf(name, sizeof name, "%-11s ", std::string(name_of(s->offload->policy)).c_str());
    text += name + shares_text(*s->offload) + "\n";
  }
  return text;
}

}  // namespace cutwater
