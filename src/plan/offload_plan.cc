// SPDX-License-Identifier: Apache-2.0
// The policies of offload for one profile; and the same again under other circumstances.
#include "plan/offload_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/begun_plan.h"
#include "plan/offload_table.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

constexpr double kMore = 1.1;  // of a resource, to price it
constexpr int kMostThreadsShown = 8;

OffloadMachine machine_of(const Plan& plan, const Profile& profile) {
  OffloadMachine machine;
  machine.link_bytes_per_s = plan.options.link_bytes_per_s.value_or(0);
  machine.compute_threads = *plan.options.threads;
  machine.storage_threads = plan.options.storage_threads.value_or(profile.threads);
  machine.storage_speed = plan.options.storage_speed;
  machine.consumer_samples_per_s = plan.options.consumer_samples_per_s;
  return machine;
}

class OffloadPlanner {
 public:
  OffloadPlanner(const OffloadColumns& columns, const Plan& plan, const OffloadMachine& machine)
      : columns_(columns),
        samples_(static_cast<double>(plan.samples)),
        epochs_(static_cast<double>(plan.options.epochs)),
        machine_(machine) {}

  OffloadDecision decide(OffloadPolicy policy, const OffloadMachine& machine) const {
    return solve_offload(columns_.table(), machine, columns_.weight, policy);
  }

  OffloadOutcome outcome(OffloadPolicy policy, const OffloadDecision& decision) const {
    OffloadOutcome made{policy, decision.bytes_after, decision.after, {}};
    std::vector<OffloadShare> shares(columns_.variants.size());
    const OffloadTable table = columns_.table();
    for (std::size_t i = 0; i < decision.choice.size(); ++i) {
      OffloadShare& share = shares[decision.choice[i]];
      share.variant = columns_.variants[decision.choice[i]];
      share.samples_share += 1 / static_cast<double>(decision.choice.size());
      share.bytes += columns_.weight * table.row(i)[decision.choice[i]].bytes;
    }
    std::stable_sort(shares.begin(), shares.end(),
                     [](const OffloadShare& a, const OffloadShare& b) {
                       return a.samples_share > b.samples_share;
                     });
    for (OffloadShare& share : shares)
      if (share.samples_share > 0) made.shares.push_back(std::move(share));
    return made;
  }

  Strategy strategy(OffloadPolicy policy) const { return strategy(policy, machine_); }
  Strategy strategy(OffloadPolicy policy, const OffloadMachine& machine) const {
    Strategy s;
    s.offload = outcome(policy, decide(policy, machine));
    const OffloadVariant& most = s.offload->shares.front().variant;
    s.cut = most.cut;
    s.cut_name = most.cut_name;
    s.codec = most.codec;
    s.epoch_s = s.first_epoch_s = s.offload->times.epoch_s();
    s.total_s = epochs_ * s.epoch_s;
    s.samples_per_s = s.epoch_s > 0 ? samples_ / s.epoch_s : 0;
    s.bound_by = s.offload->times.bound_by();
    return s;
  }

  OffloadPlan plan() const {
    const OffloadDecision best = decide(OffloadPolicy::kSophon, machine_);
    OffloadPlan made{best.prices, best.least_epoch_s, {}};
    for (int threads = 0; threads <= kMostThreadsShown; ++threads) {
      OffloadMachine machine = machine_;
      machine.storage_threads = threads;
      OffloadTraffic& row = made.by_threads.emplace_back();
      row.storage_threads = threads;
      for (const OffloadPolicy policy : kOffloadPolicies) {
        const OffloadDecision decision = decide(policy, machine);
        row.bytes.push_back(decision.bytes_after);
        row.epoch_s.push_back(decision.after.epoch_s());
      }
    }
    return made;
  }

