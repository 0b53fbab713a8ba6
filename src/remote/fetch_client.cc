// SPDX-License-Identifier: Apache-2.0
#include "remote/fetch_client.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/caught.h"
#include "core/machine.h"
#include "core/thread_clock.h"
#include "remote/status.h"
#include "source/limited.h"
#include "variant/form.h"

namespace cutwater::remote {
namespace {

constexpr double kFirstBackoff = 0.05, kMostBackoff = 2;  // seconds
constexpr int kMostDamaged = 4;                           // times in a row, of one sample
// A sample that takes so many times as long as usual, and no less than so long, is asked for
// elsewhere as well; of all that are asked for, one in twenty at most.
constexpr double kHedgeAfter = 4, kLeastHedge = 0.1;
constexpr std::int64_t kHedgeBudget = 20;
// What is asked for waits for what is asked for next: a message costs more than what it says.
constexpr auto kTogether = std::chrono::microseconds(200);
constexpr double kAtServer = 0.75;   // of the time until a sample is needed, it may wait there
constexpr double kLinkSlack = 4e-3;  // seconds that may come early, and are handed out when due
// Seconds without a word from a server that owes one. A large sample on a slow link may take
// longer: twice as long is waited for it the next time.
constexpr double kSilence = 10;

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::chrono::steady_clock::duration duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

FetchClient::FetchClient(const std::vector<Part>& parts, const RemoteOptions& options,
                         const FetchJob& job, std::shared_ptr<Absence> absence)
    : options_(options),
      job_(job),
      absence_(std::move(absence)),
      steering_(ways_of(job.policy, job.pipeline, parts.front().data.cut()),
                {options.link ? std::optional(options.link->rate()) : std::nullopt,
                 static_cast<double>(std::min(job.threads, usable_cores())),
                 job.threads >= usable_cores()}) {
  holdings_.reserve(parts.size());  // whose places are kept
  for (const Part& part : parts) {
    wire::pb::Begin begin;
    begin.set_name(part.data.name());
    begin.set_identity(part.data.identity());
    begin.set_pipeline(job.pipeline.to_string());
    begin.set_fingerprint(job.pipeline.fingerprint());
    begin.set_seed(job.seed);
    begin.set_version(wire::kVersion);
    begin.set_first(part.first);
    steering_.ways().write_to(begin);
    Holding& holding = holdings_.emplace_back(Holding{part, std::move(begin)});
    for (const std::string& address : part.url.servers) {
      holding.servers.push_back(servers_.size());
      servers_.emplace_back();
      servers_.back().address = address;
      servers_.back().of = &holding;
      servers_.back().silence_s = least_silence_s();
    }
  }
  MutexLock lock(mutex_);
  way_work_.resize(steering_.ways().variants.size());
  report_.policy = job.policy;
  report_.decision = steering_.decision();
  for (const OffloadVariant& variant : steering_.ways().variants)
    report_.ways.push_back({to_string(variant)});
}

FetchClient::~FetchClient() {
  close();
  std::thread thread;
  {
    MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) {
    thread.join();
  } else {  // nobody ever asked
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
}

void FetchClient::ask(std::uint64_t token, SampleId id, std::uint32_t epoch, bool as_stored) {
  MutexLock lock(mutex_);
  if (closed_) return;
  new_.push_back({token, id, epoch, as_stored});
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  if (!std::exchange(alarm_set_, true))
    alarm_.Set(&queue_, std::chrono::system_clock::now() + kTogether, nullptr);
}

std::vector<Fetched> FetchClient::wait() {
  MutexLock lock(mutex_);
  while (arrived_.empty() && !closed_) arrived_changed_.wait(mutex_);
  return std::exchange(arrived_, {});
}

void FetchClient::close() {
  MutexLock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  arrived_changed_.notify_all();
  if (thread_.joinable() && !std::exchange(alarm_set_, true))
    alarm_.Set(&queue_, std::chrono::system_clock::now(), nullptr);
}

std::size_t FetchClient::usual_bytes() const {
  MutexLock lock(mutex_);
  return static_cast<std::size_t>(usual_bytes_);
}

void FetchClient::note(const Progress& progress) {
  MutexLock lock(mutex_);
  progress_ = progress;
}

void FetchClient::took(const Fetched& fetched, double seconds) {
  MutexLock lock(mutex_);
  if (fetched.way < way_work_.size()) way_work_[fetched.way].add(fetched.work_bytes, seconds);
  made_.bytes += static_cast<double>(fetched.bytes);
  made_.seconds += seconds;
  made_.samples += 1;
}

FetchReport FetchClient::report() const {
  MutexLock lock(mutex_);
  return report_;
}

void FetchClient::run() {
  bool shut = false;
  for (;;) {
    void* raw = nullptr;
    bool ok = false;
    const auto left = std::max(next_time(Clock::now()) - Clock::now(), Clock::duration::zero());
    const auto deadline = std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::system_clock::duration>(left);
    const double begun = thread_seconds();
    const auto next = queue_.AsyncNext(&raw, &ok, deadline);
    receiving_s_ += thread_seconds() - begun;
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      if (raw != nullptr) {
        guarded([&] {
          handle(std::unique_ptr<ServerCall::Tag>(static_cast<ServerCall::Tag*>(raw)), ok);
        });
      } else {
        MutexLock lock(mutex_);
        alarm_set_ = false;
      }
    }
    if (shut) continue;
    if (all_closed()) {
      queue_.Shutdown();
      shut = true;
      continue;
    }
    guarded([this] { go_on(Clock::now()); });
  }
}

// What goes wrong here (memory, a certificate that cannot be read any more) is the end of all that
// is waited for, not of the process.
template <class Work>
void FetchClient::guarded(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (...) {
    fail_all(caught(-1, "read"));
  }
}

void FetchClient::go_on(Time now) {
  take_new();
  hand_out_due(now);
  for (Server& server : servers_)
    if (server.receive_at && *server.receive_at <= now) receive(server);
  end_stalled(now);
  connect(now);
  for (Holding& holding : holdings_) send(holding, now);
  hedge(now);
  for (Holding& holding : holdings_) give_up(holding, now);
}

// Whether it is closed and nothing is under way any more.
bool FetchClient::all_closed() {
  {
    MutexLock lock(mutex_);
    if (!closed_) return false;
    if (alarm_set_) return false;  // it comes yet
  }
  for (Server& server : servers_)
    if (server.call) server.call->cancel();
  // A call whose receiving is held back has nothing under way that could tell of its end.
  for (Server& server : servers_)
    if (server.receive_at) receive(server);
  return std::ranges::none_of(servers_,
                              [](const Server& server) { return server.call != nullptr; });
}

void FetchClient::receive(Server& server) {
  server.receive_at.reset();
  if (!server.call || server.call->finishing()) return;
  server.receiving_since = Clock::now();
  server.call->receive();
}

FetchClient::Time FetchClient::next_time(Time now) const {
  Time next = now + std::chrono::seconds(1);
  for (const Due& due : due_) next = std::min(next, due.at);
  for (const Server& server : servers_) {
    if (server.receive_at) next = std::min(next, *server.receive_at);
    if (!server.call && !server.refused && server.of->asked > 0)
      next = std::min(next, server.retry_at);
  }
  if (servers_.size() > 1 && !asked_.empty()) next = std::min(next, now + duration(kLeastHedge));
  return next;
}

FetchClient::Holding& FetchClient::holding_of(SampleId id) {
  const auto behind = std::ranges::upper_bound(
      holdings_, id, {}, [](const Holding& holding) { return holding.part.first; });
  return *std::prev(behind);
}

void FetchClient::take_new() {
  MutexLock lock(mutex_);
  for (Asked& asked : new_) {
    Holding& holding = holding_of(asked.id);
    asked.of = &holding;
    if (holding.asked++ == 0) holding.last_progress = Clock::now();
    holding.unsent.push_back(asked.token);
    asked_.emplace(asked.token, std::move(asked));
  }
  new_.clear();
  steering_.note(progress_, way_work_, made_);
}

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

void FetchClient::handle(std::unique_ptr<ServerCall::Tag> tag, bool ok) {
  Server& server = servers_[tag->call->server];
  ServerCall& call = *tag->call;
  call.happened(tag->event, ok);
  switch (tag->event) {
    case ServerCall::Event::kStarted:
      if (ok) receive(server);
      break;
    case ServerCall::Event::kReceived:
      if (ok) received(server);
      break;
    case ServerCall::Event::kWritten: break;
    case ServerCall::Event::kFinished: ended(server); break;
  }
}

void FetchClient::received(Server& server) {
  const Time now = Clock::now();
  const grpc::ByteBuffer message = std::exchange(server.call->received, {});
  {  // whatever is in it, and whether anybody still waits for it
    MutexLock lock(mutex_);
    report_.wire_bytes += message.Length();
  }
  Time due = now;
  bool all = false;
  std::optional<double> queued_s;  // of the first, which has waited longest
  try {
    all = wire::parse_replies(
        message, [&](std::size_t size) { return job_.pool->allocate(size); },
        [&](wire::ReceivedReply reply, std::size_t bytes) {
          if (options_.link) due = options_.link->book(bytes);
          if (!queued_s) queued_s = reply.reply.queued_s();
          accept(server, std::move(reply), bytes, due);
        });
  } catch (...) {  // out of memory: there is nothing wrong with the server
    fail_all(caught(-1, "read"));
    server.asked.clear();
    all = true;
  }
  constexpr double kFade = 0.99;
  receiving_s_ *= kFade;
  received_bytes_ = kFade * received_bytes_ + static_cast<double>(message.Length());
  if (received_bytes_ > 0) steering_.learn_receiving(receiving_s_ / received_bytes_);
  const double passed_s = seconds(due - std::exchange(last_due_, due));
  if (queued_s) steering_.learn_link(*queued_s, message.Length(), passed_s);
  if (!all) {
    server.trouble = "it sent what is no answer";
    server.call->cancel();
    receive(server);
    return;
  }
  server.backoff_s = 0;
  server.silence_s =
      std::clamp(2 * seconds(now - server.receiving_since), least_silence_s(), server.silence_s);
  server.trouble.clear();
  // No thread wakes to the microsecond: what is due soon need not hold back what follows.
  if (due > now + duration(kLinkSlack))
    server.receive_at = due - duration(kLinkSlack) / 2;
  else
    receive(server);
}

// What came for a token, if somebody still waits for it.
void FetchClient::accept(Server& server, wire::ReceivedReply received, std::size_t bytes,
                         Time due) {
  const wire::pb::Reply& reply = received.reply;
  server.asked.erase(reply.token());
  count_threads(server, reply.threads());
  {  // whoever it was for, as its bytes are
    MutexLock lock(mutex_);
    report_.storage_seconds += reply.storage_s();
  }
  const auto found = asked_.find(reply.token());
  if (found == asked_.end()) return;  // another server was faster
  Asked& asked = found->second;
  asked.at.erase(server_number(server));
  asked.of->last_progress = Clock::now();
  asked.of->on_fallback = false;
  const auto& variants = steering_.ways().variants;

  Fetched fetched{reply.token(), std::nullopt, bytes, reply.path(), reply.way()};
  fetched.work_bytes = steering_.work_bytes(reply, bytes);
  if (reply.has_failure()) {
    fetched.sample = wire::from_message(reply.failure(), asked.id);
  } else {
    try {
      if (reply.way() >= variants.size())
        throw Error(Code::kBadSample, "it was sent in a way that nobody asked for");
      auto form = std::make_shared<Buffer>(std::move(received.form));
      FormSource from{form->view(), form, job_.pool.get()};
      from.most_bytes = wire::kMostReplyBytes;
      from.checksum = Checksum::kXxh3;
      const Part& part = asked.of->part;
      Sample sample = read_form(from, asked.id - part.first, variants[reply.way()].cut);
      part.renumber(sample);
      fetched.sample = std::move(sample);
    } catch (...) {
      const Failure failure = caught(asked.id, "read");
      MutexLock lock(mutex_);
      ++report_.damaged;
      if (failure.code == Code::kBadSample && ++asked.damaged < kMostDamaged) {
        if (asked.at.empty()) asked.of->unsent.push_front(asked.token);
        return;
      }
      Failure last = failure;
      last.code = Code::kUnavailable;
      last.reason = server.address + " sends damaged samples: " + failure.reason;
      fetched.sample = last;
    }
  }
  const Time now = Clock::now();
  const double latency = seconds(now - asked.sent);
  usual_latency_s_ += 0.1 * (latency - usual_latency_s_);
  forget(asked.token);
  steering_.learn(reply);
  MutexLock lock(mutex_);
  if (fetched.sample->ok()) {
    FetchReport::Way& way = report_.ways[reply.way()];
    ++way.samples;
    way.bytes += bytes;
    way.storage_seconds += reply.storage_s();
  }
  report_.stored_bytes += reply.stored_bytes();
  report_.ran_less += reply.ran_less() ? 1 : 0;
  report_.decision = steering_.decision();
  report_.times = steering_.times();
  report_.trouble.clear();
  usual_bytes_ += (usual_bytes_ == 0 ? 1 : 0.05) * (static_cast<double>(bytes) - usual_bytes_);
  due_.push_back({due, std::move(fetched)});
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

void FetchClient::forget(std::uint64_t token) {
  const auto found = asked_.find(token);
  Holding& holding = *found->second.of;
  --holding.asked;
  std::erase(holding.unsent, token);
  asked_.erase(found);
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
  if (is_refusal(status)) server.refused = failure_of(server.address, status);
  const bool by_us = status.error_code() == grpc::StatusCode::CANCELLED && !server.trouble.empty();
  if (!by_us)
    server.trouble = status.error_message().empty() ? "the stream ended" : status.error_message();
  server.backoff_s = std::clamp(2 * server.backoff_s, kFirstBackoff, kMostBackoff);
  server.retry_at = Clock::now() + duration(server.backoff_s);
  MutexLock lock(mutex_);
  if (owed) ++report_.retries;
  report_.trouble = server.address + ": " + server.trouble;
}

// New ones go to whoever has least to do.
void FetchClient::send(Holding& holding, Time now) {
  std::deque<std::uint64_t>& unsent = holding.unsent;
  while (!unsent.empty()) {
    Server* least = nullptr;
    std::size_t up = 0;
    for (const std::size_t number : holding.servers) {
      Server& server = servers_[number];
      if (server.up()) ++up;
      if (server.call && server.call->writable() &&
          (least == nullptr || server.asked.size() < least->asked.size()))
        least = &server;
    }
    if (least == nullptr) return;
    // A fair part, so that no server gets all while others can take some.
    const std::size_t most =
        std::min<std::size_t>(wire::kMostWanted, (unsent.size() + up - 1) / up);
    std::vector<Asked*> batch;
    while (!unsent.empty() && batch.size() < most) {
      batch.push_back(&asked_.at(unsent.front()));
      unsent.pop_front();
    }
    send_to(*least, now, batch);
  }
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
      if (asked.at.contains(number) || !server.call || !server.call->writable()) continue;
      {
        MutexLock lock(mutex_);
        std::int64_t samples = kHedgeBudget;
        for (const FetchReport::Way& way : report_.ways) samples += way.samples;
        if (report_.hedged >= samples / kHedgeBudget) return;
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
  std::deque<std::uint64_t>& unsent = holding.unsent;
  if (options_.fallback && (refused || holding.on_fallback || waited > kFallbackAfter)) {
    {
      MutexLock lock(mutex_);
      report_.fallbacks += static_cast<std::int64_t>(unsent.size());
    }
    if (!unsent.empty()) absence_->begin();
    while (!unsent.empty()) {
      holding.on_fallback = true;
      const std::uint64_t token = unsent.front();
      forget(token);
      due_.push_back({now, {token, std::nullopt, 0}});
    }
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

void FetchClient::hand_out_due(Time now) {
  const auto later = std::stable_partition(due_.begin(), due_.end(),
                                           [now](const Due& due) { return due.at <= now; });
  if (later == due_.begin()) return;
  MutexLock lock(mutex_);
  for (auto due = due_.begin(); due != later; ++due) arrived_.push_back(std::move(due->fetched));
  due_.erase(due_.begin(), later);
  arrived_changed_.notify_all();
}

}  // namespace cutwater::remote
