// SPDX-License-Identifier: Apache-2.0
#include "remote/steering.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "core/units.h"
#include "cutwater/remote.h"

namespace cutwater::remote {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr std::size_t kRemembered = 512;  // samples that a decision is made from
constexpr std::int64_t kFirst = 24;       // samples before the first decision…
constexpr std::int64_t kBetween = 192;    // …and between later ones, at most
constexpr double kTried = 4;  // samples that came in a way, before it is known what they take here
// An answer that waited longer than this for the wire shows that the wire was busy.
constexpr double kBacklogged = 2e-3;
constexpr double kEnough = 0.05;  // seconds of a busy wire that tell its rate
// Threads that rest no more than this share of the time have no time.
constexpr double kNoIdleTime = 0.1;
// What a link is taken for that was never seen busy: none that bounds a job, so that bytes are
// saved as far as the server's spare time goes, and what kForBytes gives.
constexpr double kFastLink = 1e11;
// Of the last so many decisions, what the fastest saw of the consumer counts: who has to share its
// cores, perhaps with the server, looks slower than it is, and would ask for the more work there.
constexpr std::size_t kPaces = 8;

// What a sample may take longer, as a share, where that saves bytes: others on the link have a use
// for them, and estimates are no better than that. More where another policy would send fewer.
constexpr double kForBytes = 0.05, kForFewestBytes = 0.1;
// No byte takes a server longer to send.
constexpr double kSlowestSending = 1e-7;

constexpr std::string_view kPolicies[] = {"auto",    "sophon",     "none", "no-off",
                                          "all-off", "resize-off", "paper"};

// Bytes of the fields at a cut where all samples have as many; 0: they differ.
double fixed_bytes(const Pipeline& pipeline, Cut cut) {
  double bytes = 0;
  for (const auto& [name, spec] : pipeline.fields_at(cut)) {
    if (!spec.shape.known()) return 0;
    bytes += static_cast<double>(spec.bytes());
  }
  return bytes;
}

// A codec that is worth trying on a cut besides none: the one that knows most about its tensors.
Codec codec_for(const Pipeline& pipeline, Cut cut) {
  Codec best;
  std::size_t most = 0;
  for (const auto& [name, spec] : pipeline.fields_at(cut)) {
    const std::size_t bytes = spec.shape.known() ? spec.bytes() : SIZE_MAX;
    if (bytes <= most || spec.shape.rank() == 0) continue;
    most = bytes;
    best = codecs_for(spec).back();
  }
  if (best.compressor == Compressor::kZstd) best.level = 1;
  return best;
}

// The one without a codec at the cut of one that has one.
std::optional<std::size_t> plain_way(const Ways& ways, std::size_t way) {
  if (ways.variants[way].codec.is_none()) return std::nullopt;
  const auto found = std::ranges::find_if(ways.variants, [&](const OffloadVariant& other) {
    return other.codec.is_none() && !other.excerpt && other.cut == ways.variants[way].cut;
  });
  if (found == ways.variants.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ways.variants.begin());
}

double middle(std::deque<double> values) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, at);
  return *at;
}

std::optional<std::size_t> excerpt_way(const Ways& ways) {
  const auto found = std::ranges::find_if(ways.variants, &OffloadVariant::excerpt);
  if (found == ways.variants.end()) return std::nullopt;
  return static_cast<std::size_t>(found - ways.variants.begin());
}

}  // namespace

Ways ways_of(std::string_view policy, const Pipeline& pipeline, Cut from) {
  check_offload_policy(policy);
  Ways ways;
  const auto add = [&](Cut cut, const Codec& codec, bool excerpt) {
    ways.variants.push_back({cut, pipeline.cut_name(cut), codec, excerpt});
  };
  add(from, {}, false);
  const Cut last = pipeline.last_cut();
  if (policy == "none" || policy == "no-off" || last == from) return ways;
  if (policy == "all-off") {
    add(last, {}, false);
    ways.always = true;
    return ways;
  }
  if (policy == "resize-off") {
    for (Cut cut = from + 1; cut <= last && ways.variants.size() < 2; ++cut)
      if (fixed_bytes(pipeline, cut) > 0) add(cut, {}, false);
    ways.always = ways.variants.size() > 1;
    return ways;
  }
  ways.priced = true;
  const bool ours = policy != "paper";
  if (ours && from == 0) add(0, {}, true);
  // A cut whose samples are all of one size is of no use behind another where they are no larger.
  double least = kNever;
  for (Cut cut = from + 1; cut <= last; ++cut) {
    const double fixed = fixed_bytes(pipeline, cut);
    if (fixed > 0 && fixed >= least) continue;
    if (fixed > 0) least = fixed;
    add(cut, {}, false);
    if (ours)
      if (const Codec codec = codec_for(pipeline, cut); !codec.is_none()) add(cut, codec, false);
  }
  return ways;
}

