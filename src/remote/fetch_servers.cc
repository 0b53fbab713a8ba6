// SPDX-License-Identifier: Apache-2.0
// Which server is asked for what, and what becomes of samples that one does not send.
#include <algorithm>
#include <cstdio>
#include <utility>

#include "remote/fetch_client.h"
#include "remote/status.h"

namespace cutwater::remote {
namespace {

constexpr double kFirstBackoff = 0.05, kMostBackoff = 2;  // seconds
// A sample that takes so many times as long as usual, and no less than so long, is asked for
// elsewhere as well; of all that are asked for, one in twenty at most.
constexpr double kHedgeAfter = 4;
constexpr std::int64_t kHedgeBudget = 20;
constexpr double kAtServer = 0.75;  // of the time until a sample is needed, it may wait there
// Seconds without a word from a server that owes one. A large sample on a slow link may take
// longer: twice as long is waited for it the next time.
constexpr double kSilence = 10;

}  // namespace

void FetchClient::connect(Time now) {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    Server& server = servers_[i];
    if (server.of->asked == 0 || server.call || server.refused || server.retry_at > now) continue;
    if (!server.channel)
      server.channel = open_channel(server.address, server.of->part.url.tls, options_);
    server.call = std::make_shared<ServerCall>(server.channel, options_, queue_, i);
    server.begun = false;
    server.receiving_since = now;
    server.call->start();
  }
}

// Servers work side by side, those that are up: one may come late, or go.
void FetchClient::count_threads(Server& server, std::int64_t threads) {
  if (std::exchange(server.threads, threads) == threads) return;
  std::int64_t all = 0;
  for (const Server& one : servers_) all += one.threads;
  steering_.set_storage_threads(static_cast<double>(all));
  MutexLock lock(mutex_);
  report_.storage_threads = all;
}

void FetchClient::ended(Server& server) {
  const grpc::Status status = server.call->status;
  server.call.reset();
  server.receive_at.reset();
  count_threads(server, 0);
  for (const std::uint64_t token : server.asked)
    if (const auto found = asked_.find(token); found != asked_.end()) {
      found->second.at.erase(server_number(server));
      if (found->second.at.empty()) server.of->unsent.push_front(token);
    }
  const bool owed = !server.asked.empty();
  server.asked.clear();
  if (is_refusal(status)) {
    server.refused = failure_of(server.address, status);
    for (auto& [token, asked] : asked_)  // whoever is left is asked once more
      if (asked.of == server.of) asked.failed_at.clear();
  }
  const bool by_us = status.error_code() == grpc::StatusCode::CANCELLED && !server.trouble.empty();
  if (!by_us)
    server.trouble = status.error_message().empty() ? "the stream ended" : status.error_message();
  server.backoff_s = std::clamp(2 * server.backoff_s, kFirstBackoff, kMostBackoff);
  server.retry_at = Clock::now() + duration(server.backoff_s);
  MutexLock lock(mutex_);
  if (owed) ++report_.retries;
  report_.trouble = server.address + ": " + server.trouble;
}

// Whoever has least to do, of those that take more and have not failed at it.
FetchClient::Server* FetchClient::best_for(const Asked& asked) {
  Server* best = nullptr;
  for (const std::size_t number : asked.of->servers) {
    Server& server = servers_[number];
    if (!server.takes_more() || asked.failed_at.contains(number)) continue;
    if (best == nullptr || server.asked.size() < best->asked.size()) best = &server;
  }
  return best;
}

void FetchClient::send(Holding& holding, Time now) {
  std::deque<std::uint64_t>& unsent = holding.unsent;
  std::deque<std::uint64_t> waiting;  // that nobody takes now
  while (!unsent.empty()) {
    Asked& first = asked_.at(unsent.front());
    Server* const server = best_for(first);
    if (server == nullptr) {
      waiting.push_back(unsent.front());
      unsent.pop_front();
      if (first.failed_at.empty()) break;  // nor any of the others
      continue;
    }
    // A fair part, so that no server gets all while others can take some.
    const auto up = static_cast<std::size_t>(std::ranges::count_if(
        holding.servers, [this](std::size_t number) { return servers_[number].up(); }));
    const std::size_t most =
        server->doubted ? 1
                        : std::min<std::size_t>(wire::kMostWanted, (unsent.size() + up - 1) / up);
    std::vector<Asked*> batch;
    do {
      batch.push_back(&asked_.at(unsent.front()));
      unsent.pop_front();
    } while (!unsent.empty() && batch.size() < most &&
             !asked_.at(unsent.front()).failed_at.contains(server_number(*server)));
    send_to(*server, now, batch);
  }
  unsent.insert(unsent.begin(), waiting.begin(), waiting.end());
}

void FetchClient::send_to(Server& server, Time now, const std::vector<Asked*>& batch) {
  // What is here or asked for lasts so long, at the pace of the job; some of that is for the way.
  const double within_s = kAtServer * steering_.pace_s() * job_.in_flight;
  wire::pb::FetchRequest request;
  if (!std::exchange(server.begun, true)) *request.mutable_begin() = server.of->begin;
  for (const double worth : steering_.worth()) request.add_worth(static_cast<float>(worth));
  request.set_needed_worth(static_cast<float>(steering_.needed_worth()));
  for (Asked* const asked : batch) {
    wire::pb::Wanted* const wanted = request.add_wanted();
    wanted->set_token(asked->token);
    wanted->set_id(asked->id - server.of->part.first);
    wanted->set_epoch(asked->epoch);
    wanted->set_as_stored(asked->as_stored);
    wanted->set_price(static_cast<float>(steering_.price()));
    wanted->set_within_s(static_cast<float>(within_s));
    asked->sent = now;
    asked->at.insert(server_number(server));
    if (server.asked.empty()) server.receiving_since = now;
    server.asked.insert(asked->token);
  }
  server.call->write(wire::bytes_of(request));
}