  std::vector<ResourceUse> resources(const Strategy& choice) const {
    const OffloadTimes& times = choice.offload->times;
    const auto use = [&](double seconds) {
      return choice.epoch_s > 0 ? seconds / choice.epoch_s : 0;
    };
    const auto saved = [&](auto&& change) {
      OffloadMachine more = machine_;
      change(more);
      return choice.total_s - strategy(choice.offload->policy, more).total_s;
    };
    std::vector<ResourceUse> uses;
    uses.push_back({"network", use(times.network_s), {}});
    if (machine_.link_bytes_per_s > 0)
      uses.back().price = saved([](OffloadMachine& m) { m.link_bytes_per_s *= kMore; });
    uses.push_back({"storage_cpu", use(times.storage_s),
                    saved([](OffloadMachine& m) { m.storage_threads *= kMore; })});
    uses.push_back({"cpu", use(times.compute_s),
                    saved([](OffloadMachine& m) { m.compute_threads *= kMore; })});
    uses.push_back({"consumer", use(times.consumer_s), {}});
    if (machine_.consumer_samples_per_s)
      uses.back().price = saved([](OffloadMachine& m) { *m.consumer_samples_per_s *= kMore; });
    return uses;
  }

  std::vector<WhatIf> what_if(const Strategy& choice) const {
    std::vector<WhatIf> found;
    const std::string now = shares_text(*choice.offload);
    const auto add = [&](const std::string& when, auto&& change) {
      OffloadMachine other = machine_;
      change(other);
      const Strategy then = strategy(choice.offload->policy, other);
      const std::string text = shares_text(*then.offload);
      found.push_back({when, text, then.total_s, text != now});
    };
    for (const auto& [word, times] : {std::pair{"half", 0.5}, {"twice", 2.0}}) {
      const double factor = times;
      if (machine_.link_bytes_per_s > 0)
        add(std::string("with ") + word + " the link (" +
                size_text(machine_.link_bytes_per_s * factor) + "/s)",
            [&](OffloadMachine& m) { m.link_bytes_per_s *= factor; });
      if (machine_.storage_threads > 0)
        add(std::string("with ") + word + " the storage threads (" +
                rate_text(machine_.storage_threads * factor) + ")",
            [&](OffloadMachine& m) { m.storage_threads *= factor; });
      add(std::string("with ") + word + " the trainer's threads (" +
              rate_text(machine_.compute_threads * factor) + ")",
          [&](OffloadMachine& m) { m.compute_threads *= factor; });
    }
    return found;
  }

 private:
  const OffloadColumns& columns_;
  const double samples_, epochs_;
  const OffloadMachine machine_;
};

}  // namespace

Plan make_offload_plan(const Profile& profile, const PlanOptions& options) {
  const OffloadColumns columns(profile);
  Plan plan =
      begun_plan(profile, options, columns.weight * static_cast<double>(profile.ids.size()));
  const OffloadMachine machine = machine_of(plan, profile);
  plan.options.storage_threads = machine.storage_threads;
  const OffloadPlanner planner(columns, plan, machine);
  plan.choice = planner.strategy(*offload_policy(options.policy));
  std::multimap<std::pair<double, double>, Strategy> others;  // the shortest first, then by bytes
  for (const OffloadPolicy policy : kOffloadPolicies) {
    if (policy == plan.choice.offload->policy) continue;
    Strategy other = planner.strategy(policy);
    const std::pair key{other.total_s, other.offload->bytes};
    others.emplace(key, std::move(other));
  }
  for (auto& other : others) plan.alternatives.push_back(std::move(other.second));
  plan.offload = planner.plan();
  plan.resources = planner.resources(plan.choice);
  plan.what_if = planner.what_if(plan.choice);
  const bool fresh = !profile.cuts.back().stable;
  put_offload_into_words(plan, {.raw = *planner.strategy(OffloadPolicy::kNoOff).offload,
                                .bad_samples = profile.bad.size(),
                                .excerpts_known = !profile.excerpt.bytes.empty(),
                                .fresh_known = !fresh || !profile.cuts.back().finish_s.empty(),
                                .profile_threads = profile.threads});
  return plan;
}

}  // namespace cutwater