void Ways::write_to(wire::pb::Begin& begin) const {
  for (const OffloadVariant& variant : variants) {
    wire::pb::Way* const way = begin.add_ways();
    way->set_cut(variant.cut);
    way->set_codec(variant.codec.is_none() ? "" : cutwater::to_string(variant.codec));
    way->set_excerpt(variant.excerpt);
  }
  begin.set_always(always);
}

Steering::Steering(Ways ways, const Machine& machine)
    : ways_(std::move(ways)), excerpt_(excerpt_way(ways_)), machine_(machine), decide_at_(kFirst) {
  if (!ways_.priced) {
    decision_ = ways_.always ? "every sample is sent as " + to_string(ways_.variants.back())
                             : "samples are sent as stored";
    return;
  }
  // Until samples have told, a link that was named is taken for what bounds the job: it mostly
  // does.
  price_ = machine_.link_bytes_per_s ? 0 : kNever;
  decision_ = "nothing is known yet";
}

void Steering::learn_link(double queued_s, std::size_t bytes, double seconds) {
  if (queued_s <= kBacklogged) return;
  was_backlogged_ = true;
  constexpr double kFade = 0.95;
  lately_.bytes = kFade * lately_.bytes + static_cast<double>(bytes);
  lately_.seconds = kFade * lately_.seconds + seconds;
}

void Steering::learn(const wire::pb::Reply& reply) {
  const auto ways = static_cast<int>(ways_.variants.size());
  if (!ways_.priced || reply.way_bytes_size() != ways || reply.way_s_size() != ways) return;
  std::vector<OffloadOption> row;
  for (int way = 0; way < ways; ++way) {
    const double weighs = reply.way_bytes(way), costs = reply.way_s(way);
    row.push_back(std::isfinite(weighs) && std::isfinite(costs) && weighs >= 0 && costs >= 0
                      ? OffloadOption{weighs, costs, 0}
                      : kNoOption);
  }
  if (!std::isfinite(row[0].bytes)) return;
  row[0].storage_s = 0;
  rows_.push_back(std::move(row));
  constexpr double kNewest = 0.05;  // several servers take turns
  const double sending_s = reply.send_s_per_byte();
  sending_s_ += kNewest * ((sending_s > 0 ? std::min(sending_s, kSlowestSending) : 0) - sending_s_);
  if (rows_.size() > kRemembered) rows_.pop_front();
  ran_less_ += reply.ran_less() ? 1 : 0;
  if (++learned_ >= decide_at_) decide();
}

// Of the trainer's threads' time, since the last decision; nothing: it is not known.
std::optional<double> Steering::trainer_idle() const {
  const double elapsed = progress_.seconds - before_.seconds;
  const double busy = progress_.busy - before_.busy;
  if (elapsed <= 0 || busy < 0) return std::nullopt;  // what they waited before was told only now
  return std::clamp(1 - busy / (elapsed * machine_.compute_threads), 0.0, 1.0);
}

// What waits for the wire while the trainer's threads do not may wait for the trainer, which has no
// time to receive it: the wire then is at least as fast as that.
//
// A link that was to be busy, or to be spared by all that a server can, and that no answer waited
// for may have become faster, and only more bytes can show how much: it is believed to be a little
// faster each time, until they wait again. Where it has time to spare, what was measured holds.
void Steering::look_at_link() {
  constexpr double kMore = 1.2;
  if (trainer_idle().value_or(1) <= kNoIdleTime) {
    was_backlogged_ = false;
    if (lately_.rate() < link_grown_ * link_.rate())
      lately_ = {};
    else if (lately_.seconds >= kEnough)
      link_grown_ = 1;
  }
  if (lately_.seconds >= kEnough) link_ = std::exchange(lately_, {});
  if (was_backlogged_)
    link_grown_ = 1;
  else if (network_is_to_bind_ || (server_is_to_bind_ && network_may_bind_))
    link_grown_ = std::min(kMore * link_grown_, kFastLink);
  was_backlogged_ = false;
}

// Where the server was to be the busiest, the trainer's idle time is its: as a share of all.
double Steering::waited_for_server() const {
  constexpr double kMostly = 0.5;
  const double elapsed = progress_.seconds - before_.seconds;
  const double consumer_waited = progress_.consumer_waited - before_.consumer_waited;
  if (!server_is_to_bind_ || was_backlogged_ || elapsed <= 0 || consumer_waited < kMostly * elapsed)
    return 0;
  const double idle = trainer_idle().value_or(0);
  return idle > kNoIdleTime ? idle : 0;
}

