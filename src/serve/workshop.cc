// SPDX-License-Identifier: Apache-2.0
#include "serve/workshop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/caught.h"
#include "core/machine.h"
#include "core/thread_clock.h"

namespace cutwater::serve {
namespace {

// How far back the makers' time is remembered when it is shared out.
constexpr double kRemembered = 2;  // seconds, to one part in e

// What goes as it is stored waits for more of the kind until it is so much, or so old: several
// answers cost whoever sends them, and whoever gets them, little more than one.
constexpr std::size_t kGroupBytes = std::size_t{4} << 20;
constexpr double kGroupSeconds = 2e-3;

// A reader whose reads take no longer has done with what waits before another would be awake.
constexpr double kQuickRead = 200e-6;  // seconds

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Bytes that a second of work on it saves; with `always` that may be less than none, and then the
// one that loses less and takes less comes first. What is on trial teaches the most. What must be
// is weighed only where others wait: a trainer's wish is no reason to take time from those who save
// something with it.
double efficiency(const Draft& draft, bool others_wait) {
  const bool weighed = others_wait || !draft.order.stream->always;
  if (draft.on_trial || !weighed) return std::numeric_limits<double>::infinity();
  const double saving = draft.saving(), cost = std::max(draft.cost(), 1e-9);
  return saving < 0 ? saving * cost : saving / cost;
}

}  // namespace

// All but `deliver` and the mutex around it is the workshop's, under its lock.
struct Workshop::Client::State {
  State(Deliver how, std::string where) : host(std::move(where)), deliver(std::move(how)) {}

  const std::string host;
  const std::shared_ptr<std::atomic<bool>> gave_up = std::make_shared<std::atomic<bool>>(false);
  std::deque<Order> waiting;
  std::size_t held_bytes = 0;  // read or made, and not yet sent
  int begun = 0;
  bool has_left = false;
  bool below_floor = false;      // as the last pick of a job saw it
  double used = 0, used_at = 0;  // maker seconds, fading
  double total_seconds = 0;
  std::vector<Answer> ready;  // to be delivered together
  std::size_t ready_bytes = 0;
  double ready_since = 0;

  std::vector<Answer> take_ready() {
    ready_bytes = 0;
    return std::exchange(ready, {});
  }
  double used_by(double time) const { return used * std::exp((used_at - time) / kRemembered); }

