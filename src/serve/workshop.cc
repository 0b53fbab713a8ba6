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
  if (draft.on_trial || draft.order.stream->always) return std::numeric_limits<double>::infinity();
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

  double used_by(double time) const { return used * std::exp((used_at - time) / kRemembered); }

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
  shop_.orders_changed_.notify_one();
}

void Workshop::Client::sent(std::size_t bytes) {
  MutexLock lock(shop_.mutex_);
  state_->held_bytes -= bytes;
  shop_.stats_.bytes_held -= bytes;
  --state_->begun;
  if (shop_.has_orders()) shop_.orders_changed_.notify_one();
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

bool Workshop::has_orders() const {
  return std::ranges::any_of(clients_,
                             [](const ClientState& client) { return !client->waiting.empty(); });
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
      // One reader wakes the next while there is more to do, rather than everything all of them.
      if (has_orders()) orders_changed_.notify_one();
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
      offer({client, std::move(draft).value(), 0});
    } else {
      answer(client, draft.value());
    }
  }
}

void Workshop::offer(Job job) {
  const double within = job.draft.order.within_s;
  const double wait = within > 0 ? within : options_.wait_seconds;
  job.until = now() + std::min(wait, options_.most_wait_seconds);
  MutexLock lock(mutex_);
  jobs_.push_back(std::move(job));
  jobs_changed_.notify_one();
}

void Workshop::make_loop() {
  for (;;) {
    std::list<Job> taken, too_late;
    {
      MutexLock lock(mutex_);
      while (!closed_ && jobs_.empty()) jobs_changed_.wait(mutex_);
      if (closed_) return;
      const auto best = best_job();
      taken.splice(taken.end(), jobs_, best);
      const double at = now();
      for (auto job = jobs_.begin(); job != jobs_.end();) {
        const auto next = std::next(job);
        if (job->until < at && !std::isinf(efficiency(job->draft)))
          too_late.splice(too_late.end(), jobs_, job);
        job = next;
      }
    }
    for (Job& job : too_late) {
      job.draft.leave_as_stored();
      answer(job.client, job.draft);
    }
    answer(taken.front().client, taken.front().draft);
  }
}

std::list<Workshop::Job>::iterator Workshop::best_job() {
  const double floor = floor_seconds(), at = now();
  return std::ranges::max_element(jobs_, {}, [floor, at](const Job& job) {
    return std::pair(job.client->used_by(at) < floor, efficiency(job.draft));
  });
}

// Who has had less of the makers' time, as far as it is remembered, is below the floor. A share of
// what they had to give, which may be less than threads promise: others use these cores as well.
double Workshop::floor_seconds() const {
  if (clients_.size() < 2) return 0;
  double all = 0;
  for (const ClientState& client : clients_) all += client->used_by(now());
  return options_.floor * all / static_cast<double>(clients_.size());
}

void Workshop::charge(Client::State& client, double seconds) {
  const double at = now();
  client.used = client.used_by(at) + seconds;
  client.used_at = at;
  client.total_seconds += seconds;
}

void Workshop::answer(const ClientState& client, const Draft& draft) {
  deliver(client, maker_.finish(draft));
  if (!draft.on_trial) return;
  {
    MutexLock lock(mutex_);
    if (!jobs_.empty()) return;  // nobody waits for what is only learned
  }
  const double spent = maker_.try_another(draft);
  MutexLock lock(mutex_);
  stats_.maker_seconds += spent;
  charge(*client, spent);
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
