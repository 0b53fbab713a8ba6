// SPDX-License-Identifier: Apache-2.0
#include "serve/fetch_call.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/caught.h"

namespace cutwater::serve {
namespace {

namespace pb = wire::pb;

// A message takes no more than the wire carries in so long, within limits.
constexpr double kMessageSeconds = 5e-3, kLeastMessage = 256 << 10, kMostMessage = 4 << 20;

float as_float(double value) { return static_cast<float>(value); }

}  // namespace

// An answer as it goes out; `queued_s` is how long it has waited for that, the rest is the
// server's.
static pb::Reply message_of(const Answer& answer, double queued_s, int threads, double send_s) {
  pb::Reply reply;
  reply.set_token(answer.token);
  reply.set_way(static_cast<std::uint32_t>(answer.way));
  reply.set_stored_bytes(static_cast<std::uint64_t>(answer.stored_bytes));
  reply.set_storage_s(as_float(answer.seconds));
  for (const Offer& offer : answer.offers) {
    reply.add_way_bytes(as_float(offer.bytes));
    reply.add_way_s(as_float(offer.seconds));
  }
  reply.set_queued_s(as_float(queued_s));
  reply.set_ran_less(answer.ran_less);
  reply.set_path(answer.path);
  reply.set_threads(static_cast<std::uint32_t>(threads));
  reply.set_send_s_per_byte(as_float(send_s));
  if (!answer.form) *reply.mutable_failure() = wire::to_message(answer.form.failure());
  return reply;
}

FetchCall::FetchCall(Service& service, grpc::GenericCallbackServerContext& context)
    : service_(service),
      context_(context),
      most_in_message_(static_cast<std::size_t>(kLeastMessage)),
      client_(
          service.shop_, [this](std::vector<Answer> answers) { deliver(std::move(answers)); },
          host_of(context)) {}

void FetchCall::start() {
  MutexLock lock(mutex_);
  read_on();
}

void FetchCall::OnReadDone(bool ok) {
  std::optional<grpc::Status> refused;
  if (ok) {
    try {
      pb::FetchRequest request;
      if (request_.Length() > wire::kMostRequestBytes || !wire::parse(request_, request))
        throw Error(Code::kUnavailable, wire::kDamaged);
      take(request);
    } catch (...) {
      refused = status_of(caught(-1, "serve"));
    }
  }
  MutexLock lock(mutex_);
  reading_ = false;
  if (!ok) no_more_orders_ = true;
  if (refused)
    end(std::move(*refused));
  else if (ok && ordered_ < service_.options_.in_flight)  // else when an answer was taken
    read_on();
  end_when_done();
}

void FetchCall::take(const pb::FetchRequest& request) {
  if (request.wanted_size() > wire::kMostWanted)
    throw Error(Code::kInvalidArgument, "a request may name " + std::to_string(wire::kMostWanted) +
                                            " samples at most, this one has " +
                                            std::to_string(request.wanted_size()));
  if (request.has_begin()) stream_ = service_.data_.stream(request.begin());
  if (!stream_)
    throw Error(Code::kInvalidArgument,
                "the first message must say which stream of samples it is about");
  Worth worth;
  if (const auto given = static_cast<std::size_t>(request.worth_size()); given > 0) {
    if (given != stream_->book->ways().size())
      throw Error(Code::kInvalidArgument, "there must be as many worths as ways");
    const auto is_worth = [](float value) { return std::isfinite(value) && value >= 0; };
    Worths worths;
    for (const float value : request.worth()) worths.byte.push_back(is_worth(value) ? value : 1);
    worths.needed = is_worth(request.needed_worth()) ? request.needed_worth() : 0;
    worth = std::make_shared<const Worths>(std::move(worths));
  }
  std::vector<Order> orders;
  for (const pb::Wanted& wanted : request.wanted()) {
    DataSets::check_id(*stream_, wanted.id());
    const double price = wanted.price() >= 0 ? wanted.price() : 0;  // not a number: any
    const double within_s = wanted.within_s() >= 0 ? wanted.within_s() : 0;
    orders.push_back({wanted.token(), wanted.id(), wanted.epoch(), price, stream_,
                      wanted.as_stored(), within_s, worth});
  }
  {
    MutexLock lock(mutex_);
    begun_ = true;
    ordered_ += request.wanted_size();
  }
  client_.order(std::move(orders));
}

void FetchCall::deliver(std::vector<Answer> answers) {
  MutexLock lock(mutex_);
  if (status_) return;
  const Clock::time_point now = Clock::now();
  for (Answer& answer : answers) out_.push_back({std::move(answer), now});
  write_next();
}

// Messages cost more than what they carry, yet on a slow wire nothing should wait long for what
// comes with it. What the first ones meet are empty buffers, which tell nothing of the wire.
void FetchCall::learn_wire(std::size_t bytes) {
  const std::chrono::duration<double> taken = Clock::now() - write_began_;
  wire_rate_ += 0.2 * (static_cast<double>(bytes) / std::max(taken.count(), 1e-6) - wire_rate_);
  const double wanted = std::clamp(wire_rate_ * kMessageSeconds, kLeastMessage, kMostMessage);
  most_in_message_ = std::min(2 * most_in_message_, static_cast<std::size_t>(wanted));
}

// All that waits, as far as one message takes it.
void FetchCall::write_next() {
  if (writing_ || status_ || out_.empty()) return;
  write_began_ = Clock::now();
  const double send_s = service_.shop_.send_seconds_per_byte();
  wire::ReplyGroup group;
  for (; !out_.empty(); out_.pop_front()) {
    Waiting& next = out_.front();
    const std::size_t bytes = next.answer.form ? next.answer.form.value().size() : 0;
    if (!group.empty() && group.bytes() + bytes > most_in_message_) break;
    const std::chrono::duration<double> queued = write_began_ - next.since;
    pb::Reply reply = message_of(next.answer, queued.count(), service_.data_.threads(), send_s);
    group.add(reply, next.answer.form ? std::move(next.answer.form).value() : SharedBytes());
    writing_bytes_ += bytes;
    ++writing_answers_;
  }
  response_ = group.message();
  writing_ = true;
  StartWrite(&response_);
}

void FetchCall::OnWriteDone(bool ok) {
  int answers = 0;
  std::size_t bytes = 0;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    answers = std::exchange(writing_answers_, 0);
    bytes = std::exchange(writing_bytes_, 0);
    learn_wire(bytes);
    response_.Clear();
    ordered_ -= answers;
    if (!ok) {
      end(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection was lost"));
    } else {
      write_next();
      if (!reading_ && ordered_ < service_.options_.in_flight) read_on();
    }
    end_when_done();
  }
  client_.sent(answers, bytes);
}

void FetchCall::read_on() {
  if (reading_ || no_more_orders_ || draining_ || status_) return;
  reading_ = true;
  StartRead(&request_);
}

// Ends with this status as soon as nothing is being written.
void FetchCall::end(grpc::Status status) {
  if (!status_) status_ = std::move(status);
  out_.clear();
}

void FetchCall::end_when_done() {
  const bool all_sent = ordered_ == 0 && out_.empty();
  if (!status_ && all_sent && no_more_orders_) status_ = grpc::Status::OK;
  if (!status_ && all_sent && draining_)
    status_ = grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is going down");
  if (!status_ || writing_ || finished_) return;
  finished_ = true;
  Finish(*status_);
}

void FetchCall::drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  end_when_done();
}

void FetchCall::end_if_idle(Clock::time_point now) {
  const auto is_over = [now](Clock::time_point since, double seconds) {
    return std::chrono::duration<double>(now - since).count() > seconds;
  };
  MutexLock lock(mutex_);
  const bool late = !begun_ && is_over(entered_, service_.options_.begin_within_s);
  // Whatever else it says, and though the call is to end already: what is being written keeps it.
  const bool stuck = writing_ && is_over(write_began_, service_.options_.taken_within_s);
  if (!stuck && (status_ || !late)) return;
  end(grpc::Status(
      grpc::StatusCode::DEADLINE_EXCEEDED,
      late ? "a call must begin with its stream of samples" : "no answer was taken for too long"));
  if (stuck) context_.TryCancel();
  end_when_done();
}

void FetchCall::OnCancel() {
  MutexLock lock(mutex_);
  end(grpc::Status(grpc::StatusCode::CANCELLED, "the trainer has left"));
  end_when_done();
}

void FetchCall::OnDone() {
  client_.leave();
  service_.give_place(Service::kStream);
  service_.leave(this);  // destroys this
}

}  // namespace cutwater::serve
