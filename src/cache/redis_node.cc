// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_node.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostIdle = 64;
constexpr std::size_t kPerValue = 256;  // what a key and its place in the server's table take
constexpr int kSlowTrips = 8;           // in a row: one may be an accident
constexpr auto kFirstPause = 100ms, kLongestPause = 2000ms;

// The value of one line "field:value" of INFO; empty: there is no such line.
std::string_view field_of(std::string_view info, std::string_view field) {
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find('\n', at), info.size());
    std::string_view line = info.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > field.size() && line.starts_with(field) && line[field.size()] == ':')
      return line.substr(field.size() + 1);
    at = end + 1;
  }
  return {};
}

template <class Number>
Number number_of(std::string_view info, std::string_view field) {
  const std::string_view text = field_of(info, field);
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Census census_of(Connection& link, Deadline deadline, const std::vector<std::string>& besides) {
  Commands commands;
  commands.add({"INFO", "memory"});
  commands.add({"INFO", "stats"});
  commands.add({"DBSIZE"});
  for (const std::string& name : besides) commands.add({"EXISTS", name});
  const std::vector<Reply> replies = link.exchange(commands, deadline);
  // Whoever may not ask (NOPERM) gets nothing, and knows nothing.
  const std::string& memory = replies[0].is_error() ? std::string() : replies[0].text;
  Census census;
  census.used = number_of<std::size_t>(memory, "used_memory");
  census.limit = number_of<std::size_t>(memory, "maxmemory");
  if (census.limit == 0) census.limit = number_of<std::size_t>(memory, "total_system_memory");
  const std::string_view policy = field_of(memory, "maxmemory_policy");
  census.evicts = !policy.empty() && policy != "noeviction";
  if (!replies[1].is_error())
    census.evicted = number_of<std::int64_t>(replies[1].text, "evicted_keys");
  census.keys = replies[2].number;
  for (std::size_t i = 3; i < replies.size(); ++i) census.keys -= replies[i].number;
  return census;
}

std::unique_ptr<Connection> Node::take_idle() {
  MutexLock lock(mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Connection> link = std::move(idle_.back());
  idle_.pop_back();
  return link;
}

std::unique_ptr<Connection> Node::connect(const Url& url, const Tls* tls, Deadline deadline) const {
  return std::make_unique<Connection>(addresses_, url, endpoint_.host, tls, deadline);
}

void Node::give_back(std::unique_ptr<Connection> link) {
  if (!link->is_clean()) return;
  MutexLock lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(link));
}

void Node::set_down(const std::string& why) {
  std::vector<std::unique_ptr<Connection>> closed;
  MutexLock lock(mutex_);
  is_down_.store(true, std::memory_order_release);
  trouble_ = why;
  closed.swap(idle_);
}

void Node::set_up() {
  MutexLock lock(mutex_);
  is_down_.store(false, std::memory_order_release);
  trouble_.clear();
  pause_ = 0ms;
  refuses_until_ = {};
}

std::string Node::trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

bool Node::add_trip(bool is_slow, Clock::time_point began, Clock::time_point ended) {
  if (!is_slow) {
    slow_trips_.store(0, std::memory_order_relaxed);
    was_ever_quick_.store(true, std::memory_order_relaxed);
    return false;
  }
  MutexLock lock(mutex_);
  if (began < slow_until_) return false;
  slow_until_ = ended;
  return slow_trips_.fetch_add(1, std::memory_order_relaxed) + 1 == kSlowTrips;
}

void Node::set_census(const Census& census) {
  MutexLock lock(mutex_);
  census_ = census;
}

Census Node::census() const {
  MutexLock lock(mutex_);
  return census_;
}

bool Node::has_room(std::size_t bytes) const {
  if (is_down()) return false;
  MutexLock lock(mutex_);
  if (Clock::now() < refuses_until_) return false;
  if (census_.limit == 0) return true;
  if (census_.evicts) return bytes <= census_.limit / 2;
  const std::size_t left = census_.limit - std::min(census_.limit, census_.used);
  return bytes <= left && kPerValue <= left - bytes;
}

void Node::set_taken(std::size_t bytes) {
  MutexLock lock(mutex_);
  census_.used += bytes + kPerValue;
  trouble_.clear();
  pause_ = 0ms;
}

void Node::set_refused(const std::string& why) {
  MutexLock lock(mutex_);
  pause_ = std::clamp<std::chrono::milliseconds>(2 * pause_, kFirstPause, kLongestPause);
  refuses_until_ = Clock::now() + pause_;
  // Full is no trouble. All else is: a disk that cannot be written, a replica, a missing right.
  if (why.starts_with("OOM"))
    census_.used = std::max(census_.used, census_.limit);
  else
    trouble_ = why;
}

}  // namespace cutwater::redis
