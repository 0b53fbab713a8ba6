// SPDX-License-Identifier: Apache-2.0
#include "cache/attachment.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cache/forks.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

std::shared_ptr<Segment> segment_of(Connection& connection) {
  try {
    return Segment::attach(connection.take_memory().release());
  } catch (const Error& error) {
    throw Error(Code::kUnavailable, "the memory of the cache at " + connection.path() +
                                        " cannot be used: " + error.failure().reason);
  }
}

}  // namespace

std::shared_ptr<Attachment> Attachment::make(const std::string& path,
                                             std::function<void()> changed) {
  return std::shared_ptr<Attachment>(new Attachment(path, std::move(changed)));
}

Attachment::Attachment(const std::string& path, std::function<void()> changed)
    : forks_(forks()),
      changed_(std::move(changed)),
      connection_(path, true),
      segment_(segment_of(connection_)) {
  if (connection_.hello().client >= segment_->shape().clients)
    throw Error(Code::kUnavailable, "the cache at " + path + " gave a number that there is not");
}

Attachment::~Attachment() {
  // A fork's copy of the socket would keep the connection open; a fork itself must not end it.
  if (forks_ == forks()) shutdown(connection_.socket().get(), SHUT_RDWR);
}

std::string Attachment::trouble() const {
  const MutexLock lock(words_);
  return trouble_;
}

std::shared_ptr<Reader> Attachment::reader() {
  return Reader::make(segment_, static_cast<int>(connection_.hello().client), shared_from_this());
}

std::optional<Attachment::Place> Attachment::reserve(const CacheKey& key, std::size_t size,
                                                     double seconds) {
  wire::Reserve question;
  question.key = key;
  question.size = size;
  question.seconds = seconds;
  const auto reply = ask<wire::ReserveReply>(question);
  if (!reply || reply->status != wire::Status::kDone) return {};
  if (!segment_->inside(reply->offset, size)) {
    become(State::kGone, "the cache at " + connection_.path() + " gave a place that there is not");
    return {};
  }
  return Place{reply->token, segment_->bytes(reply->offset, size)};
}

bool Attachment::commit(std::uint64_t token) {
  wire::Commit question;
  question.token = token;
  return ask<wire::CommitReply>(question, [&] { owe_abort(token); }).has_value();
}

void Attachment::abort(std::uint64_t token) {
  wire::Abort question;
  question.token = token;
  (void)ask<wire::AbortReply>(question, [&] { owe_abort(token); });
}

void Attachment::drop(const CacheKey& key) {
  wire::Drop question;
  question.key = key;
  (void)ask<wire::DropReply>(question);
}

std::optional<int> Attachment::join(const JobOffer& offer) {
  if (offer.forms.size() > kMostForms || offer.samples < 0) return {};
  wire::Join question;
  question.name = wire::name_field(offer.name);
  question.data = offer.data;
  question.samples = offer.samples;
  question.forms_count = static_cast<std::uint32_t>(offer.forms.size());
  std::copy(offer.forms.begin(), offer.forms.end(), question.forms.begin());
  const auto reply = ask<wire::JoinReply>(question);
  if (!reply || reply->status != wire::Status::kDone) return {};
  if (reply->seat >= segment_->shape().seats) {
    become(State::kGone, "the cache at " + connection_.path() + " gave a seat that there is not");
    return {};
  }
  return static_cast<int>(reply->seat);
}

void Attachment::leave(int seat) {
  wire::Leave question;
  question.seat = static_cast<std::uint32_t>(seat);
  (void)ask<wire::LeaveReply>(question, [&] { owe_leave(question.seat); });
}

template <class Reply, class Question>
std::optional<Reply> Attachment::ask(const Question& question, const std::function<void()>& owe) {
  const MutexLock lock(asking_);
  if (state() == State::kLate) owe();
  if (state() != State::kFine) return {};
  try {
    return connection_.ask<Reply>(question);
  } catch (const Error& error) {
    become(error.code() == Code::kTimeout ? State::kLate : State::kGone, error.failure().reason);
    return {};
  }
}

void Attachment::owe_abort(std::uint64_t token) { aborts_.emplace_back().token = token; }
void Attachment::owe_leave(std::uint32_t seat) { leaves_.emplace_back().seat = seat; }

void Attachment::look_after(const Descriptor& wake, int most_ms) {
  const bool late = state() == State::kLate;
  std::array<pollfd, 2> watched{
      {{wake.get(), POLLIN, 0},
       {connection_.socket().get(), static_cast<short>(POLLRDHUP | (late ? POLLIN : 0)), 0}}};
  if (poll(watched.data(), watched.size(), most_ms) <= 0) return;
  if ((watched[1].revents & POLLIN) != 0) take_late_answer();
  if ((watched[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
    become(State::kGone, "the cache at " + connection_.path() + " has closed the connection");
}

void Attachment::take_late_answer() {
  const MutexLock lock(asking_);
  const auto packet = connection_.late_answer();
  if (const auto place = wire::read<wire::ReserveReply>(packet)) {
    if (place->status == wire::Status::kDone) owe_abort(place->token);
  } else if (const auto seat = wire::read<wire::JoinReply>(packet)) {
    if (seat->status == wire::Status::kDone) owe_leave(seat->seat);
  }
  try {
    for (; !aborts_.empty(); aborts_.pop_back())
      (void)connection_.ask<wire::AbortReply>(aborts_.back());
    for (; !leaves_.empty(); leaves_.pop_back())
      (void)connection_.ask<wire::LeaveReply>(leaves_.back());
    become(State::kFine, "");
  } catch (const Error& error) {
    // Late a second time, with debts: a new connection is simpler, and pays them all.
    become(State::kGone, error.failure().reason);
  }
}

void Attachment::become(State state, const std::string& why) {
  {
    const MutexLock lock(words_);
    if (state_ == State::kGone) return;
    trouble_ = why;
    state_.store(state, std::memory_order_release);
  }
  if (state != State::kFine) changed_();
}

}  // namespace cutwater::cache
