// SPDX-License-Identifier: Apache-2.0
// solve_offload: walks by marginal efficiency, and a proof of how good the best of them is.
#include "cutwater/offload.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "cutwater/error.h"
#include "cutwater/param.h"
#include "plan/offload_policies.h"
#include "plan/offload_steps.h"

namespace cutwater {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kMostOptions = 256;
constexpr double kEqual = 1e-9;  // what differs by less differs by rounding
// The price of the trainer's seconds is sought on so many samples at most, evenly spread.
constexpr std::size_t kSearchSamples = 8192;
constexpr int kSearchSteps = 28;
constexpr double kSearchRange = 1e9;  // around the bytes of an average second

// Than another policy's bytes, once it is seen to: estimates are no better than that.
constexpr double kClearlyFewer = 0.97;

bool differ(double a, double b) { return std::abs(a - b) > kEqual * std::max(a, b); }

struct Outcome {
  OffloadTimes times;
  double bytes = 0;  // 0 where the link is no bound: they do not count
};

// Shorter, or as short with less on the wire; storage counts last.
bool better(const Outcome& a, const Outcome& b) {
  const double a_s = a.times.epoch_s(), b_s = b.times.epoch_s();
  if (differ(a_s, b_s)) return a_s < b_s;
  if (differ(a.bytes, b.bytes)) return a.bytes < b.bytes;
  return differ(a.times.storage_s, b.times.storage_s) && a.times.storage_s < b.times.storage_s;
}

bool compute_is_longest(const OffloadTimes& t) {
  return t.compute_s > std::max({t.consumer_s, t.storage_s, t.network_s});
}

// A way along the steps, up to its best point.
struct Walk {
  std::vector<std::uint8_t> choice;  // of every stride-th sample
  Outcome outcome;
  OffloadPrices prices;
  double next_price = 0;        // of the first step that was not taken
  bool storage_ended = false;   // it went on until storage had no time for more
  bool compute_bounds = false;  // the trainer is the longest there, or is one step before or behind
};

class Solver {
 public:
  Solver(const OffloadTable& table, const OffloadModel& model) : table_(table), model_(model) {}

  // Fewer bytes, of an epoch that is no more than so much longer than the shortest, as a share; up
  // to `most` where another policy would send fewer.
  OffloadDecision solve_for_bytes(double longer, double most) const {
    constexpr int kSteps = 3;  // from the one to the other
    OffloadDecision best = solve();
    const Outcome shortest = outcome(model_.sums(best.choice));
    const double others = others_bytes((1 + most) * shortest.times.epoch_s());
    std::optional<Walk> walk;
    double fewest = shortest.bytes;
    for (int step = 0; step <= (most > longer ? kSteps : 0); ++step) {
      if (step > 0 && fewest <= (step > 1 ? kClearlyFewer : 1) * others) break;
      const double share = longer + (most - longer) * step / kSteps;
      std::optional<Walk> found = thrifty((1 + share) * shortest.times.epoch_s());
      if (!found || found->outcome.bytes >= fewest) continue;
      fewest = found->outcome.bytes;
      walk = std::move(found);
    }
    if (!walk) return best;
    best.made_by = OffloadPolicy::kSophon;
    best.choice = walk->choice;
    best.prices = walk->prices;
    return best;
  }

  OffloadDecision solve() const {
    const Searched searched = model_.link_bounds() ? search() : Searched{{0, 1}, {0, 0, 1}};
    Walk walk = walked_by_all(searched.worth);
    OffloadDecision best;
    best.least_epoch_s = model_.least_epoch_s(searched.proof);
    std::vector<OffloadPrices> prices = proofs(walk);
    prices.insert(prices.end(), {{1, 0, 0}, {0, 0, 1}});
    for (const OffloadPrices& one : prices)
      best.least_epoch_s = std::max(best.least_epoch_s, model_.least_epoch_s(one));

    best.prices = {walk.prices.byte, kNever, walk.prices.compute_s};
    best.choice.assign(table_.samples(), 0);
    Outcome found = outcome(model_.sums(best.choice));
    const auto offer = [&](OffloadPolicy by, std::vector<std::uint8_t> choice) {
      const Outcome offered = outcome(model_.sums(choice));
      if (!better(offered, found)) return;
      found = offered;
      best.made_by = by;
      best.choice = std::move(choice);
    };
    offer(OffloadPolicy::kSophon, std::move(walk.choice));
    if (best.made_by == OffloadPolicy::kSophon) best.prices = walk.prices;
    for (const OffloadPolicy policy :
         {OffloadPolicy::kAllOff, OffloadPolicy::kResizeOff, OffloadPolicy::kPaper})
      offer(policy, choice_by_rule(policy, table_, model_));
    return best;
  }

