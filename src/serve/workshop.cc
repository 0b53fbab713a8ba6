// SPDX-License-Identifier: Apache-2.0
#include "serve/workshop.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "core/caught.h"
#include "core/thread_clock.h"

namespace cutwater::serve {
namespace {

// How far back the makers' time is remembered when it is shared out.
constexpr double kRemembered = 2;  // seconds, to one part in e

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Bytes that a second of work on it saves. What is on trial teaches the most; what must be is not
// weighed.
double efficiency(const Draft& draft) {
  if (!draft.tries.empty() || draft.order.stream->always)
    return std::numeric_limits<double>::infinity();
  return draft.saving() / std::max(draft.cost(), 1e-9);
}

}  // namespace

// All but `deliver` and the mutex around it is the workshop's, under its lock.
struct Workshop::Client::State {
  explicit State(Deliver how) : deliver(std::move(how)) {}

  std::deque<Order> waiting;
  std::size_t held_bytes = 0;  // of samples that were begun and not yet sent
  int begun = 0;
  double used = 0, used_at = 0;  // maker seconds, fading
  double total_seconds = 0;

  Mutex mutex;
  Deliver deliver CUTWATER_GUARDED_BY(mutex);
};

Workshop::Workshop(WorkshopOptions options) : options_(std::move(options)), maker_(options_.maker) {
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

Workshop::Client::Client(Workshop& shop, Deliver deliver)
    : shop_(shop), state_(std::make_shared<State>(std::move(deliver))) {
  MutexLock lock(shop_.mutex_);
  shop_.clients_.push_back(state_);
}

Workshop::Client::~Client() { leave(); }

void Workshop::Client::order(std::vector<Order> orders) {
  MutexLock lock(shop_.mutex_);
  for (Order& one : orders) state_->waiting.push_back(std::move(one));
  shop_.orders_changed_.notify_all();
}

void Workshop::Client::sent(std::size_t bytes) {
  MutexLock lock(shop_.mutex_);
  state_->held_bytes -= bytes;
  shop_.stats_.bytes_held -= bytes;
  --state_->begun;
  shop_.orders_changed_.notify_all();
}

void Workshop::Client::leave() {
  {
    MutexLock lock(shop_.mutex_);
    state_->waiting.clear();
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

// The next order of the next client that may have one begun.
bool Workshop::take_order(ClientState& client, Order& order) {
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    next_client_ = (next_client_ + 1) % clients_.size();
    const ClientState& candidate = clients_[next_client_];
    if (candidate->waiting.empty()) continue;
    const bool room =
        candidate->held_bytes < options_.client_memory && stats_.bytes_held < options_.memory;
    if (candidate->begun > 0 && !room) continue;
    client = candidate;
    order = std::move(candidate->waiting.front());
    candidate->waiting.pop_front();
    ++candidate->begun;
    return true;
  }
  return false;
}

void Workshop::read_loop() {
  for (;;) {
    ClientState client;
    Order order;
    {
      MutexLock lock(mutex_);
      while (!closed_ && !take_order(client, order)) orders_changed_.wait(mutex_);
      if (closed_) return;
    }
    const std::uint64_t token = order.token;
    const double start = thread_seconds();
    Result<Draft> draft = maker_.begin(std::move(order), options_.makers > 0);
    const double spent = thread_seconds() - start;
    {
      MutexLock lock(mutex_);
      stats_.reader_seconds += spent;
    }
    if (!draft) {
      Answer failed;
      failed.token = token;
      failed.form = std::move(draft.failure());
      deliver(client, std::move(failed));
    } else if (draft.value().has_work()) {
      offer({client, std::move(draft).value()});
    } else {
      answer(client, std::move(draft).value());
    }
  }
}

// For the makers; where they have too much to do already, what saves least goes as it is stored.
void Workshop::offer(Job job) {
  std::list<Job> left_out;
  {
    MutexLock lock(mutex_);
    backlog_ += job.draft.cost();
    jobs_.push_back(std::move(job));
    while (jobs_.size() > 1 && backlog_ > options_.backlog_seconds * options_.makers) {
      const bool far_too_much = backlog_ > options_.most_backlog_seconds * options_.makers;
      const auto least = least_job(far_too_much);
      if (least == jobs_.end()) break;
      backlog_ -= least->draft.cost();
      left_out.splice(left_out.end(), jobs_, least);
    }
    jobs_changed_.notify_one();
  }
  for (Job& one : left_out) {
    one.draft.leave_as_stored();
    answer(one.client, std::move(one.draft));
  }
}

void Workshop::make_loop() {
  for (;;) {
    std::list<Job> taken;
    {
      MutexLock lock(mutex_);
      while (!closed_ && jobs_.empty()) jobs_changed_.wait(mutex_);
      if (closed_) return;
      const auto best = best_job();
      backlog_ = std::max(0.0, backlog_ - best->draft.cost());
      taken.splice(taken.end(), jobs_, best);
    }
    answer(taken.front().client, std::move(taken.front().draft));
  }
}

std::list<Workshop::Job>::iterator Workshop::best_job() {
  return std::ranges::max_element(jobs_, {}, [this](const Job& job) CUTWATER_REQUIRES(mutex_) {
    return std::pair(below_floor(*job.client), efficiency(job.draft));
  });
}

// Of the jobs that may be left out; the end: none may.
std::list<Workshop::Job>::iterator Workshop::least_job(bool though_link_is_busy) {
  auto least = jobs_.end();
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    const bool link_busy = job->client->held_bytes > 0;
    if (std::isinf(efficiency(job->draft)) || below_floor(*job->client)) continue;
    if (link_busy && !though_link_is_busy) continue;
    if (least == jobs_.end() || efficiency(job->draft) < efficiency(least->draft)) least = job;
  }
  return least;
}

bool Workshop::below_floor(const Client::State& client) const {
  const double used = client.used * std::exp((client.used_at - now()) / kRemembered);
  const auto share = 1 / static_cast<double>(std::max<std::size_t>(clients_.size(), 1));
  return clients_.size() > 1 && used < options_.floor * share * options_.makers * kRemembered;
}

void Workshop::charge(Client::State& client, double seconds) {
  const double at = now();
  client.used = client.used * std::exp((client.used_at - at) / kRemembered) + seconds;
  client.used_at = at;
  client.total_seconds += seconds;
}

void Workshop::answer(const ClientState& client, Draft draft) {
  deliver(client, maker_.finish(std::move(draft)));
}

void Workshop::deliver(const ClientState& client, Answer answer) {
  const std::size_t bytes = answer.form ? answer.form.value()->size() : 0;
  {
    MutexLock lock(mutex_);
    ++stats_.answers;
    stats_.ran_less += answer.ran_less ? 1 : 0;
    stats_.failures += answer.form ? 0 : 1;
    stats_.stored_bytes += answer.stored_bytes;
    stats_.sent_bytes += static_cast<double>(bytes);
    stats_.maker_seconds += answer.seconds;
    charge(*client, answer.seconds);
    if (std::ranges::find(clients_, client) == clients_.end()) return;  // it has left
    client->held_bytes += bytes;
    stats_.bytes_held += bytes;
  }
  MutexLock lock(client->mutex);
  if (client->deliver) client->deliver(std::move(answer));
}

WorkshopStats Workshop::stats() const {
  MutexLock lock(mutex_);
  WorkshopStats stats = stats_;
  stats.clients = static_cast<std::int64_t>(clients_.size());
  for (const ClientState& client : clients_)
    stats.waiting += static_cast<std::int64_t>(client->waiting.size());
  return stats;
}

}  // namespace cutwater::serve