  Mutex mutex;
  Deliver deliver CUTWATER_GUARDED_BY(mutex);
};

Workshop::Workshop(WorkshopOptions options)
    : options_(std::move(options)),
      sends_beside_(options_.makers >= usable_cores()),
      maker_(options_.maker),
      sending_({process_seconds(), 0, 0}) {
  for (int i = 0; i < options_.readers; ++i) threads_.emplace_back([this] { read_loop(); });
  for (int i = 0; i < options_.makers; ++i) threads_.emplace_back([this] { make_loop(); });
}

Workshop::~Workshop() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    orders_changed_.notify_all();
    jobs_changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Workshop::Client::Client(Workshop& shop, Deliver deliver, std::string host)
    : shop_(shop), state_(std::make_shared<State>(std::move(deliver), std::move(host))) {
  MutexLock lock(shop_.mutex_);
  shop_.clients_.push_back(state_);
  ++shop_.hosts_[state_->host];
}

Workshop::Client::~Client() { leave(); }

void Workshop::Client::order(std::vector<Order> orders) {
  Workshop& shop = shop_;  // a client that is served at once may be gone before the last line
  {
    MutexLock lock(shop.mutex_);
    for (Order& one : orders) {
      one.given_up = state_->gave_up;
      state_->waiting.push_back(std::move(one));
    }
  }
  shop.orders_changed_.notify_one();
}

void Workshop::Client::sent(int answers, std::size_t bytes) {
  bool may_go_on = false;
  {
    MutexLock lock(shop_.mutex_);
    state_->begun -= answers;
    may_go_on = shop_.hold(*state_, bytes, 0);
  }
  if (may_go_on) shop_.orders_changed_.notify_one();
}

void Workshop::Client::leave() {
  state_->gave_up->store(true);
  std::list<Job> dropped;  // destroyed without the lock
  {
    MutexLock lock(shop_.mutex_);
    state_->waiting.clear();
    dropped = shop_.take_jobs([this](const Job& job) { return job.client == state_; });
    (void)state_->take_ready();
    if (!std::exchange(state_->has_left, true)) {
      const auto host = shop_.hosts_.find(state_->host);
      if (--host->second == 0) shop_.hosts_.erase(host);
    }
    std::erase(shop_.clients_, state_);
    shop_.stats_.bytes_held -= std::exchange(state_->held_bytes, 0);
    shop_.orders_changed_.notify_all();
  }
  MutexLock lock(state_->mutex);
  state_->deliver = nullptr;
}

double Workshop::Client::maker_seconds() const {
  MutexLock lock(shop_.mutex_);
  return state_->total_seconds;
}

bool Workshop::has_orders() const {
  return std::ranges::any_of(clients_,
                             [](const ClientState& client) { return !client->waiting.empty(); });
}

// Whether there is an order of this client, and room for what it will bring.
bool Workshop::may_begin(const Client::State& client) const {
  return !client.waiting.empty() && (client.begun == 0 || has_room(client));
}

bool Workshop::has_room(const Client::State& client) const {
  return client.held_bytes < options_.client_memory && stats_.bytes_held < options_.memory;
}

// Of the bytes that a client holds, some have become others. Returns whether a reader may find
// something to do that it did not before.
bool Workshop::hold(Client::State& client, std::size_t before, std::size_t after) {
  const bool was_full = !has_room(client);
  client.held_bytes += after;
  client.held_bytes -= before;
  stats_.bytes_held += after;
  stats_.bytes_held -= before;
  return was_full && after <= before && has_orders();
}

bool Workshop::take_another(Client::State& client, Order& order) {
  if (!may_begin(client)) return false;
  order = std::move(client.waiting.front());
  client.waiting.pop_front();
  ++client.begun;
  return true;
}

// The next order of the next client that may have one begun.
bool Workshop::take_order(ClientState& client, Order& order) {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    next_client_ = (next_client_ + 1) % clients_.size();
    client = clients_[next_client_];
    if (take_another(*client, order)) return true;
  }
  return false;
}

void Workshop::read_loop() {
  ClientState client;
  Order order;
  for (;;) {
    bool wake_another = false;
    {
      MutexLock lock(mutex_);
      while (!closed_ && !take_order(client, order)) orders_changed_.wait(mutex_);
      if (closed_) return;
      // One reader wakes the next while there is more to do, rather than everything all of them.
      wake_another = usual_read_ > kQuickRead && has_orders();
    }
    if (wake_another) orders_changed_.notify_one();
    while (read_one(client, order)) {
    }
  }
}

// Whether `order` is now another one of the same client, because answers wait to go together.
// Whoever stops there takes them along, also those of other readers.
bool Workshop::read_one(const ClientState& client, Order& order) {
  const std::uint64_t token = order.token;
  const double begun = now(), start = thread_seconds();
  Result<Draft> draft = maker_.begin(std::move(order), options_.makers > 0);
  const double taken = now() - begun;
  // What was done besides reading counts where the answer does.
  const double spent = thread_seconds() - start - (draft ? draft.value().seconds : 0);
  const bool has_work = draft && draft.value().has_work();
  Answer answer;
  if (has_work) {
    offer({client, std::move(draft).value()});
  } else if (draft) {
    answer = maker_.finish(draft.value());
  } else {
    answer.token = token;
    answer.form = std::move(draft.failure());
  }
  std::vector<Answer> group;
  {
    MutexLock lock(mutex_);
    usual_read_ += 0.1 * (taken - usual_read_);
    stats_.reader_seconds += spent;
    Client::State& its = *client;
    if (!has_work) {
      if (its.ready.empty()) its.ready_since = now();
      its.ready_bytes += account(its, answer, 0);
      its.ready.push_back(std::move(answer));
    }
    const bool due = its.ready_bytes >= kGroupBytes || usual_read_ > kQuickRead ||
                     now() - its.ready_since >= kGroupSeconds;
    if (!has_work && !due && !closed_ && take_another(its, order)) return true;
    group = its.take_ready();
  }
  deliver(*client, std::move(group));
  return false;
}