 private:
  Outcome outcome(const OffloadSums& sums, double times_weight = 1) const {
    return {model_.times(sums, times_weight), model_.link_bounds() ? sums.bytes : 0};
  }

  // The fewest that another policy sends, however long it takes. The paper's goes by the link,
  // which may be slower than it is taken for: as far as storage has so much time, then.
  double others_bytes(double storage_s) const {
    double fewest = model_.sums(paper_on_a_slow_link(table_, model_, storage_s)).bytes;
    for (const OffloadPolicy policy : kOffloadPolicies)
      if (policy != OffloadPolicy::kSophon)
        fewest = std::min(fewest, model_.sums(choice_by_rule(policy, table_, model_)).bytes);
    return fewest;
  }

  Walk walked(const OffloadWorth& worth, std::size_t stride) const {
    Walk walk;
    walk.prices = {worth.byte, kNever, worth.compute_s};
    const std::vector<OffloadStep> steps = offload_steps(table_, worth, stride, walk.choice);
    OffloadSums sums;
    for (std::size_t k = 0; k < walk.choice.size(); ++k)
      sums.add(table_.row(k * stride)[walk.choice[k]]);
    if (follow(steps, sums, stride, walk) == steps.size()) walk.prices.storage_s = 0;
    return walk;
  }

  // walked() by all samples. Of many, some tell about where it ends, and only the steps around that
  // have to be brought into order: those before are taken, those behind are not.
  Walk walked_by_all(const OffloadWorth& worth) const {
    if (const std::size_t stride = search_stride(); stride > 1) {
      const double price = walked(worth, stride).prices.storage_s;
      if (std::optional<Walk> walk = walked_around(worth, price)) return *std::move(walk);
    }
    return walked(worth, 1);
  }

  // Nothing: it does not end around there.
  std::optional<Walk> walked_around(const OffloadWorth& worth, double price) const {
    constexpr double kAround = 1.3;
    if (!(price > 0 && price < kNever)) return std::nullopt;
    Walk walk;
    walk.prices = {worth.byte, kNever, worth.compute_s};
    std::vector<OffloadStep> steps;
    OffloadSums sums;
    for (std::size_t i = 0; i < table_.samples(); ++i) {
      const std::span<const OffloadOption> row = table_.row(i);
      std::optional<std::size_t> taken;
      std::uint8_t place = 0;
      const auto take = [&](double efficiency, std::size_t from, std::size_t to) {
        if (efficiency > kAround * price) {
          taken = to;
        } else if (efficiency * kAround >= price) {
          steps.push_back({efficiency, static_cast<std::uint32_t>(i),
                           static_cast<std::uint8_t>(from), static_cast<std::uint8_t>(to),
                           place++});
        } else {
          return false;
        }
        return true;
      };
      const std::size_t first = for_each_step(row, worth, take);
      walk.choice.push_back(static_cast<std::uint8_t>(taken.value_or(first)));
      sums.add(row[walk.choice.back()]);
    }
    std::sort(steps.begin(), steps.end(), most_efficient_first);
    if (follow(steps, sums, 1, walk) == 0 || !walk.storage_ended) return std::nullopt;
    return walk;
  }

  // Goes along the steps, from where the sums are, up to the best point. Returns how many it takes.
  std::size_t follow(const std::vector<OffloadStep>& steps, OffloadSums sums, std::size_t stride,
                     Walk& walk) const {
    const double times_weight =
        static_cast<double>(table_.samples()) / static_cast<double>(walk.choice.size());
    Outcome best = outcome(sums, times_weight);
    double shortest = best.times.epoch_s();
    bool longest_before = compute_is_longest(best.times);
    walk.compute_bounds = longest_before;
    std::size_t taken = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const std::span<const OffloadOption> row = table_.row(steps[k].sample);
      sums.move(row[steps[k].from], row[steps[k].to]);
      const Outcome now = outcome(sums, times_weight);
      const bool longest = compute_is_longest(now.times), around = longest || longest_before;
      longest_before = longest;
      if (k == taken && longest) walk.compute_bounds = true;
      const double limit = shortest * (1 + kEqual);
      if (now.times.storage_s > limit) {  // and so it is from here on
        walk.storage_ended = true;
        break;
      }
      if (now.times.epoch_s() > limit || !better(now, best)) continue;
      best = now;
      shortest = std::min(shortest, now.times.epoch_s());
      taken = k + 1;
      walk.compute_bounds = around;
    }
    walk.outcome = best;
    for (std::size_t k = 0; k < taken; ++k) walk.choice[steps[k].sample / stride] = steps[k].to;
    if (taken > 0) walk.prices.storage_s = steps[taken - 1].efficiency;
    if (taken < steps.size()) walk.next_price = steps[taken].efficiency;
    return taken;
  }

