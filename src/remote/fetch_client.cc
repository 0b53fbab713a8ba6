// SPDX-License-Identifier: Apache-2.0
#include "remote/fetch_client.h"

#include <algorithm>
#include <utility>

#include "core/caught.h"
#include "core/machine.h"
#include "core/thread_clock.h"
#include "remote/status.h"
#include "source/limited.h"
#include "variant/form.h"

namespace cutwater::remote {
namespace {

constexpr int kMostDamaged = 4;  // times, of one sample
// What is asked for waits for what is asked for next: a message costs more than what it says.
constexpr auto kTogether = std::chrono::microseconds(200);
constexpr double kLinkSlack = 4e-3;  // seconds that may come early, and are handed out when due

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
  for (Holding& holding : holdings_) {
    settle(holding, now);
    send(holding, now);
  }
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
  server.doubted = false;
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
  const bool was_asked = server.asked.erase(reply.token()) > 0;
  count_threads(server, reply.threads());
  {  // whoever it was for, as its bytes are
    MutexLock lock(mutex_);
    report_.storage_seconds += reply.storage_s();
  }
  const auto found = asked_.find(reply.token());
  if (found == asked_.end() || !was_asked) return;  // another server was faster
  Asked& asked = found->second;
  asked.at.erase(server_number(server));
  asked.of->last_progress = Clock::now();
  asked.of->on_fallback = false;

  Fetched fetched{reply.token(), std::nullopt, bytes, reply.path(), reply.way()};
  fetched.work_bytes = steering_.work_bytes(reply, bytes);
  bool damaged = false, servers_own = false;  // what is wrong with it, rather than the sample
  try {
    fetched.held_bytes = bytes;
    fetched.sample = sample_in(asked, received, fetched.held_bytes);
    servers_own = !fetched.sample->ok() && is_servers_own(fetched.sample->failure());
  } catch (...) {
    Failure failure = caught(asked.id, "read");
    damaged = failure.code == Code::kBadSample;
    if (damaged) {
      failure.code = Code::kUnavailable;
      failure.reason = server.address + " sends damaged samples: " + failure.reason;
      ++asked.damaged;
      MutexLock lock(mutex_);
      ++report_.damaged;
    }
    fetched.sample = std::move(failure);
  }
  if (damaged || servers_own) {
    const bool or_again = damaged && asked.damaged < kMostDamaged;
    asked.failure = or_again ? std::nullopt : std::optional(fetched.sample->failure());
    if (ask_elsewhere(asked, server_number(server), or_again)) return;
    if (options_.fallback) {
      fetched.sample.reset();
      MutexLock lock(mutex_);
      ++report_.fallbacks;
    }
  }
  const Time now = Clock::now();
  const double latency = seconds(now - asked.sent);
  usual_latency_s_ += 0.1 * (latency - usual_latency_s_);
  forget(asked.token);
  steering_.learn(reply);
  MutexLock lock(mutex_);
  if (fetched.sample && fetched.sample->ok()) {
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
  usual_bytes_ +=
      (usual_bytes_ == 0 ? 1 : 0.05) * (static_cast<double>(fetched.held_bytes) - usual_bytes_);
  due_.push_back({due, std::move(fetched)});
}

// What a reply says, or the sample that it brings, which takes so much memory. Throws
// Error(kBadSample) where it is not what was sent.
Result<Sample> FetchClient::sample_in(const Asked& asked, wire::ReceivedReply& received,
                                      std::size_t& held_bytes) {
  const wire::pb::Reply& reply = received.reply;
  if (reply.has_failure()) return wire::from_message(reply.failure(), asked.id);
  const auto& variants = steering_.ways().variants;
  if (reply.way() >= variants.size())
    throw Error(Code::kBadSample, "it was sent in a way that nobody asked for");
  auto form = std::make_shared<Buffer>(std::move(received.form));
  FormSource from{form->view(), form, job_.pool.get()};
  from.most_bytes = wire::kMostReplyBytes;
  from.checksum = Checksum::kXxh3;
  from.reserve = [&](std::size_t decoded) {
    held_bytes += decoded;
    const std::size_t limit = job_.pool->limit_bytes();
    if (held_bytes > limit)
      throw Error(Code::kInvalidArgument, "needs " + std::to_string(held_bytes) +
                                              " bytes as it came, more than memory_limit " +
                                              std::to_string(limit) + "; raise memory_limit");
  };
  const Part& part = asked.of->part;
  Sample sample = read_form(from, asked.id - part.first, variants[reply.way()].cut);
  part.renumber(sample);
  return sample;
}

// What one server could not send, another may: each is asked once, and all again with `or_again`.
// Those that are gone are waited for, for a while, where there is nothing else. False: there is
// nobody.
bool FetchClient::ask_elsewhere(Asked& asked, std::size_t failed, bool or_again) {
  asked.failed_at.insert(failed);
  bool others = false, others_here = false;
  for (const std::size_t number : asked.of->servers) {
    const Server& server = servers_[number];
    if (asked.failed_at.contains(number) || server.refused) continue;
    others = true;
    others_here = others_here || (server.call && !server.call->broken());
  }
  if (!others_here) {
    if (or_again)
      asked.failed_at.clear();
    else if (!others || options_.fallback)
      return false;
  }
  if (asked.at.empty()) asked.of->unsent.push_front(asked.token);
  return true;
}

// What has waited long enough for servers that have not failed at it.
void FetchClient::settle(Holding& holding, Time now) {
  const std::vector<std::uint64_t> tokens(holding.unsent.begin(), holding.unsent.end());
  for (const std::uint64_t token : tokens) {
    Asked& asked = asked_.at(token);
    if (asked.failed_at.empty() || seconds(now - asked.sent) < kFallbackAfter) continue;
    asked.failed_at.clear();
    if (!asked.failure) continue;  // once more, then
    Due due{now, {token, std::nullopt, 0}};
    if (!options_.fallback) due.fetched.sample = std::move(*asked.failure);
    forget(token);
    due_.push_back(std::move(due));
    if (!options_.fallback) continue;
    MutexLock lock(mutex_);
    ++report_.fallbacks;
  }
}

void FetchClient::forget(std::uint64_t token) {
  const auto found = asked_.find(token);
  Holding& holding = *found->second.of;
  --holding.asked;
  std::erase(holding.unsent, token);
  asked_.erase(found);
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
