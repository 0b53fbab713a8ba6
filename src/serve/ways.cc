// SPDX-License-Identifier: Apache-2.0
#include "serve/ways.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace cutwater::serve {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUntriedSecondsPerByte = 2e-8;
constexpr std::int64_t kTrials = 2;           // of each way, at first
constexpr std::int64_t kMemory = 256;         // samples that an estimate is made of, at most
constexpr std::uint64_t kBetweenTrials = 64;  // samples, of ways that are known already

double fixed_bytes(const Pipeline& pipeline, Cut cut) {
  double bytes = 0;
  for (const auto& [name, spec] : pipeline.fields_at(cut)) {
    if (!spec.shape.known()) return 0;
    bytes += static_cast<double>(spec.bytes());
  }
  return bytes;
}

}  // namespace

WayBook::WayBook(const Pipeline& pipeline, std::vector<Way> ways)
    : ways_(std::move(ways)), frontier_(pipeline.frontier()), known_(ways_.size()) {
  const auto form = [&](Cut cut, const Codec& codec) -> std::optional<std::uint64_t> {
    if (cut <= ways_[0].cut || !pipeline.stable(cut)) return std::nullopt;
    return form_number(pipeline.fingerprint(cut), codec);
  };
  for (const Way& way : ways_) {
    fixed_bytes_.push_back(way.cut == 0 ? 0 : fixed_bytes(pipeline, way.cut));
    forms_.push_back(form(way.cut, way.codec));
  }
  frontier_form_ = form(frontier_, {});
  for (const Way& way : ways_) {
    const auto plain = std::ranges::find(ways_, Way{way.cut, {}, false});
    const bool other = !way.excerpt && way.cut > ways_[0].cut && !way.codec.is_none();
    plain_.push_back(other && plain != ways_.end()
                         ? std::optional(static_cast<std::size_t>(plain - ways_.begin()))
                         : std::nullopt);
  }
}

WayBook::Start WayBook::start(std::size_t way, const Facts& facts) const {
  if (facts.kept && is_fresh(ways_[way])) return kKept;
  return facts.learned ? kLearned : kNew;
}

// With this start, or the one most like it that is known.
const WayBook::Cost& WayBook::Known::cost(Start start) const {
  constexpr Start kLike[kStarts][kStarts] = {
      {kNew, kLearned, kKept}, {kLearned, kNew, kKept}, {kKept, kLearned, kNew}};
  for (const Start like : kLike[start])
    if (costs[like].tried > 0) return costs[like];
  return costs[start];
}

// What a way's weight goes with.
double WayBook::unit(std::size_t way, const Facts& facts) const {
  if (ways_[way].excerpt) return facts.stored_bytes * facts.excerpt_share;
  return fixed_bytes_[way] > 0 ? fixed_bytes_[way] : facts.stored_bytes;
}

void WayBook::estimate(const Facts& facts, std::vector<Offer>& offers) const {
  offers.assign(ways_.size(), {kNever, kNever});
  offers[0] = {facts.stored_bytes, 0};
  MutexLock lock(mutex_);
  for (std::size_t way = 1; way < ways_.size(); ++way) {
    const Known& known = known_[way];
    if (ways_[way].excerpt && facts.excerpt_share >= 1) continue;
    // Headers and draws tell what an excerpt weighs, and a pipeline what a cut of one size does,
    // before anything was tried.
    const bool told = ways_[way].excerpt || fixed_bytes_[way] > 0;
    if (known.tried > 0)
      offers[way] = {known.bytes * unit(way, facts),
                     known.cost(start(way, facts)).seconds * facts.stored_bytes};
    else if (told)
      offers[way] = {unit(way, facts), kUntriedSecondsPerByte * facts.stored_bytes};
  }
}

std::size_t WayBook::best(const std::vector<Offer>& offers, double price, const Worth& worth,
                          const Facts& facts) {
  std::size_t best = 0;
  double most = 0;
  const double stored = cost_of(worth, facts, 0, offers[0].bytes);
  for (std::size_t way = 1; way < offers.size(); ++way) {
    const double costs = cost_of(worth, facts, way, offers[way].bytes);
    const double gain = stored - costs - price * offers[way].seconds;
    if (gain > most) {
      most = gain;
      best = way;
    }
  }
  return best;
}

void WayBook::learn(std::size_t way, const Facts& facts, const Offer& was, double before_codec_s) {
  const double weight = unit(way, facts);
  if (weight <= 0 || facts.stored_bytes <= 0) return;
  MutexLock lock(mutex_);
  Known& known = known_[way];
  // The first one, which finds nothing warm, counts until there is a second.
  const auto learn = [](double& average, double value, std::int64_t& tried) {
    const std::int64_t counted = std::clamp<std::int64_t>(tried++, 1, kMemory);
    average += (value - average) / static_cast<double>(counted);
  };
  const auto learn_cost = [&](std::size_t of, double seconds) CUTWATER_REQUIRES(mutex_) {
    Cost& cost = known_[of].costs[start(of, facts)];
    learn(cost.seconds, seconds / facts.stored_bytes, cost.tried);
  };
  learn(known.bytes, was.bytes / weight, known.tried);
  learn_cost(way, was.seconds);
  const std::optional<std::size_t> plain = plain_[way];
  if (!plain || before_codec_s <= 0) return;
  if (fixed_bytes_[*plain] > 0) learn(known_[*plain].bytes, 1, known_[*plain].tried);
  if (known_[*plain].tried > 0) learn_cost(*plain, before_codec_s);
}

bool WayBook::is_guessed(std::size_t way, const Facts& facts) const {
  MutexLock lock(mutex_);
  return known_[way].costs[start(way, facts)].tried < kTrials;
}

std::optional<std::size_t> WayBook::to_try(const Facts& facts) {
  MutexLock lock(mutex_);
  if (known_.size() < 2) return std::nullopt;
  for (std::size_t way = 1; way < known_.size(); ++way) {
    Cost& cost = known_[way].costs[start(way, facts)];
    if (cost.tried >= kTrials || cost.on_trial >= kTrials) continue;
    ++cost.on_trial;
    return way;
  }
  if (++asked_ % kBetweenTrials != 0) return std::nullopt;
  // Some cannot be had of any sample: they are not tried more often for it.
  const auto tried = [&](std::size_t way) CUTWATER_REQUIRES(mutex_) {
    const Cost& cost = known_[way].costs[start(way, facts)];
    return std::max(cost.tried, cost.on_trial);
  };
  std::size_t least = 1;
  for (std::size_t way = 2; way < known_.size(); ++way)
    if (tried(way) < tried(least)) least = way;
  ++known_[least].costs[start(least, facts)].on_trial;
  return least;
}

}  // namespace cutwater::serve