  std::size_t search_stride() const {
    return (table_.samples() + kSearchSamples - 1) / kSearchSamples;
  }

  // All steps that storage has time for.
  Walk filled(const OffloadWorth& worth, double limit) const {
    Walk walk;
    walk.prices = {worth.byte, kNever, worth.compute_s};
    const std::vector<OffloadStep> steps = offload_steps(table_, worth, 1, walk.choice);
    OffloadSums sums = model_.sums(walk.choice);
    std::size_t taken = 0;
    for (; taken < steps.size(); ++taken) {
      const OffloadStep& step = steps[taken];
      const std::span<const OffloadOption> row = table_.row(step.sample);
      OffloadSums next = sums;
      next.move(row[step.from], row[step.to]);
      if (model_.times(next).storage_s > limit) break;
      sums = next;
      walk.choice[step.sample] = step.to;
      walk.prices.storage_s = step.efficiency;
    }
    if (taken == steps.size()) walk.prices.storage_s = 0;
    walk.outcome = outcome(sums);
    return walk;
  }

  // The fewest bytes that were found within the limit; nothing: none were. The lower the price of
  // the trainer's seconds, the fewer they are, and the longer the trainer takes.
  std::optional<Walk> thrifty(double limit) const {
    const auto within = [limit](const Walk& walk) {
      return walk.outcome.times.epoch_s() <= limit * (1 + kEqual);
    };
    if (Walk walk = filled({1, 0}, limit); within(walk)) return walk;
    auto [low, high] = compute_prices();
    std::optional<Walk> best;
    for (int step = 0; step < kSearchSteps; ++step) {
      const double middle = (low + high) / 2;
      Walk walk = filled({1, std::exp(middle)}, limit);
      (walk.outcome.times.compute_s > limit ? low : high) = middle;
      if (within(walk) && (!best || walk.outcome.bytes < best->outcome.bytes))
        best = std::move(walk);
    }
    return best;
  }

  // Between which the price of the trainer's seconds is sought, as logarithms.
  std::pair<double, double> compute_prices() const {
    const OffloadSums raw = model_.sums(std::vector<std::uint8_t>(table_.samples()));
    const double scale = raw.bytes > 0 && raw.compute_s > 0 ? raw.bytes / raw.compute_s : 1;
    return {std::log(scale / kSearchRange), std::log(scale * kSearchRange)};
  }

  // Prices at which the dual optimum may lie: those of the steps where a walk ended.
  static std::vector<OffloadPrices> proofs(const Walk& walk) {
    std::vector<OffloadPrices> prices;
    for (const double storage_s : {walk.prices.storage_s, walk.next_price})
      if (storage_s < kNever)
        prices.push_back({walk.prices.byte, storage_s, walk.prices.compute_s});
    return prices;
  }

  struct Searched {
    OffloadWorth worth;   // gives the best walk
    OffloadPrices proof;  // gives the best bound
  };

  // What the trainer's seconds are worth, in bytes: nothing, unless the trainer bounds the epoch.
  // The lower the price, the longer the trainer takes; so the best is around the lowest by which it
  // does not bound, or very high where it always does.
  Searched search() const {
    const std::size_t stride = search_stride();
    auto [low, high] = compute_prices();
    Searched found{{1, 0}, {1, 0, 0}};
    Walk best = walked(found.worth, stride);
    if (!best.compute_bounds) return found;
    double least = 0;
    for (int step = 0; step < kSearchSteps; ++step) {
      const double middle = (low + high) / 2;
      const OffloadWorth worth{1, std::exp(middle)};
      Walk tried = walked(worth, stride);
      (tried.compute_bounds ? low : high) = middle;
      for (const OffloadPrices& prices : proofs(tried))
        if (const double proven = model_.least_epoch_s(prices, stride); proven > least) {
          least = proven;
          found.proof = prices;
        }
      if (better(best.outcome, tried.outcome)) continue;
      best = std::move(tried);
      found.worth = worth;
    }
    return found;
  }

  const OffloadTable& table_;
  const OffloadModel& model_;
};

bool gives_for_bytes(const OffloadMachine& machine) {
  return machine.for_bytes > 0 || machine.for_fewest_bytes > 0;
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kInvalidArgument, "offload: " + what);
}

bool is_measure(double value) { return std::isfinite(value) && value >= 0; }

