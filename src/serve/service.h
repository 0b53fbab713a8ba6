// SPDX-License-Identifier: Apache-2.0
// The methods of cutwater.proto, by name, on plain bytes: a sample's bytes go from the workshop to
// the socket without passing through a message.
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "core/mutex.h"
#include "serve/data_sets.h"
#include "serve/workshop.h"

namespace cutwater::serve {

// A call that goes on until gRPC is done with it. The service holds it so long.
class Call : public grpc::ServerGenericBidiReactor {
 public:
  using Clock = std::chrono::steady_clock;

  virtual void drain() {}  // ends when what was ordered is sent
  virtual void end_if_idle(Clock::time_point now) = 0;
};

struct ServiceOptions {
  std::string token;            // that clients must show; empty: none
  int clients = 64;             // streams at once, of all trainers; and so many reads besides
  int in_flight = 256;          // samples that a client may have ordered and not yet got
  double begin_within_s = 10;   // a call that has asked for nothing by then is ended
  double taken_within_s = 120;  // a client that takes no answer for so long is gone
};

class Service final : public grpc::CallbackGenericService {
 public:
  // REQUIRES: both outlive the server that this is registered with.
  Service(DataSets& data, Workshop& shop, ServiceOptions options);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  // Calls end when what was ordered is sent; nothing new is taken.
  void drain();
  // Ends calls of clients that do nothing for too long. To be called about once a second.
  void end_idle_calls();

 private:
  friend class FetchCall;
  friend class ShortCall;
  friend class ReadCall;
  template <class Called, class... Arguments>
  Called* enter(Arguments&&... arguments);
  void leave(const Call* call);  // which is no more then
  // A place for one more of a kind of call, until give_place(). False: there is none.
  enum Kind : std::uint8_t { kStream, kRead, kQuestion, kKinds };
  int places(Kind kind) const;
  bool take_place(Kind kind);
  void give_place(Kind kind);
  grpc::Status check(const grpc::GenericCallbackServerContext& context) const;

  DataSets& data_;
  Workshop& shop_;
  const ServiceOptions options_;
  Mutex mutex_;
  std::set<std::shared_ptr<Call>> calls_ CUTWATER_GUARDED_BY(mutex_);
  std::array<int, kKinds> places_taken_ CUTWATER_GUARDED_BY(mutex_) = {};
  bool draining_ CUTWATER_GUARDED_BY(mutex_) = false;
};

// The machine that a call comes from, as gRPC names it.
std::string host_of(const grpc::GenericCallbackServerContext& context);

grpc::Status status_of(const Failure& failure);

}  // namespace cutwater::serve
