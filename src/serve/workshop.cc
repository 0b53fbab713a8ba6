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

// What goes as it is stored waits for more of the kind until it is so much, or so old: several
// answers cost whoever sends them, and whoever gets them, little more than one.
constexpr std::size_t kGroupBytes = std::size_t{4} << 20;
constexpr double kGroupSeconds = 2e-3;

// A reader whose reads take no longer has done with what waits before another would be awake.
constexpr double kQuickRead = 200e-6;  // seconds

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
  bool has_left = false;
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
  Workshop& shop = shop_;  // a client that is served at once may be gone before the last line
  {
    MutexLock lock(shop.mutex_);
    for (Order& one : orders) state_->waiting.push_back(std::move(one));
  }
  shop.orders_changed_.notify_one();
}

void Workshop::Client::sent(int answers, std::size_t bytes) {
  bool may_go_on = false;
  {
    MutexLock lock(shop_.mutex_);
    const bool was_full = !shop_.has_room(*state_);
    state_->held_bytes -= bytes;
    shop_.stats_.bytes_held -= bytes;
    state_->begun -= answers;
    may_go_on = was_full && shop_.has_orders();
  }
  if (may_go_on) shop_.orders_changed_.notify_one();
}

void Workshop::Client::leave() {
  {
    MutexLock lock(shop_.mutex_);
    state_->waiting.clear();
    (void)state_->take_ready();
    state_->has_left = true;
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
    const double start = thread_seconds();
    while (read_one(client, order)) {
    }
    const double spent = thread_seconds() - start;
    MutexLock lock(mutex_);
    stats_.reader_seconds += spent;
  }
}

// Whether `order` is now another one of the same client, because answers wait to go together.
// Whoever stops there takes them along, also those of other readers.
bool Workshop::read_one(const ClientState& client, Order& order) {
  const std::uint64_t token = order.token;
  const double begun = now();
  Result<Draft> draft = maker_.begin(std::move(order), options_.makers > 0);
  const double taken = now() - begun;
  const bool has_work = draft && draft.value().has_work();
  Answer answer;
  if (has_work) {
    offer({client, std::move(draft).value(), 0});
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
    Client::State& its = *client;
    if (!has_work) {
      if (its.ready.empty()) its.ready_since = now();
      its.ready_bytes += account(its, answer);
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
  {
    MutexLock lock(mutex_);
    const double at = now();
    for (const ClientState& client : clients_)
      if (!client->ready.empty() && at - client->ready_since >= kGroupSeconds)
        groups.emplace_back(client, client->take_ready());
    if (has_orders()) orders_changed_.notify_all();
  }
  for (auto& [client, group] : groups) deliver(*client, std::move(group));
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
  std::vector<Answer> made;
  made.push_back(maker_.finish(draft));
  {
    MutexLock lock(mutex_);
    account(*client, made.front());
  }
  deliver(*client, std::move(made));
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

// Returns how many bytes it holds until they are sent.
std::size_t Workshop::account(Client::State& client, Answer& answer) {
  const std::size_t bytes = answer.form ? answer.form.value().size() : 0;
  ++stats_.answers;
  stats_.ran_less += answer.ran_less ? 1 : 0;
  stats_.failures += answer.form ? 0 : 1;
  stats_.stored_bytes += answer.stored_bytes;
  stats_.sent_bytes += static_cast<double>(bytes);
  stats_.maker_seconds += answer.seconds;
  charge(client, answer.seconds);
  if (client.has_left) return bytes;  // and so will they, at once
  client.held_bytes += bytes;
  stats_.bytes_held += bytes;
  return bytes;
}

void Workshop::deliver(Client::State& client, std::vector<Answer> answers) {
  if (answers.empty()) return;
  MutexLock lock(client.mutex);
  if (client.deliver) client.deliver(std::move(answers));
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