void check(const OffloadTable& table, const OffloadMachine& machine, double weight) {
  const std::size_t options = table.variants.size();
  if (options == 0 || options > kMostOptions)
    refuse("a sample has 1..256 options, got " + std::to_string(options));
  if (!table.variants[0].is_raw()) refuse("the first option must be raw");
  if (table.values.empty() || table.values.size() % options != 0)
    refuse("the table has " + std::to_string(table.values.size()) +
           " values, which are no rows of " + std::to_string(options));
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const OffloadOption& o = table.values[i];
    const bool raw = i % options == 0;
    if ((exists(o) || raw) &&
        !(is_measure(o.bytes) && is_measure(o.storage_s) && is_measure(o.compute_s)))
      refuse("sample " + std::to_string(i / options) + " has no sound figures for option '" +
             to_string(table.variants[i % options]) + "'");
  }
  const auto need = [](bool sound, const char* what, double value) {
    if (!sound) refuse(std::string(what) + ", got " + to_text(Value{value}));
  };
  need(machine.link_bytes_per_s >= 0, "the link's bytes per second must not be negative",
       machine.link_bytes_per_s);
  need(is_measure(machine.storage_threads), "storage threads must not be negative",
       machine.storage_threads);
  need(is_measure(machine.compute_threads) && machine.compute_threads > 0,
       "the trainer's threads must be positive", machine.compute_threads);
  need(is_measure(machine.storage_speed) && machine.storage_speed > 0,
       "the speed of storage must be positive", machine.storage_speed);
  if (const auto& rate = machine.consumer_samples_per_s)
    need(is_measure(*rate) && *rate > 0, "the consumer's samples per second must be positive",
         *rate);
  for (const double longer : {machine.for_bytes, machine.for_fewest_bytes})
    need(is_measure(longer), "what an epoch may be longer must not be negative", longer);
  need(is_measure(weight) && weight > 0, "the weight of a row must be positive", weight);
}

}  // namespace

std::string to_string(const OffloadVariant& variant) {
  const std::string base = variant.excerpt    ? "excerpt"
                           : variant.cut == 0 ? "raw"
                                              : variant.cut_name;
  return variant.codec.is_none() ? base : base + ":" + to_string(variant.codec);
}

std::string_view name_of(OffloadPolicy policy) {
  constexpr std::array<std::string_view, kOffloadPolicies.size()> kNames = {
      "sophon", "no-off", "all-off", "resize-off", "paper"};
  return kNames[static_cast<std::size_t>(policy)];
}

double OffloadTimes::epoch_s() const {
  return std::max({consumer_s, compute_s, storage_s, network_s});
}

std::string_view OffloadTimes::bound_by() const {
  const double most = epoch_s();
  // A consumer that is always busy is not waiting for anything.
  if (consumer_s >= most) return "consumer";
  if (compute_s >= most) return "cpu";
  return storage_s >= most ? "storage_cpu" : "network";
}

double OffloadDecision::above_least() const {
  return least_epoch_s > 0 ? after.epoch_s() / least_epoch_s - 1 : 0;
}

OffloadDecision solve_offload(const OffloadTable& table, const OffloadMachine& machine,
                              double weight, OffloadPolicy policy) {
  check(table, machine, weight);
  const OffloadModel model(table, machine, weight);
  const std::vector<std::uint8_t> raw(table.samples());
  OffloadDecision decision;
  if (machine.storage_threads == 0)
    decision.choice = raw;
  else if (policy == OffloadPolicy::kSophon)
    decision =
        gives_for_bytes(machine) && model.link_bounds()
            ? Solver(table, model).solve_for_bytes(machine.for_bytes, machine.for_fewest_bytes)
            : Solver(table, model).solve();
  else
    decision.choice = choice_by_rule(policy, table, model);
  if (policy != OffloadPolicy::kSophon) decision.made_by = policy;
  const OffloadSums before = model.sums(raw), after = model.sums(decision.choice);
  decision.before = model.times(before);
  decision.after = model.times(after);
  decision.bytes_before = model.bytes(before);
  decision.bytes_after = model.bytes(after);
  if (machine.storage_threads == 0) decision.least_epoch_s = decision.after.epoch_s();
  return decision;
}

std::size_t best_option(std::span<const OffloadOption> row, const OffloadPrices& prices) {
  const OffloadWorth worth{prices.byte, prices.compute_s};
  std::size_t at = first_option(row, worth);
  for (NextOption next = next_option(row, worth, at);
       next.efficiency > 0 && next.efficiency >= prices.storage_s;
       next = next_option(row, worth, at))
    at = next.option;
  return at;
}

}  // namespace cutwater
