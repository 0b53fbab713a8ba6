// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_client.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>
#include <utility>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kFirstPause = 100ms, kLongestPause = 2s, kCensusPause = 1s;
constexpr std::chrono::milliseconds kCalm = 10s, kMostDistrust = 30s;
constexpr std::chrono::nanoseconds kPerByte = 100ns;  // who sends 10 MB/s is not slow
constexpr int kMostHops = 4;
constexpr std::uint16_t kNobody = 0xffff;

// The server is there and can do nothing for us just now, whatever it is asked.
bool is_out_of_order(const std::string& refusal) {
  constexpr std::string_view kWords[] = {"LOADING", "MASTERDOWN", "CLUSTERDOWN",
                                         "NOAUTH",  "WRONGPASS",  "ERR max number of clients"};
  return std::ranges::any_of(kWords, [&](std::string_view w) { return refusal.starts_with(w); });
}

}  // namespace

Client::Client(Url url, std::function<void()> wake)
    : url_(std::move(url)),
      wake_(std::move(wake)),
      tls_(url_.tls ? std::optional<Tls>(std::in_place, url_.ca) : std::nullopt) {
  MutexLock lock(mutex_);
  trouble_ = "not connected yet";
}

std::shared_ptr<const Client::Map> Client::map() const {
  MutexLock lock(mutex_);
  return map_;
}

bool Client::is_cluster() const {
  const auto known = map();
  return known != nullptr && known->is_cluster;
}

std::vector<std::shared_ptr<Node>> Client::nodes() const {
  const auto known = map();
  return known != nullptr ? known->nodes : std::vector<std::shared_ptr<Node>>();
}

std::shared_ptr<Node> Client::node_of(std::uint16_t slot) const {
  const auto known = map();
  if (known == nullptr || known->owner[slot] >= known->nodes.size()) return nullptr;
  return known->nodes[known->owner[slot]];
}

std::shared_ptr<Node> Client::node_at(const Endpoint& endpoint) const {
  for (const std::shared_ptr<Node>& node : nodes())
    if (node->endpoint() == endpoint) return node;
  return nullptr;
}

std::string Client::trouble() const {
  constexpr const char* kMeanwhile =
      "; meanwhile samples come from their source, and it is tried again by itself";
  for (const std::shared_ptr<Node>& node : nodes())
    if (const std::string why = node->trouble(); !why.empty())
      return "redis at " + to_string(node->endpoint()) + ": " + why + kMeanwhile;
  MutexLock lock(mutex_);
  return trouble_.empty() ? std::string() : to_string(url_) + ": " + trouble_ + kMeanwhile;
}

std::string Client::why_unknown() const {
  MutexLock lock(mutex_);
  return to_string(url_) + ": " + trouble_;
}

// What the server refused; nothing: it could not be asked, and is down now.
std::optional<std::string> Client::try_node(Node& node, bool asking, const Work& work, For whom) {
  const Deadline deadline = Clock::now() + url_.timeout;
  std::unique_ptr<Connection> link = node.take_idle();
  // An idle connection may have been closed by the server in the meantime: then a new one is tried.
  for (bool is_new = link == nullptr;; is_new = true) {
    try {
      if (is_new) link = node.connect(url_, tls_ ? &*tls_ : nullptr, deadline);
      link->set_asking(asking);
      const Connection::Traffic before = link->traffic();
      const Clock::time_point start = Clock::now();
      std::string refusal = work(*link, deadline);
      const Connection::Traffic traffic{link->traffic().trips - before.trips,
                                        link->traffic().bytes - before.bytes};
      node.give_back(std::move(link));
      if (whom == For::kSample) judge(node, start, traffic);
      return refusal;
    } catch (const Error& error) {
      if (!is_new && error.code() == Code::kUnavailable) continue;
      node.set_down(error.failure().reason);
    } catch (const std::bad_alloc&) {
      return "out of memory here";
    }
    wake_();
    return std::nullopt;
  }
}

