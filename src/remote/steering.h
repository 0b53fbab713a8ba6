// SPDX-License-Identifier: Apache-2.0
// Steering: what the servers are asked to do before they send. Which ways a policy allows, and,
// while the job runs, what a second of a server's CPU must save to be worth it: decided again and
// again from what samples turned out to weigh and cost, how fast the link is, and how the trainer
// gets on.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/offload.h"
#include "cutwater/pipeline.h"
#include "proto/messages.h"
#include "source/fetcher.h"

namespace cutwater::remote {

// What a policy allows.
struct Ways {
  std::vector<OffloadVariant> variants;  // the first: as stored
  bool always = false;                   // the last of them, whatever it weighs
  bool priced = false;                   // which of them, is a matter of price

  void write_to(wire::pb::Begin& begin) const;
};
// For samples that stand at `from`. Throws Error(kInvalidArgument) that lists the policies.
Ways ways_of(std::string_view policy, const Pipeline& pipeline, Cut from);

// What the trainer has spent on samples that came in one way; fading. The first ones take longer
// than all others, and tell nothing.
struct WayWork {
  double bytes = 0, seconds = 0, samples = 0;
  int first = 0;

  void add(double more_bytes, double more_seconds) {
    constexpr int kFirst = 2;
    if (more_bytes <= 0 || first++ < kFirst) return;
    first = kFirst;
    constexpr double kFade = 0.99;
    bytes = kFade * bytes + more_bytes;
    seconds = kFade * seconds + more_seconds;
    samples = kFade * samples + 1;
  }
};

// What the trainer has made of all samples so far.
struct Made {
  double bytes = 0, seconds = 0, samples = 0;
};

// One thread at a time.
class Steering {
 public:
  struct Machine {
    std::optional<double> link_bytes_per_s;  // unset: measured
    double compute_threads = 1;
    bool receives_beside = false;  // on the cores of the threads that finish samples
  };
  Steering(Ways ways, const Machine& machine);

  const Ways& ways() const { return ways_; }

  // That run ops, of all servers together: what is decided next goes by it.
  void set_storage_threads(double threads) { storage_threads_ = threads; }
  // A sample has come.
  void learn(const wire::pb::Reply& reply);
  // A message has come, so long after the one before it, having waited for the wire.
  void learn_link(double queued_s, std::size_t bytes, double seconds);
  // Seconds of a thread that a byte takes until it is here.
  void learn_receiving(double seconds_per_byte) { receiving_s_ = seconds_per_byte; }
  // Of the bytes that came for a sample, those that the trainer has work with.
  double work_bytes(const wire::pb::Reply& reply, std::size_t bytes) const;
  // REQUIRES: `work` has an entry for each way, or none.
  void note(const Fetcher::Progress& progress, const std::vector<WayWork>& work = {},
            const Made& made = {}) {
    progress_ = progress;
    work_ = work;
    made_ = made;
  }

  // Wanted.price, FetchRequest.worth and .needed_worth for what is asked next.
  double price() const { return price_; }
  const std::vector<double>& worth() const { return worth_; }
  double needed_worth() const { return needed_worth_; }
  // Seconds between samples, as decided; 0: not known yet.
  double pace_s() const { return pace_s_; }
  const std::string& decision() const { return decision_; }  // in words
  const std::optional<FetchReport::Decided>& times() const { return times_; }

 private:
  // What is asked of a server at most: it and a trainer that both are always busy wait for each
  // other in turn.
  static constexpr double kMostOfServer = 0.95;

  void decide();
  void look_back();
  void look_at_trainer();
  std::optional<double> trainer_idle() const;
  double waited_for_server() const;
  void look_at_link();
  void look_at_server();
  std::vector<double> seconds_per_byte() const;
  std::optional<double> link_rate() const;
  double needed_bytes(const std::vector<OffloadOption>& row) const;

  const Ways ways_;
  const std::optional<std::size_t> excerpt_;  // the number of that way
  const Machine machine_;
  std::deque<std::vector<OffloadOption>> rows_;  // of the last samples
  Fetcher::Progress progress_, before_;          // now, and when it was decided last
  std::vector<WayWork> work_;
  Made made_, made_before_;
  std::deque<double> besides_s_;   // of a sample in the trainer, as the last decisions saw it
  std::deque<double> consumer_s_;  // of a sample, as the last decisions saw it
  struct Wire {
    double bytes = 0, seconds = 0;
    double rate() const { return seconds > 0 ? bytes / seconds : 0; }
  };
  Wire lately_;                  // while answers waited for it; fading
  Wire link_;                    // what of that was last believed
  bool was_backlogged_ = false;  // since the last decision
  double link_grown_ = 1;        // what the link is believed to have become faster since then
  std::int64_t learned_ = 0, decided_ = 0, decide_at_ = 0, ran_less_ = 0;
  double storage_threads_ = 0;
  double storage_left_ = kMostOfServer;  // of them
  // As decided last. To bind: nearly as busy as whatever is busiest; the server only where the
  // network is not. May bind: at least half as busy.
  bool network_is_to_bind_ = false, server_is_to_bind_ = false, network_may_bind_ = false;
  double price_ = 0, pace_s_ = 0;
  std::vector<double> worth_;  // empty: the same in all ways
  double needed_worth_ = 0;
  double receiving_s_ = 0, sending_s_ = 0;  // a byte takes, of the trainer and of a server
  std::string decision_;
  std::optional<FetchReport::Decided> times_;
};

}  // namespace cutwater::remote