// What takes much longer than usual is asked for at another server, too.
void FetchClient::hedge(Time now) {
  if (servers_.size() < 2 || usual_latency_s_ == 0) return;
  const double late = std::max(kLeastHedge, kHedgeAfter * usual_latency_s_);
  for (auto& [token, asked] : asked_) {
    if (asked.hedged || asked.at.size() != 1 || seconds(now - asked.sent) < late) continue;
    for (const std::size_t number : asked.of->servers) {
      Server& server = servers_[number];
      if (asked.at.contains(number) || asked.failed_at.contains(number) || !server.takes_more())
        continue;
      {
        MutexLock lock(mutex_);
        std::int64_t samples = kHedgeBudget;
        for (const FetchReport::Way& way : report_.ways) samples += way.samples;
        // What a server was asked for to see whether it is there is one sample at a time.
        const bool to_see = servers_[*asked.at.begin()].doubted;
        if (!to_see && report_.hedged >= samples / kHedgeBudget) break;
        ++report_.hedged;
      }
      asked.hedged = true;
      send_to(server, now, {&asked});
      break;
    }
  }
}

double FetchClient::least_silence_s() const { return std::min(kSilence, options_.patience_s / 2); }

void FetchClient::end_stalled(Time now) {
  for (Server& server : servers_) {
    if (!server.call || server.call->finishing() || server.asked.empty() || server.receive_at)
      continue;
    if (seconds(now - server.receiving_since) < server.silence_s) continue;
    char text[48];
    std::snprintf(text, sizeof text, "nothing came for %.1f s", server.silence_s);
    server.trouble = text;
    server.silence_s = std::min(2 * server.silence_s, options_.patience_s);
    server.doubted = true;
    server.receiving_since = now;
    server.call->cancel();
  }
}

// Without servers: by the other path, soon; where there is none, not at all when patience is over.
// Those that have refused are not waited for.
void FetchClient::give_up(Holding& holding, Time now) {
  if (holding.asked == 0) return;
  // What has come and is held back by the link is no absence.
  if (std::ranges::any_of(holding.servers, [this](std::size_t number) {
        return servers_[number].receive_at.has_value();
      }))
    holding.last_progress = now;
  const double waited = seconds(now - holding.last_progress);
  const bool refused = std::ranges::all_of(
      holding.servers, [this](std::size_t number) { return servers_[number].refused.has_value(); });
  if (options_.fallback && (refused || holding.on_fallback || waited > kFallbackAfter)) {
    take_fallback(holding, now);
    return;
  }
  if (refused) {
    fail(holding, *servers_[holding.servers.front()].refused);
    return;
  }
  if (waited < options_.patience_s) return;
  std::string why;
  for (const std::size_t number : holding.servers) {
    const Server& server = servers_[number];
    why += (why.empty() ? "" : "; ") + server.address + ": " +
           (server.trouble.empty() ? "no word from it" : server.trouble);
  }
  Failure failure;
  failure.code = Code::kUnavailable;
  failure.op = "read";
  failure.reason = "no server of " + holding.part.url.text() + " has sent a sample for " +
                   std::to_string(static_cast<int>(waited)) + " s (" + why +
                   "); start it again, or name a second path (fallback)";
  fail(holding, failure);
}

// What no server was asked for; and what one was asked for that says nothing, after as long as the
// others had: if it comes after all, that only shows that the server does, too.
void FetchClient::take_fallback(Holding& holding, Time now) {
  std::vector<std::uint64_t> tokens(holding.unsent.begin(), holding.unsent.end());
  const auto is_doubted = [this](std::size_t number) { return servers_[number].doubted; };
  for (const auto& [token, asked] : asked_)
    if (asked.of == &holding && !asked.at.empty() && seconds(now - asked.sent) > kFallbackAfter &&
        std::ranges::all_of(asked.at, is_doubted))
      tokens.push_back(token);
  if (tokens.empty()) return;
  absence_->begin();
  holding.on_fallback = true;
  for (const std::uint64_t token : tokens) {
    forget(token);
    due_.push_back({now, {token, std::nullopt, 0}});
  }
  MutexLock lock(mutex_);
  report_.fallbacks += static_cast<std::int64_t>(tokens.size());
}

void FetchClient::fail(const Holding& holding, const Failure& failure) {
  std::vector<std::uint64_t> tokens;
  for (const auto& [token, asked] : asked_) {
    if (asked.of != &holding) continue;
    Failure one = failure;
    one.sample = asked.id;
    due_.push_back({Clock::now(), {token, std::move(one), 0}});
    tokens.push_back(token);
  }
  for (const std::uint64_t token : tokens) forget(token);
}

void FetchClient::fail_all(const Failure& failure) {
  for (const Holding& holding : holdings_) fail(holding, failure);
}

}  // namespace cutwater::remote