void Workshop::look_after() {
  std::vector<std::pair<ClientState, std::vector<Answer>>> groups;
  std::list<Job> late;
  {
    MutexLock lock(mutex_);
    const bool under_way =
        std::ranges::any_of(clients_, [](const ClientState& client) { return client->begun > 0; });
    sending_.look(spent_so_far(), under_way);
    const double at = now();
    for (const ClientState& client : clients_)
      if (!client->ready.empty() && at - client->ready_since >= kGroupSeconds)
        groups.emplace_back(client, client->take_ready());
    if (has_orders()) orders_changed_.notify_all();
    late = take_late(several_wait());
  }
  for (auto& [client, group] : groups) deliver(*client, std::move(group));
  answer_as_stored(std::move(late));
}

template <class Which>
std::list<Workshop::Job> Workshop::take_jobs(Which which) {
  std::list<Job> taken;
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    const auto next = std::next(job);
    if (which(*job)) taken.splice(taken.end(), jobs_, job);
    job = next;
  }
  return taken;
}

void Workshop::offer(Job job) {
  const double within = job.draft.order.within_s;
  const double wait = within > 0 ? within : options_.wait_seconds;
  // What teaches something is worth as long a wait as there is.
  job.until = now() + (job.draft.on_trial ? options_.most_wait_seconds
                                          : std::min(wait, options_.most_wait_seconds));
  job.read_bytes = static_cast<std::size_t>(job.draft.facts.stored_bytes);
  MutexLock lock(mutex_);
  if (job.client->has_left) return;
  hold(*job.client, 0, job.read_bytes);
  jobs_.push_back(std::move(job));
  jobs_changed_.notify_one();
}

// Jobs that have waited too long. What must be waits for ever where nobody else does.
std::list<Workshop::Job> Workshop::take_late(bool others_wait) {
  return take_jobs([others_wait, at = now()](const Job& job) {
    return job.until < at && (others_wait || !job.draft.order.stream->always);
  });
}

void Workshop::answer_as_stored(std::list<Job> jobs) {
  for (Job& job : jobs) {
    job.draft.leave_as_stored();
    answer(job);
  }
}

void Workshop::make_loop() {
  for (;;) {
    std::list<Job> taken, late;
    {
      MutexLock lock(mutex_);
      while (!closed_ && jobs_.empty()) jobs_changed_.wait(mutex_);
      if (closed_) return;
      const bool others_wait = several_wait();
      const auto best = best_job(others_wait);
      taken.splice(taken.end(), jobs_, best);
      late = take_late(others_wait);
    }
    answer_as_stored(std::move(late));
    answer(taken.front());
  }
}

bool Workshop::several_wait() const {
  return std::ranges::adjacent_find(jobs_, std::ranges::not_equal_to{}, &Job::client) !=
         jobs_.end();
}

std::list<Workshop::Job>::iterator Workshop::best_job(bool others_wait) {
  const double used = used_seconds(), at = now();
  for (const ClientState& client : clients_) client->below_floor = below_floor(*client, at, used);
  auto best = jobs_.end();
  std::pair<bool, double> most;
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    const std::pair rank(job->client->below_floor, efficiency(job->draft, others_wait));
    if (best != jobs_.end() && rank <= most) continue;
    best = job;
    most = rank;
  }
  return best;
}

// Of the makers' time, by all clients, as far as it is remembered.
double Workshop::used_seconds() const {
  double all = 0;
  for (const ClientState& client : clients_) all += client->used_by(now());
  return all;
}