// A node that answers, but later than samples can be made without it, does harm: it is down.
void Client::judge(Node& node, Clock::time_point began, const Connection::Traffic& traffic) {
  const Clock::time_point ended = Clock::now();
  const Clock::duration taken = ended - began;
  const auto trips = static_cast<int>(std::max<std::size_t>(traffic.trips, 1));
  const bool is_slow =
      taken > trips * url_.slow + static_cast<std::int64_t>(traffic.bytes) * kPerByte;
  if (!node.add_trip(is_slow, began, ended)) return;
  std::array<char, 32> seconds{};
  (void)std::snprintf(seconds.data(), seconds.size(), "%.2g s",
                      std::chrono::duration<double>(taken).count() / trips);
  if (!node.was_ever_quick()) is_slow_again_ = true;
  is_slow_ = true;
  node.set_down("it answers in " + std::string(seconds.data()) +
                ", time and again; samples are not to wait that long (slow=" +
                std::to_string(url_.slow.count()) + "ms in the URL is the limit)");
  wake_();
}

Client::Outcome Client::run_at(const std::shared_ptr<Node>& node, const Work& work) {
  if (node == nullptr || node->is_down()) return {};
  std::optional<std::string> refusal = try_node(*node, false, work, For::kNobody);
  if (!refusal) return {};
  return {node, *std::move(refusal)};
}

Client::Outcome Client::run(std::uint16_t slot, const Work& work, For whom) {
  std::shared_ptr<Node> node = node_of(slot);
  bool asking = false;
  const Deadline end = Clock::now() + url_.timeout;
  for (int hop = 0; node != nullptr && !node->is_down() && hop < kMostHops; ++hop) {
    std::optional<std::string> refusal = try_node(*node, asking, work, whom);
    if (!refusal) return {};
    const std::optional<Redirect> redirect = redirect_in(*refusal, node->endpoint());
    if (!redirect) {
      if (is_out_of_order(*refusal)) {
        node->set_down(*refusal);
        wake_();
        return {};
      }
      return {std::move(node), *std::move(refusal)};
    }
    asking = redirect->is_ask;
    if (!asking && !is_outdated_.exchange(true)) wake_();
    if (Clock::now() > end) return {};
    node = node_at(redirect->to);  // a node that we do not know yet will be in the next map
  }
  return {};
}

Clock::time_point Client::mend() {
  const auto some_are_down = [&] {
    return std::ranges::any_of(nodes(), [](const auto& node) { return node->is_down(); });
  };
  // Who is slow can be reached at once, and must not be before its pause is over.
  if (is_slow_.exchange(false)) next_try_ = std::max(next_try_, Clock::now() + trust_pause_);
  if (const bool was_down = some_are_down();
      (was_down || is_outdated_) && Clock::now() >= next_try_) {
    // Who can be reached and fails again at once is slow, not gone: each time costs somebody a
    // timeout, so it is left alone for longer and longer.
    const bool failed_again = was_down && (is_slow_again_.exchange(false) ||
                                           Clock::now() < reached_ + 2 * trust_pause_ + kCalm);
    if (reach()) {
      trust_pause_ = failed_again
                         ? std::min<std::chrono::milliseconds>(2 * trust_pause_, kMostDistrust)
                         : kFirstPause;
      pause_ = 0ms;
      reached_ = Clock::now();
      next_try_ = reached_ + trust_pause_;
    } else {
      pause_ = std::clamp<std::chrono::milliseconds>(2 * pause_, kFirstPause, kLongestPause);
      next_try_ = Clock::now() + pause_;
    }
  }
  if (Clock::now() >= next_census_) {
    take_census();
    next_census_ = Clock::now() + kCensusPause;
  }
  return some_are_down() || is_outdated_ ? std::min(next_try_, next_census_) : next_census_;
}

