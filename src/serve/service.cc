// SPDX-License-Identifier: Apache-2.0
#include "serve/service.h"

#include <openssl/crypto.h>

#include <functional>
#include <optional>
#include <utility>

#include "core/caught.h"
#include "serve/fetch_call.h"

namespace cutwater::serve {
namespace {

namespace pb = wire::pb;
using grpc::Status;
using grpc::StatusCode;

// A call that is refused at once.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// One request, one answer, made on the spot.
class ShortCall final : public grpc::ServerGenericBidiReactor {
 public:
  using Answering = std::function<grpc::ByteBuffer(const grpc::ByteBuffer& request)>;
  explicit ShortCall(Answering answering) : answering_(std::move(answering)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    try {
      if (!ok || request_.Length() > wire::kMostRequestBytes)
        throw Error(Code::kUnavailable, wire::kDamaged);
      response_ = answering_(request_);
    } catch (...) {
      Finish(status_of(caught(-1, "serve")));
      return;
    }
    StartWriteAndFinish(&response_, {}, Status::OK);
  }
  void OnDone() override { delete this; }

 private:
  const Answering answering_;
  grpc::ByteBuffer request_, response_;
};

// One sample as it is stored.
class ReadCall final : public grpc::ServerGenericBidiReactor {
 public:
  ReadCall(DataSets& data, Workshop& shop) : data_(data), shop_(shop) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    try {
      pb::ReadRequest request;
      if (!ok || request_.Length() > wire::kMostRequestBytes || !wire::parse(request_, request))
        throw Error(Code::kUnavailable, wire::kDamaged);
      const std::shared_ptr<const Stream> stream = data_.plain(request.name());
      DataSets::check_id(*stream, request.id());
      // Whoever asks for nothing is no client: others share the workshop among them.
      client_.emplace(shop_,
                      [this](std::vector<Answer> answers) { deliver(std::move(answers.front())); });
      client_->order({{0, request.id(), 0, 0, stream, true}});
    } catch (...) {
      Finish(status_of(caught(-1, "serve")));
    }
  }
  void OnDone() override {
    client_.reset();
    delete this;
  }

 private:
  void deliver(Answer answer) {
    pb::Reply reply;
    SharedBytes form;
    if (answer.form)
      form = std::move(answer.form).value();
    else
      *reply.mutable_failure() = wire::to_message(answer.form.failure());
    response_ = wire::reply_bytes(reply, form);
    StartWriteAndFinish(&response_, {}, Status::OK);
  }

  DataSets& data_;
  Workshop& shop_;
  grpc::ByteBuffer request_, response_;
  std::optional<Workshop::Client> client_;
};

template <class Request, class Answering>
grpc::ServerGenericBidiReactor* short_call(Answering answering) {
  auto call = std::make_unique<ShortCall>([answering](const grpc::ByteBuffer& bytes) {
    Request request;
    if (!wire::parse(bytes, request)) throw Error(Code::kUnavailable, wire::kDamaged);
    return wire::bytes_of(answering(request));
  });
  return call.release();
}

}  // namespace

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
  if (method == wire::kDescribe)
    return short_call<pb::DescribeRequest>(
        [this](const auto& request) { return data_.describe(request); });
  if (method == wire::kList)
    return short_call<pb::ListRequest>([this](const auto& request) { return data_.list(request); });
  if (method == wire::kRead) return std::make_unique<ReadCall>(data_, shop_).release();
  if (method != wire::kFetch)
    return refuse({StatusCode::UNIMPLEMENTED, "there is no method " + method});

  auto call = std::make_shared<FetchCall>(*this, *context);
  enter(call);
  call->start();
  return call.get();
}

void Service::enter(std::shared_ptr<FetchCall> call) {
  MutexLock lock(mutex_);
  if (draining_) call->drain();
  calls_.insert(std::move(call));
}

void Service::leave(const FetchCall* call) {
  std::shared_ptr<FetchCall> last;  // destroyed without the lock
  MutexLock lock(mutex_);
  const auto found = std::ranges::find(calls_, call, &std::shared_ptr<FetchCall>::get);
  if (found == calls_.end()) return;
  last = *found;
  calls_.erase(found);
}

void Service::drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  for (const std::shared_ptr<FetchCall>& call : calls_) call->drain();
}

void Service::end_idle_calls() {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<FetchCall>& call : calls_) call->end_if_idle(FetchCall::Clock::now());
}

}  // namespace cutwater::serve