// A floor is a share of what makers had to give, which may be less than threads promise: others use
// these cores as well.
bool Workshop::below_floor(const Client::State& client, double at, double used) const {
  if (clients_.size() < 2) return false;
  const auto host = hosts_.find(client.host);
  const double shares = static_cast<double>(hosts_.size()) * host->second;
  return client.used_by(at) < options_.floor * used / shares;
}

void Workshop::charge(Client::State& client, double seconds) {
  const double at = now();
  client.used = client.used_by(at) + seconds;
  client.used_at = at;
  client.total_seconds += seconds;
}

void Workshop::answer(const Job& job) {
  std::vector<Answer> made;
  made.push_back(maker_.finish(job.draft));
  {
    MutexLock lock(mutex_);
    account(*job.client, made.front(), job.read_bytes);
  }
  deliver(*job.client, std::move(made));
  if (!job.draft.on_trial) return;
  bool others_wait = false;
  {
    MutexLock lock(mutex_);
    others_wait = !jobs_.empty();
  }
  const double spent = maker_.try_another(job.draft, others_wait);
  MutexLock lock(mutex_);
  stats_.maker_seconds += spent;
  charge(*job.client, spent);
}

// What is too large to be sent is told in words, rather than that a connection breaks on it.
void Workshop::refuse_large(Answer& answer) const {
  const std::size_t bytes = answer.form ? answer.form.value().size() : 0;
  if (bytes <= options_.answer_bytes) return;
  Failure failure;
  failure.code = Code::kBadSample;
  failure.op = "read";
  failure.path = answer.path;
  failure.reason = "is " + std::to_string(bytes) + " bytes, more than the " +
                   std::to_string(options_.answer_bytes) +
                   " that a server can send of one sample; read it by another path (fallback)";
  failure.storage_failed = true;  // there is nothing wrong with it
  answer.form = std::move(failure);
}

// Returns how many bytes it holds until they are sent, in place of those that were read for it.
std::size_t Workshop::account(Client::State& client, Answer& answer, std::size_t read_bytes) {
  refuse_large(answer);
  const std::size_t bytes = answer.form ? answer.form.value().size() : 0;
  ++stats_.answers;
  stats_.ran_less += answer.ran_less ? 1 : 0;
  stats_.failures += answer.form ? 0 : 1;
  stats_.cache_hits += answer.cache == CacheUse::kHit ? 1 : 0;
  stats_.cache_misses += answer.cache == CacheUse::kMiss ? 1 : 0;
  stats_.stored_bytes += answer.stored_bytes;
  stats_.sent_bytes += static_cast<double>(bytes);
  stats_.maker_seconds += answer.seconds;
  charge(client, answer.seconds);
  if (client.has_left) return bytes;  // and so will they, at once
  if (hold(client, read_bytes, bytes)) orders_changed_.notify_one();
  return bytes;
}

void Workshop::deliver(Client::State& client, std::vector<Answer> answers) {
  if (answers.empty()) return;
  MutexLock lock(client.mutex);
  if (client.deliver) client.deliver(std::move(answers));
}

SendingCost::SoFar Workshop::spent_so_far() const {
  return {process_seconds(), stats_.maker_seconds + stats_.reader_seconds, stats_.sent_bytes};
}

double Workshop::send_seconds_per_byte() const {
  if (!sends_beside_) return 0;
  MutexLock lock(mutex_);
  return sending_.seconds_per_byte();
}

WorkshopStats Workshop::stats() const {
  const std::size_t cache_bytes = options_.maker.cache ? options_.maker.cache->stats().bytes : 0;
  MutexLock lock(mutex_);
  WorkshopStats stats = stats_;
  stats.cache_bytes = cache_bytes;
  stats.clients = static_cast<std::int64_t>(clients_.size());
  for (const ClientState& client : clients_)
    stats.waiting += static_cast<std::int64_t>(client->waiting.size());
  return stats;
}

}  // namespace cutwater::serve
