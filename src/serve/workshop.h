// SPDX-License-Identifier: Apache-2.0
// Workshop: the server's threads and who they work for. Readers bring stored bytes and choose a
// way; makers run ops.
//
// The makers' time goes to whoever saves most bytes with a second of it, whosever sample that is;
// but each machine that clients are on has a floor, a share of the time that others cannot take;
// its clients divide it, so that nobody gets more for being many. What waits longer than its
// trainer can do without it goes as it is stored: a trainer's wish is advice, and a slow answer is
// worse than a large one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "proto/messages.h"
#include "serve/sample_maker.h"
#include "serve/sending_cost.h"

namespace cutwater::serve {

struct WorkshopOptions {
  int readers = 4;
  int makers = 1;                             // 0: everything goes as it is stored
  std::size_t memory = std::size_t{1} << 30;  // read or made and not yet sent, of all clients
  std::size_t client_memory = std::size_t{128} << 20;  // of one; but always one sample
  std::size_t answer_bytes = wire::kMostFormBytes;     // of a sample; larger ones are refused
  double floor = 0.5;            // of an equal share of the makers' time for each machine
  double wait_seconds = 0.5;     // for a maker, of what nobody says more about…
  double most_wait_seconds = 1;  // …and at most
  MakerOptions maker;
};

struct WorkshopStats {
  std::int64_t answers = 0, ran_less = 0, failures = 0;
  double stored_bytes = 0, sent_bytes = 0, maker_seconds = 0, reader_seconds = 0;
  std::int64_t clients = 0, waiting = 0;  // orders
  std::size_t bytes_held = 0;             // read or made, and not yet sent
  // Of the cache: answers made of what it had; those that could have been; what it holds.
  std::int64_t cache_hits = 0, cache_misses = 0;
  std::size_t cache_bytes = 0;
};

class Workshop {
 public:
  explicit Workshop(WorkshopOptions options);
  ~Workshop();  // orders that were not begun are dropped
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  // One who orders. Any thread; `deliver` is called from the workshop's threads.
  class Client {
   public:
    using Deliver = std::function<void(std::vector<Answer> answers)>;
    // `host`: the machine that it is on. REQUIRES: the workshop outlives this.
    Client(Workshop& shop, Deliver deliver, std::string host = {});
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void order(std::vector<Order> orders);
    // So many answers have left, of so many bytes.
    void sent(int answers, std::size_t bytes);
    // Orders that no maker has begun are dropped, one that is being made is given up after its next
    // op, and nothing is delivered any more once this returns.
    void leave();

    double maker_seconds() const;  // that went to this client

   private:
    friend class Workshop;
    struct State;
    Workshop& shop_;
    const std::shared_ptr<State> state_;
  };

  // To be called some times a second. While reads are quick, few readers are awake: what one of
  // them keeps waiting that meets a slow one, others take over. And what has waited too long goes
  // as stored, also while no maker comes to an end with what it does.
  void look_after();

  // That makers have less for each byte that is sent; 0: they have cores that sending leaves alone,
  // or it is not known yet.
  double send_seconds_per_byte() const;

  WorkshopStats stats() const;

 private:
  using ClientState = std::shared_ptr<Client::State>;
  struct Job {
    ClientState client;
    Draft draft;
    double until = 0;            // it may wait
    std::size_t read_bytes = 0;  // that it holds meanwhile
  };

  void read_loop();
  bool read_one(const ClientState& client, Order& order);
  void make_loop();
  bool has_orders() const CUTWATER_REQUIRES(mutex_);
  bool has_room(const Client::State& client) const CUTWATER_REQUIRES(mutex_);
  bool hold(Client::State& client, std::size_t before, std::size_t after) CUTWATER_REQUIRES(mutex_);
  bool may_begin(const Client::State& client) const CUTWATER_REQUIRES(mutex_);
  bool take_order(ClientState& client, Order& order) CUTWATER_REQUIRES(mutex_);
  bool take_another(Client::State& client, Order& order) CUTWATER_REQUIRES(mutex_);
  template <class Which>
  std::list<Job> take_jobs(Which which) CUTWATER_REQUIRES(mutex_);
  std::list<Job> take_late(bool others_wait) CUTWATER_REQUIRES(mutex_);
  void answer_as_stored(std::list<Job> jobs);
  bool several_wait() const CUTWATER_REQUIRES(mutex_);  // clients, for a maker
  std::list<Job>::iterator best_job(bool others_wait) CUTWATER_REQUIRES(mutex_);
  double used_seconds() const CUTWATER_REQUIRES(mutex_);
  SendingCost::SoFar spent_so_far() const CUTWATER_REQUIRES(mutex_);
  bool below_floor(const Client::State& client, double at, double used) const
      CUTWATER_REQUIRES(mutex_);
  void offer(Job job);
  void answer(const Job& job);
  void refuse_large(Answer& answer) const;
  std::size_t account(Client::State& client, Answer& answer, std::size_t read_bytes)
      CUTWATER_REQUIRES(mutex_);
  void deliver(Client::State& client, std::vector<Answer> answers);
  void charge(Client::State& client, double seconds) CUTWATER_REQUIRES(mutex_);

  const WorkshopOptions options_;
  const bool sends_beside_;  // on the makers' cores
  const SampleMaker maker_;
  mutable Mutex mutex_;
  Condition orders_changed_, jobs_changed_;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::vector<ClientState> clients_ CUTWATER_GUARDED_BY(mutex_);
  std::map<std::string, int> hosts_ CUTWATER_GUARDED_BY(mutex_);  // clients of each
  std::size_t next_client_ CUTWATER_GUARDED_BY(mutex_) = 0;
  double usual_read_ CUTWATER_GUARDED_BY(mutex_) = 1;  // seconds
  std::list<Job> jobs_ CUTWATER_GUARDED_BY(mutex_);
  WorkshopStats stats_ CUTWATER_GUARDED_BY(mutex_);
  SendingCost sending_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace cutwater::serve