// A server has other work: it reads, it sends, and it has other trainers. What it leaves undone,
// and that it is waited for, show that less of its time is left than it has threads; that nothing
// is, that there may be more.
void Steering::look_at_server() {
  const auto left_undone = static_cast<double>(ran_less_) /
                           static_cast<double>(std::max<std::int64_t>(learned_ - decided_, 1));
  decided_ = learned_;
  ran_less_ = 0;
  constexpr double kTolerated = 0.02, kMore = 1.1, kLeast = 0.05;
  const double missing = std::max(left_undone, waited_for_server());
  storage_left_ *= missing > kTolerated ? 1 - missing / 2 : kMore;
  storage_left_ = std::clamp(storage_left_, kLeast, kMostOfServer);
}

// As stored, only what an excerpt would hold is decoded.
double Steering::needed_bytes(const std::vector<OffloadOption>& row) const {
  if (!excerpt_ || !std::isfinite(row[*excerpt_].bytes)) return row[0].bytes;
  return std::min(row[0].bytes, row[*excerpt_].bytes);
}

double Steering::work_bytes(const wire::pb::Reply& reply, std::size_t bytes) const {
  const auto all = static_cast<double>(bytes);
  if (reply.way() != 0 || !excerpt_ || static_cast<int>(*excerpt_) >= reply.way_bytes_size())
    return all;
  const double needed = reply.way_bytes(static_cast<int>(*excerpt_));
  return std::isfinite(needed) && needed > 0 ? std::min(all, needed) : all;
}

std::optional<double> Steering::link_rate() const {
  if (machine_.link_bytes_per_s) return machine_.link_bytes_per_s;
  if (link_.seconds <= 0) return std::nullopt;
  return std::min(link_grown_ * link_.rate(), kFastLink);
}

// What a sample takes of the trainer's threads besides the work on its bytes, whichever way it
// came: its place in a batch, waking up, whoever else is on their cores. Seconds on the clock,
// since CPU time does not show the latter; but threads that wait for each other's cores count as
// the cores.
void Steering::look_at_trainer() {
  const double samples = made_.samples - made_before_.samples;
  const double elapsed = progress_.seconds - before_.seconds;
  if (samples <= 0 || elapsed <= 0) return;
  const double busy =
      std::min(progress_.busy - before_.busy, elapsed * machine_.compute_threads) / samples;
  const double worked = (made_.seconds - made_before_.seconds) / samples;
  const double received =
      machine_.receives_beside ? receiving_s_ * (made_.bytes - made_before_.bytes) / samples : 0;
  besides_s_.push_back(std::max(busy - worked - received, 0.0));
  if (besides_s_.size() > kPaces) besides_s_.pop_front();
  made_before_ = made_;
}

// How fast the consumer has been since the last decision.
void Steering::look_back() {
  const auto samples = static_cast<double>(progress_.samples - before_.samples);
  if (samples <= 0) return;
  const double busy_s =
      (progress_.seconds - before_.seconds) - (progress_.consumer_waited - before_.consumer_waited);
  consumer_s_.push_back(std::max(busy_s, 0.0) / samples);
  if (consumer_s_.size() > kPaces) consumer_s_.pop_front();
  before_ = progress_;
}

// What the trainer has yet to do to a sample, for each byte of it that comes, by way; as stored,
// for each that is needed. Of what has hardly ever come: as much as for one as stored where it is
// such a one, though a part; nothing where it is further on, so that it is tried where that would
// help.
std::vector<double> Steering::seconds_per_byte() const {
  std::vector<double> found(ways_.variants.size(), 0.0);
  const auto known = [this](std::size_t way) {
    return way < work_.size() && work_[way].samples >= kTried && work_[way].bytes > 0 &&
           std::isfinite(work_[way].seconds / work_[way].bytes);
  };
  for (std::size_t way = 0; way < found.size(); ++way)
    if (known(way)) found[way] = work_[way].seconds / work_[way].bytes;
  // What comes with a codec has to be decoded, and is then what comes without: that takes no more,
  // whatever the few that came so have told.
  for (std::size_t way = 1; way < found.size(); ++way) {
    const std::optional<std::size_t> plain = plain_way(ways_, way);
    if (plain && known(way) && known(*plain))
      found[*plain] = std::min(found[*plain], work_[way].seconds / work_[way].samples *
                                                  work_[*plain].samples / work_[*plain].bytes);
  }
  for (std::size_t way = 0; way < found.size(); ++way)
    if (!known(way) && ways_.variants[way].excerpt) found[way] = found[0];
  if (known(0)) return found;
  // Nothing comes as stored: excerpts tell as much.
  for (std::size_t way = 1; way < found.size(); ++way)
    if (known(way) && ways_.variants[way].excerpt) found[0] = found[way];
  return found;
}

