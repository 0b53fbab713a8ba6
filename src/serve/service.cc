// SPDX-License-Identifier: Apache-2.0
#include "serve/service.h"

#include <openssl/crypto.h>

#include <atomic>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/caught.h"
#include "serve/fetch_call.h"

namespace cutwater::serve {
namespace {

namespace pb = wire::pb;
using grpc::Status;
using grpc::StatusCode;

constexpr int kMostQuestions = 64;  // about data sets, at once

// A call that is refused at once.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

// One request, one answer.
class ShortCall : public Call {
 public:
  ShortCall(Service& service, grpc::GenericCallbackServerContext& context)
      : service_(service), context_(context) {}

  void start() { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    since_ = Clock::now();
    asked_ = true;
    try {
      if (!ok || request_.Length() > wire::kMostRequestBytes)
        throw Error(Code::kUnavailable, wire::kDamaged);
      answer(request_);
    } catch (...) {
      Finish(status_of(caught(-1, "serve")));
    }
  }
  void OnDone() override { service_.leave(this); }  // destroys this

  void end_if_idle(Clock::time_point now) override {
    const double idle = std::chrono::duration<double>(now - since_.load()).count();
    const ServiceOptions& options = service_.options_;
    if (idle > (asked_ ? options.taken_within_s : options.begin_within_s)) context_.TryCancel();
  }

 protected:
  // Once, now or later, by send(). Throws Error.
  virtual void answer(const grpc::ByteBuffer& request) = 0;
  void send(const grpc::ByteBuffer& response) {
    response_ = response;
    since_ = Clock::now();
    StartWriteAndFinish(&response_, {}, Status::OK);
  }

 private:
  Service& service_;
  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer request_, response_;
  std::atomic<Clock::time_point> since_ = Clock::now();  // of the last sign of life
  std::atomic<bool> asked_ = false;
};

namespace {

// Answered on the spot.
template <class Request, class Answering>
class QuickCall final : public ShortCall {
 public:
  // REQUIRES: a place was taken; it is given back by `give_place`.
  QuickCall(Service& service, grpc::GenericCallbackServerContext& context, Answering answering,
            std::function<void()> give_place)
      : ShortCall(service, context),
        answering_(std::move(answering)),
        give_place_(std::move(give_place)) {}
  ~QuickCall() override { give_place_(); }

 private:
  void answer(const grpc::ByteBuffer& bytes) override {
    Request request;
    if (!wire::parse(bytes, request)) throw Error(Code::kUnavailable, wire::kDamaged);
    send(wire::bytes_of(answering_(request)));
  }

  const Answering answering_;
  const std::function<void()> give_place_;
};

}  // namespace

// One sample as it is stored.
class ReadCall final : public ShortCall {
 public:
  // REQUIRES: a place for a read was taken.
  ReadCall(Service& service, grpc::GenericCallbackServerContext& context, DataSets& data,
           Workshop& shop)
      : ShortCall(service, context),
        place_of_(service),
        data_(data),
        shop_(shop),
        host_(host_of(context)) {}
  ~ReadCall() override { place_of_.give_place(Service::kRead); }

 private:
  void answer(const grpc::ByteBuffer& bytes) override {
    pb::ReadRequest request;
    if (!wire::parse(bytes, request)) throw Error(Code::kUnavailable, wire::kDamaged);
    const std::shared_ptr<const Stream> stream = data_.plain(request);
    DataSets::check_id(*stream, request.id());
    // Whoever asks for nothing is no client: others share the workshop among them.
    client_.emplace(
        shop_, [this](std::vector<Answer> answers) { deliver(std::move(answers.front())); }, host_);
    client_->order({{0, request.id(), 0, 0, stream, true}});
  }
  void deliver(Answer answer) {
    pb::Reply reply;
    SharedBytes form;
    if (answer.form)
      form = std::move(answer.form).value();
    else
      *reply.mutable_failure() = wire::to_message(answer.form.failure());
    send(wire::reply_bytes(reply, form));
  }

