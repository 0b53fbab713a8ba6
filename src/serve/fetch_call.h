// SPDX-License-Identifier: Apache-2.0
// FetchCall: one trainer's stream of orders and answers. Answers go out as they are made, in any
// order.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "serve/service.h"

namespace cutwater::serve {

class FetchCall final : public Call {
 public:
  FetchCall(Service& service, grpc::GenericCallbackServerContext& context);

  void start();  // once the service holds it
  void drain() override;
  void end_if_idle(Clock::time_point now) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Waiting {
    Answer answer;
    Clock::time_point since;
  };

  // Throws Error.
  void take(const wire::pb::FetchRequest& request);
  void deliver(std::vector<Answer> answers);
  void learn_wire(std::size_t bytes) CUTWATER_REQUIRES(mutex_);
  void write_next() CUTWATER_REQUIRES(mutex_);
  void read_on() CUTWATER_REQUIRES(mutex_);
  void end(grpc::Status status) CUTWATER_REQUIRES(mutex_);
  void end_when_done() CUTWATER_REQUIRES(mutex_);

  Service& service_;
  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer request_, response_;
  std::shared_ptr<const Stream> stream_;  // of the reading side alone
  const Clock::time_point entered_ = Clock::now();

  Mutex mutex_;
  std::deque<Waiting> out_ CUTWATER_GUARDED_BY(mutex_);
  int ordered_ CUTWATER_GUARDED_BY(mutex_) = 0;  // and not yet sent
  int writing_answers_ CUTWATER_GUARDED_BY(mutex_) = 0;
  std::size_t writing_bytes_ CUTWATER_GUARDED_BY(mutex_) = 0;
  Clock::time_point write_began_ CUTWATER_GUARDED_BY(mutex_) = {};
  double wire_rate_ CUTWATER_GUARDED_BY(mutex_) = 0;  // bytes a second that it has taken of late
  std::size_t most_in_message_ CUTWATER_GUARDED_BY(mutex_);
  bool begun_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool reading_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool writing_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool no_more_orders_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool draining_ CUTWATER_GUARDED_BY(mutex_) = false;
  bool finished_ CUTWATER_GUARDED_BY(mutex_) = false;
  std::optional<grpc::Status> status_ CUTWATER_GUARDED_BY(mutex_);  // set: it ends
  Workshop::Client client_;  // last: nothing is delivered before all else is there
};

}  // namespace cutwater::serve