// False: some node, or all, could not be reached.
bool Client::reach() {
  is_outdated_ = false;
  std::string why;
  const std::shared_ptr<const Map> found = discover(why);
  {
    MutexLock lock(mutex_);
    trouble_ = found != nullptr ? std::string() : why;
    if (found != nullptr) map_ = found;
  }
  if (found == nullptr) {
    is_outdated_ = true;
    return false;
  }
  bool all = true;
  for (const std::shared_ptr<Node>& node : found->nodes) {
    if (!node->is_down() || stopping_) continue;
    try {
      auto link = node->connect(url_, tls_ ? &*tls_ : nullptr, Clock::now() + url_.timeout);
      node->set_census(census_of(*link, Clock::now() + url_.timeout));
      node->set_up();
      node->give_back(std::move(link));
    } catch (const Error& error) {
      node->set_down(error.failure().reason);
      all = false;
    }
  }
  return all;
}

// Whoever answers first tells the map: the nodes that we know, those that are up before the others,
// and the one that the user named.
std::shared_ptr<const Client::Map> Client::discover(std::string& why) {
  std::vector<std::shared_ptr<Node>> known = nodes();
  std::stable_partition(known.begin(), known.end(),
                        [](const auto& node) { return !node->is_down(); });
  std::vector<Endpoint> endpoints;
  for (const std::shared_ptr<Node>& node : known) endpoints.push_back(node->endpoint());
  if (std::ranges::find(endpoints, url_.endpoint) == endpoints.end())
    endpoints.push_back(url_.endpoint);
  for (const Endpoint& endpoint : endpoints) {
    if (stopping_) break;
    try {
      return map_by(endpoint);
    } catch (const Error& error) {
      why = error.failure().reason;
      if (const auto node = node_at(endpoint)) node->set_down(why);
    }
  }
  return nullptr;
}

std::shared_ptr<const Client::Map> Client::map_by(const Endpoint& endpoint) {
  const auto node_for = [&](const Endpoint& at) {
    // One that is down may have come back under another address.
    std::shared_ptr<Node> node = node_at(at);
    return node != nullptr && !node->is_down()
               ? node
               : std::make_shared<Node>(at, addresses_of(at, false));
  };
  const std::shared_ptr<Node> asked = node_for(endpoint);
  const Deadline deadline = Clock::now() + url_.timeout;
  auto link = asked->connect(url_, tls_ ? &*tls_ : nullptr, deadline);
  auto map = std::make_shared<Map>();
  map->is_cluster =
      url_.cluster ||
      link->ask({"INFO", "cluster"}, deadline).text.find("cluster_enabled:1") != std::string::npos;
  if (!map->is_cluster) {
    map->nodes = {asked};
    map->owner.fill(0);
  } else {
    const Reply reply = link->ask({"CLUSTER", "SLOTS"}, deadline);
    const auto ranges = slots_in(reply, endpoint);
    if (!ranges || ranges->empty())
      throw Error(Code::kUnavailable, "it does not tell which node has what (CLUSTER SLOTS): " +
                                          (reply.is_error() ? reply.text : "no slots"));
    map->owner.fill(kNobody);
    for (const SlotRange& range : *ranges) {
      auto place =
          std::ranges::find(map->nodes, range.master, [](auto& n) { return n->endpoint(); });
      if (place == map->nodes.end()) {
        map->nodes.push_back(range.master == endpoint ? asked : node_for(range.master));
        place = std::prev(map->nodes.end());
      }
      const auto index = static_cast<std::uint16_t>(place - map->nodes.begin());
      std::fill(map->owner.begin() + range.first, map->owner.begin() + range.last + 1, index);
    }
  }
  asked->set_census(census_of(*link, deadline));
  asked->set_up();
  asked->give_back(std::move(link));
  return map;
}

void Client::take_census() {
  for (const std::shared_ptr<Node>& node : nodes())
    if (!stopping_)
      (void)run_at(node, [&](Connection& link, Deadline deadline) {
        node->set_census(census_of(link, deadline));
        return std::string();
      });
}

}  // namespace cutwater::redis