void Steering::decide() {
  decide_at_ = learned_ + std::min(kBetween, learned_);
  look_at_server();
  look_at_trainer();
  look_at_link();
  look_back();
  const std::optional<double> link = link_rate();
  const double consumer_s = consumer_s_.empty() ? 0 : std::ranges::min(consumer_s_);
  const std::vector<double> per_byte = seconds_per_byte();
  const double receiving_s = machine_.receives_beside ? receiving_s_ : 0;
  const double besides_s = middle(besides_s_);

  std::vector<OffloadOption> values;
  double stored_bytes = 0, all_needed = 0;
  for (const std::vector<OffloadOption>& row : rows_) {
    stored_bytes += row[0].bytes;
    all_needed += needed_bytes(row);
  }
  const double needed_share = stored_bytes > 0 ? all_needed / stored_bytes : 1;
  for (const std::vector<OffloadOption>& row : rows_)
    for (std::size_t way = 0; way < row.size(); ++way) {
      values.push_back(row[way]);
      if (!std::isfinite(row[way].bytes)) continue;
      const double worked_on = way == 0 ? needed_bytes(row) : row[way].bytes;
      values.back().compute_s =
          besides_s + per_byte[way] * worked_on + receiving_s * row[way].bytes;
      values.back().storage_s += sending_s_ * row[way].bytes;
    }
  OffloadMachine machine;
  machine.link_bytes_per_s = link.value_or(kFastLink);
  machine.storage_threads = storage_left_ * storage_threads_;
  machine.compute_threads = machine_.compute_threads;
  if (consumer_s > 0) machine.consumer_samples_per_s = 1 / consumer_s;
  // What is stored is raw to the solver, at whatever cut it stands.
  std::vector<OffloadVariant> variants = ways_.variants;
  variants[0] = {};
  machine.for_bytes = kForBytes;
  machine.for_fewest_bytes = kForFewestBytes;
  const OffloadDecision made = solve_offload({values, variants}, machine);

  // In bytes as stored, of which this is all that one costs, on average.
  // Where no second of a server is to be had, what sending takes of it is all that a byte costs.
  const bool has_time = std::isfinite(made.prices.storage_s);
  const double sent = has_time ? made.prices.storage_s * sending_s_ : 0;
  const double byte = made.prices.byte + made.prices.compute_s * receiving_s + sent;
  const double needed = made.prices.compute_s * per_byte[0];
  const double stored = byte + needed * needed_share;
  worth_.clear();
  needed_worth_ = 0;
  if (stored > 0 && made.prices.compute_s > 0) {
    needed_worth_ = needed / stored;
    worth_.push_back(byte / stored);
    for (std::size_t way = 1; way < per_byte.size(); ++way)
      worth_.push_back((byte + made.prices.compute_s * per_byte[way]) / stored);
  }
  price_ = stored > 0 ? made.prices.storage_s / stored : kNever;
  if (!has_time && sending_s_ > 0) {
    price_ = 1 / sending_s_;
    worth_.clear();
    needed_worth_ = 0;
  }

  constexpr double kAsBusy = 0.9, kMayBeBusy = 0.5;
  network_may_bind_ = made.after.network_s >= kMayBeBusy * made.after.epoch_s();
  network_is_to_bind_ = made.after.network_s >= kAsBusy * made.after.epoch_s();
  server_is_to_bind_ =
      made.after.storage_s >= kAsBusy * made.after.epoch_s() && !network_is_to_bind_;
  const auto rows = static_cast<double>(rows_.size());
  const auto of_a_sample = [rows](const OffloadTimes& times) -> FetchReport::Times {
    return {times.consumer_s / rows, times.compute_s / rows, times.storage_s / rows,
            times.network_s / rows};
  };
  times_ = {of_a_sample(made.before), of_a_sample(made.after)};
  pace_s_ = made.after.epoch_s() / rows;
  char text[360];
  std::snprintf(text, sizeof text,
                "bound by %s as stored; a sample then takes %.2f ms of the link%s, %.2f of the "
                "trainer's CPU, %.2f of the consumer; sent so that %.2fx fewer bytes go over the "
                "link, for %.2f ms of the server's CPU each and %.2f of the trainer's",
                std::string(made.before.bound_by()).c_str(), 1e3 * times_->before.network_s,
                link ? "" : " (which was never busy)", 1e3 * times_->before.compute_s,
                1e3 * times_->before.consumer_s,
                made.bytes_before / std::max(made.bytes_after, 1.0), 1e3 * times_->after.storage_s,
                1e3 * times_->after.compute_s);
  decision_ = text;
}

}  // namespace cutwater::remote

namespace cutwater {

void check_offload_policy(std::string_view name) {
  if (std::ranges::find(remote::kPolicies, name) != std::end(remote::kPolicies)) return;
  std::string there;
  for (const std::string_view policy : remote::kPolicies)
    there += (there.empty() ? "" : ", ") + std::string(policy);
  throw Error(Code::kInvalidArgument, "there is no policy '" + std::string(name) +
                                          "' for samples of a server; there are " + there);
}

}  // namespace cutwater
