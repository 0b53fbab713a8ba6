// SPDX-License-Identifier: Apache-2.0
// A Redis server, or the nodes of a cluster: work goes to the node that has a slot. A node that
// does not answer, or always takes long, is left alone until mend() has reached it again, so only
// those wait who ask it before that is noticed.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/redis_node.h"
#include "cache/redis_slots.h"
#include "core/mutex.h"

namespace cutwater::redis {

// Any thread, unless said otherwise.
class Client {
 public:
  // Connects to nobody. `wake` is called when mend() has something to do; it must not wait. Throws
  // Error(kInvalidArgument) for certificates that cannot be used.
  Client(Url url, std::function<void()> wake);

  const Url& url() const { return url_; }
  bool is_cluster() const;
  std::vector<std::shared_ptr<Node>> nodes() const;
  std::shared_ptr<Node> node_of(std::uint16_t slot) const;  // null: not known
  std::string trouble() const;
  std::string why_unknown() const;  // the nodes, where there are none

  // What the server refuses, in its words; empty: nothing. May be called again on another
  // connection, from its beginning.
  using Work = std::function<std::string(Connection& link, Deadline deadline)>;
  struct Outcome {
    std::shared_ptr<Node> node;  // that has answered; null: none did
    std::string refusal;
    bool is_done() const { return node != nullptr && refusal.empty(); }
  };
  // A sample waits for it, or nobody does: only the former shows whether a node is too slow.
  enum class For : std::uint8_t { kSample, kNobody };
  // Follows redirections; ends within two timeouts.
  Outcome run(std::uint16_t slot, const Work& work, For whom = For::kSample);
  // The same at one node, and nowhere else; for nobody.
  Outcome run_at(const std::shared_ptr<Node>& node, const Work& work);

  // Reaches what is out of reach, if it is time, and renews what is known of the nodes. Returns
  // when to come again. One thread.
  Clock::time_point mend();
  void stop() { stopping_ = true; }  // mend() ends with the connection that it is at

 private:
  struct Map {
    bool is_cluster = false;
    std::vector<std::shared_ptr<Node>> nodes;
    std::array<std::uint16_t, kSlots> owner;  // place in `nodes`; past its end: nobody
  };
  std::shared_ptr<const Map> map() const;
  std::optional<std::string> try_node(Node& node, bool asking, const Work& work, For whom);
  void judge(Node& node, Clock::time_point began, const Connection::Traffic& traffic);
  bool reach();
  std::shared_ptr<const Map> discover(std::string& why);
  std::shared_ptr<const Map> map_by(const Endpoint& endpoint);
  std::shared_ptr<Node> node_at(const Endpoint& endpoint) const;
  void take_census();

  const Url url_;
  const std::function<void()> wake_;
  const std::optional<Tls> tls_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> is_outdated_{true};     // the map
  std::atomic<bool> is_slow_{false};        // some node, so that it is down…
  std::atomic<bool> is_slow_again_{false};  // …and has not been quick since it was reached

  mutable Mutex mutex_;
  std::shared_ptr<const Map> map_ CUTWATER_GUARDED_BY(mutex_);
  std::string trouble_ CUTWATER_GUARDED_BY(mutex_);  // why there is no map

  // Of mend() alone.
  std::chrono::milliseconds pause_{0}, trust_pause_{0};
  Clock::time_point reached_{}, next_try_{}, next_census_{};
};

}  // namespace cutwater::redis
