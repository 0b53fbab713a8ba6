// SPDX-License-Identifier: Apache-2.0
// FetchClient: brings samples from near-storage servers. One thread and one queue for all servers;
// whatever becomes of a server, each sample that was asked for is handed out once: it is asked for
// again elsewhere, or later, or read by another path, or fails when patience is over.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "proto/messages.h"
#include "remote/absence.h"
#include "remote/part.h"
#include "remote/server_call.h"
#include "remote/steering.h"
#include "source/fetcher.h"

namespace cutwater::remote {

class FetchClient final : public Fetcher {
 public:
  // What is to be read from the source is when `absence` has begun. REQUIRES: there are parts, one
  // behind the other, whose samples stand at the same cut.
  FetchClient(const std::vector<Part>& parts, const RemoteOptions& options, const FetchJob& job,
              std::shared_ptr<Absence> absence);
  ~FetchClient() override;
  FetchClient(const FetchClient&) = delete;
  FetchClient& operator=(const FetchClient&) = delete;

  void ask(std::uint64_t token, SampleId id, std::uint32_t epoch, bool as_stored) override;
  std::vector<Fetched> wait() override;
  void close() override;
  std::size_t usual_bytes() const override;
  void note(const Progress& progress) override;
  void took(const Fetched& fetched, double seconds) override;
  FetchReport report() const override;

 private:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  static double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
  }
  static Clock::duration duration(double seconds) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  static constexpr double kLeastHedge = 0.1;  // seconds until a sample is asked for elsewhere, too

  struct Holding;
  struct Asked {
    std::uint64_t token = 0;
    SampleId id = 0;
    std::uint32_t epoch = 0;
    bool as_stored = false;
    Time sent = {};
    int damaged = 0;                       // times that what came was not what was sent
    std::set<std::size_t> at = {};         // servers that have been asked and have not answered
    std::set<std::size_t> failed_at = {};  // servers that could not send it, in this round of them
    std::optional<Failure> failure = {};   // what comes of that if no other server can, either
    bool hedged = false;
    Holding* of = nullptr;  // once it was taken up
  };
  // A part, and what goes on with it.
  struct Holding {
    Part part;
    wire::pb::Begin begin;
    std::vector<std::size_t> servers = {};
    std::size_t asked = 0;  // for so many samples
    std::deque<std::uint64_t> unsent = {};
    Time last_progress = {};
    bool on_fallback = false;  // no server has sent anything since it was last taken
  };
  struct Server {
    std::string address;
    Holding* of = nullptr;
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<ServerCall> call;  // null: there is none
    bool begun = false;                // it knows the stream
    std::set<std::uint64_t> asked;     // tokens
    Time retry_at = {}, receiving_since = {};
    std::optional<Time> receive_at;  // held back by the link until then
    double backoff_s = 0;
    double silence_s = 0;            // it may say nothing so long; longer where that did not do
    bool doubted = false;            // it has said nothing for too long, and nothing since
    std::int64_t threads = 0;        // that run ops, as its answers say; 0: none has come
    std::string trouble;             // why there is no call, or the last one ended
    std::optional<Failure> refused;  // for good
    bool up() const { return call && !call->broken(); }
    // One sample shows whether a server that fell silent has come to itself.
    bool takes_more() const { return call && call->writable() && (!doubted || asked.empty()); }
  };
  struct Due {
    Time at;
    Fetched fetched;
  };

  // All that follow are the thread's.
  void run();
  template <class Work>
  void guarded(Work&& work);
  void go_on(Time now);
  bool all_closed();
  Time next_time(Time now) const;
  void take_new();
  void connect(Time now);
  void handle(std::unique_ptr<ServerCall::Tag> tag, bool ok);
  void receive(Server& server);
  void received(Server& server);
  void accept(Server& server, wire::ReceivedReply received, std::size_t bytes, Time due);
  Result<Sample> sample_in(const Asked& asked, wire::ReceivedReply& received,
                           std::size_t& held_bytes);
  bool ask_elsewhere(Asked& asked, std::size_t failed, bool or_again);
  void settle(Holding& holding, Time now);
  void forget(std::uint64_t token);
  void count_threads(Server& server, std::int64_t threads);
  void ended(Server& server);
  Holding& holding_of(SampleId id);
  void send(Holding& holding, Time now);
  Server* best_for(const Asked& asked);
  void send_to(Server& server, Time now, const std::vector<Asked*>& batch);
  void hedge(Time now);
  double least_silence_s() const;
  void end_stalled(Time now);
  void give_up(Holding& holding, Time now);
  void take_fallback(Holding& holding, Time now);
  void fail(const Holding& holding, const Failure& failure);
  void fail_all(const Failure& failure);
  void hand_out_due(Time now);
  std::size_t server_number(const Server& server) const {
    return static_cast<std::size_t>(&server - servers_.data());
  }

  const RemoteOptions options_;
  const FetchJob job_;
  const std::shared_ptr<Absence> absence_;
  Steering steering_;

  grpc::CompletionQueue queue_;
  grpc::Alarm alarm_;
  std::vector<Holding> holdings_;  // by first
  std::vector<Server> servers_;
  std::map<std::uint64_t, Asked> asked_;
  std::vector<Due> due_;
  Time last_due_ = Clock::now();
  double usual_latency_s_ = 0;
  double receiving_s_ = 0, received_bytes_ = 0;  // CPU until bytes are here, and bytes; fading

  mutable Mutex mutex_;
  Condition arrived_changed_;
  std::vector<Asked> new_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<Fetched> arrived_ CUTWATER_GUARDED_BY(mutex_);
  bool alarm_set_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool closed_ CUTWATER_GUARDED_BY(mutex_) = false;
  Progress progress_ CUTWATER_GUARDED_BY(mutex_);
  std::vector<WayWork> way_work_ CUTWATER_GUARDED_BY(mutex_);  // of the trainer, by way
  Made made_ CUTWATER_GUARDED_BY(mutex_);
  FetchReport report_ CUTWATER_GUARDED_BY(mutex_);
  double usual_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::thread thread_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater::remote