  Service& place_of_;
  DataSets& data_;
  Workshop& shop_;
  const std::string host_;
  std::optional<Workshop::Client> client_;  // last: nothing is delivered once it is gone
};

std::string host_of(const grpc::GenericCallbackServerContext& context) {
  const std::string peer = context.peer();  // "ipv4:10.0.0.7:51234"
  return peer.substr(0, peer.rfind(':'));
}

Status status_of(const Failure& failure) {
  const auto code = [&] {
    switch (failure.code) {
      case Code::kInvalidArgument: return StatusCode::INVALID_ARGUMENT;
      case Code::kNotFound: return StatusCode::NOT_FOUND;
      case Code::kStale: return StatusCode::FAILED_PRECONDITION;
      case Code::kUnavailable: return StatusCode::UNAVAILABLE;
      default: return StatusCode::INTERNAL;
    }
  }();
  return {code, failure.reason};
}

Service::Service(DataSets& data, Workshop& shop, ServiceOptions options)
    : data_(data), shop_(shop), options_(std::move(options)) {}

// Takes as long for a wrong token as for the right one.
Status Service::check(const grpc::GenericCallbackServerContext& context) const {
  if (options_.token.empty()) return Status::OK;
  const std::string right = "Bearer " + options_.token;
  const auto shown = context.client_metadata().find("authorization");
  const bool same = shown != context.client_metadata().end() &&
                    shown->second.size() == right.size() &&
                    CRYPTO_memcmp(shown->second.data(), right.data(), right.size()) == 0;
  if (same) return Status::OK;
  return {StatusCode::UNAUTHENTICATED,
          "this server wants a token, and the one that came is missing or wrong; give the trainer "
          "the server's "
          "token (token=, CUTWATER_TOKEN)"};
}

grpc::ServerGenericBidiReactor* Service::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const auto refuse = [](const Status& status) {
    return std::make_unique<Refusal>(status).release();
  };
  if (const Status status = check(*context); !status.ok()) return refuse(status);
  const std::string& method = context->method();
  const auto busy = [&](const std::string& with) {
    return refuse({StatusCode::RESOURCE_EXHAUSTED, "this server " + with + "; ask again"});
  };
  const std::string clients = " (--clients " + std::to_string(options_.clients) + ")";
  const auto quick = [&]<class Request>(
                         auto answering,
                         std::type_identity<Request>) -> grpc::ServerGenericBidiReactor* {
    if (!take_place(kQuestion)) return busy("answers as many questions as it does at once");
    return enter<QuickCall<Request, decltype(answering)>>(*this, *context, answering,
                                                          [this] { give_place(kQuestion); });
  };
  if (method == wire::kDescribe)
    return quick([this](const auto& request) { return data_.describe(request); },
                 std::type_identity<pb::DescribeRequest>());
  if (method == wire::kList)
    return quick([this](const auto& request) { return data_.list(request); },
                 std::type_identity<pb::ListRequest>());
  if (method == wire::kRead) {
    if (take_place(kRead)) return enter<ReadCall>(*this, *context, data_, shop_);
    return busy("reads as many single samples as it does at once" + clients);
  }
  if (method == wire::kFetch) {
    if (take_place(kStream)) return enter<FetchCall>(*this, *context);
    return busy("has all the trainers that it takes" + clients);
  }
  return refuse({StatusCode::UNIMPLEMENTED, "there is no method " + method});
}

template <class Called, class... Arguments>
Called* Service::enter(Arguments&&... arguments) {
  const auto call = std::make_shared<Called>(std::forward<Arguments>(arguments)...);
  {
    MutexLock lock(mutex_);
    if (draining_) call->drain();
    calls_.insert(call);
  }
  call->start();
  return call.get();
}

void Service::leave(const Call* call) {
  std::shared_ptr<Call> last;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(calls_, call, &std::shared_ptr<Call>::get);
  if (found == calls_.end()) return;
  last = *found;
  calls_.erase(found);
}

int Service::places(Kind kind) const {
  return kind == kQuestion ? kMostQuestions : options_.clients;
}

bool Service::take_place(Kind kind) {
  MutexLock lock(mutex_);
  if (places_taken_[kind] >= places(kind)) return false;
  ++places_taken_[kind];
  return true;
}

void Service::give_place(Kind kind) {
  MutexLock lock(mutex_);
  --places_taken_[kind];
}

void Service::drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  for (const std::shared_ptr<Call>& call : calls_) call->drain();
}

void Service::end_idle_calls() {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Call>& call : calls_) call->end_if_idle(Call::Clock::now());
}

}  // namespace cutwater::serve
