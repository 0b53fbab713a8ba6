// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_source.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/caught.h"
#include "remote/fetch_client.h"
#include "remote/joined_source.h"
#include "remote/status.h"
#include "source/limited.h"
#include "variant/form.h"

namespace cutwater::remote {
namespace {

constexpr double kOneTry = 10, kLeastTry = 0.05;  // seconds
constexpr std::chrono::milliseconds kPause{50};   // between tries of all servers

// One call, to its end or its deadline.
grpc::Status call_once(const std::shared_ptr<grpc::Channel>& channel, const RemoteOptions& options,
                       const char* method, const grpc::ByteBuffer& request, double seconds,
                       grpc::ByteBuffer& response) {
  grpc::ClientContext context;
  add_token(context, options);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(static_cast<int>(1000 * seconds)));
  grpc::CompletionQueue queue;
  grpc::GenericStub stub(channel);
  const auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  grpc::Status status;
  call->StartCall();
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return status;
}

bool is_gone(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

// Of what a server says of itself, not of a sample.
bool is_gone_or_refuses(Code code) {
  return is_gone(code) || code == Code::kStale || code == Code::kNotFound ||
         code == Code::kInvalidArgument;
}

// What a server would say of it.
wire::pb::DataSet described(const Source& source, const std::string& name) {
  wire::pb::DataSet data;
  data.set_name(name);
  data.set_size(source.size());
  data.set_has_labels(source.has_labels());
  for (const std::string& one : source.classes()) data.add_classes(one);
  data.set_identity(source.identity());
  data.set_stamp(source.stamp());
  data.set_cut(source.cut());
  data.set_fingerprint(source.fingerprint());
  data.set_pipeline(source.pipeline());
  data.set_version(wire::kVersion);
  return data;
}

}  // namespace

void check_version(const std::string& server, const wire::pb::DataSet& said) {
  if (said.version() == wire::kVersion) return;
  throw Error(Code::kInvalidArgument,
              server + " speaks version '" + said.version() + "' of the protocol, this trainer '" +
                  wire::kVersion + "'; install the same version of cutwater on both machines");
}

RemoteSource::RemoteSource(Url url, RemoteOptions options)
    : url_(std::move(url)), options_(std::move(options)) {
  for (const std::string& address : url_.servers)
    servers_.push_back({address, open_channel(address, url_.tls, options_)});
  wire::pb::DescribeRequest request;
  request.set_name(url_.name);
  if (!describe(request)) return;
  check_version(url_.text(), data_);
  if (data_.size() < 0 || data_.cut() < 0)
    throw Error(Code::kUnavailable, url_.text() + " says nothing that makes sense of its data set");
  classes_.assign(data_.classes().begin(), data_.classes().end());
  // All that answer must have the same; one that is down now is looked at when it is asked for
  // samples.
  for (const Server& server : servers_) {
    grpc::ByteBuffer response;
    const grpc::Status status = call_once(server.channel, options_, wire::kDescribe,
                                          wire::bytes_of(request), one_try_s(), response);
    wire::pb::DataSet other;
    if (is_refusal(status)) throw Error(failure_of(server.address, status));
    if (!status.ok() || !wire::parse(response, other)) continue;
    check_version(server.address, other);
    if (other.identity() != data_.identity() || other.cut() != data_.cut() ||
        other.fingerprint() != data_.fingerprint())
      throw Error(Code::kStale, "the servers of " + url_.text() + " do not have the same data: " +
                                    server.address + " has " + std::to_string(other.size()) +
                                    " other samples; name those that do");
  }
  if (options_.fallback && options_.fallback->identity() != data_.identity())
    throw Error(Code::kStale, "fallback: it does not have the samples of " + url_.text() +
                                  "; it must be a copy of the folder that the server has");
}

// False: none answers, and the fallback says what there is; it also has the listing.
bool RemoteSource::describe(const wire::pb::DescribeRequest& request) try {
  call(wire::kDescribe, request,
       options_.fallback ? std::min(kFallbackAfter, options_.patience_s) : options_.patience_s,
       [&](const grpc::ByteBuffer& bytes) {
         return wire::parse(bytes, data_) ? Answered::kSound : Answered::kDamaged;
       });
  return true;
} catch (const Error& error) {
  if (!options_.fallback || !is_gone(error.code())) throw;
  const Source& fallback = *options_.fallback;
  data_ = described(fallback, url_.name);
  classes_ = fallback.classes();
  absence_->begin();
  MutexLock lock(mutex_);
  for (SampleId id = 0; id < fallback.size(); ++id) {
    paths_.push_back(fallback.path(id));
    if (fallback.has_labels()) labels_.push_back(fallback.label(id));
  }
  listed_ = true;
  return false;
}

// All servers can be tried once within the patience.
double RemoteSource::one_try_s() const {
  return std::min(kOneTry, options_.patience_s / static_cast<double>(servers_.size()));
}

bool RemoteSource::call(const char* method, const google::protobuf::MessageLite& request,
                        double patience_s,
                        const std::function<Answered(const grpc::ByteBuffer& answer)>& look) const {
  const auto start = Clock::now();
  const grpc::ByteBuffer bytes = wire::bytes_of(request);
  bool failed = false;
  const auto waited = [start] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  double one_try_s = this->one_try_s();
  for (;;) {
    Failure last;
    std::optional<Failure> refused;
    bool may_come = false;  // a server that says nothing, or what is damaged
    bool too_late = false;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const Server& server = servers_[i];
      const double share_s = (patience_s - waited()) / static_cast<double>(servers_.size() - i);
      grpc::ByteBuffer response;
      grpc::Status status = call_once(server.channel, options_, method, bytes,
                                      std::clamp(share_s, kLeastTry, one_try_s), response);
      too_late = too_late || status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
      if (status.ok()) {
        const Answered answered = look(response);
        if (answered == Answered::kSound) return true;
        failed = failed || answered == Answered::kFailed;
        if (answered == Answered::kFailed) continue;
        status = {grpc::StatusCode::UNAVAILABLE, wire::kDamaged};
      }
      last = failure_of(server.address, status);
      if (is_refusal(status)) {
        if (!refused) refused = last;
      } else {
        may_come = true;
      }
    }
    if (failed && !may_come) return false;
    if (refused) throw Error(*refused);
    if (too_late) one_try_s *= 2;  // what is large takes its time
    if (failed) patience_s = std::min(kFallbackAfter, patience_s);
    if (waited() + kLeastTry > patience_s) {
      if (failed) return false;
      last.reason = "no server of " + url_.text() + " answers (" + last.reason +
                    "); is 'cutwater serve' running there?";
      throw Error(last);
    }
    std::this_thread::sleep_for(kPause);
  }
}

template <class Answer>
Answer RemoteSource::call(const char* method, const google::protobuf::MessageLite& request) const {
  Answer answer;
  call(method, request, options_.patience_s, [&](const grpc::ByteBuffer& bytes) {
    return wire::parse(bytes, answer) ? Answered::kSound : Answered::kDamaged;
  });
  return answer;
}

Result<Sample> RemoteSource::read(SampleId id, const ReadContext& into) const try {
  if (!options_.fallback) return read_remote(id, into, options_.patience_s);
  if (absence_->lasts()) return options_.fallback->read(id, into);
  Result<Sample> sample = read_remote(id, into, std::min(kFallbackAfter, options_.patience_s));
  if (!sample && is_servers_own(sample.failure())) return options_.fallback->read(id, into);
  return sample;
} catch (...) {
  Failure failure = caught(id, "read");
  if (!options_.fallback || !is_gone_or_refuses(failure.code)) return failure;
  absence_->begin();
  return options_.fallback->read(id, into);
}

Result<Sample> RemoteSource::read_remote(SampleId id, const ReadContext& into,
                                         double patience_s) const {
  wire::pb::ReadRequest request;
  request.set_name(data_.name());
  request.set_id(id);
  request.set_identity(data_.identity());
  request.set_version(wire::kVersion);
  std::optional<Result<Sample>> sample;
  call(wire::kRead, request, patience_s, [&](const grpc::ByteBuffer& response) {
    std::optional<wire::ReceivedReply> received =
        wire::parse_reply(response, [&](std::size_t size) { return into.allocate(size); });
    if (!received) return Answered::kDamaged;
    if (options_.link) options_.link->wait_until(options_.link->book(response.Length()));
    if (received->reply.has_failure()) {
      sample = wire::from_message(received->reply.failure(), id);
      return is_servers_own(sample->failure()) ? Answered::kFailed : Answered::kSound;
    }
    auto form = std::make_shared<Buffer>(std::move(received->form));
    FormSource from{form->view(), form, &into.pool};
    from.most_bytes = wire::kMostReplyBytes;
    from.checksum = Checksum::kXxh3;
    try {
      sample = read_form(from, id, data_.cut());
    } catch (const Error& error) {
      if (error.code() != Code::kBadSample) throw;
      return Answered::kDamaged;  // it was good where it was sent
    }
    return Answered::kSound;
  });
  return std::move(*sample);
}

std::unique_ptr<Fetcher> RemoteSource::fetcher(const FetchJob& job) const {
  return std::make_unique<FetchClient>(std::vector{part()}, options_, job, absence_);
}

std::string RemoteSource::path(SampleId id) const {
  MutexLock lock(mutex_);
  if (listed_) return paths_[static_cast<std::size_t>(id)];
  return url_.text() + "#" + std::to_string(id);
}

std::int64_t RemoteSource::label(SampleId id) const {
  load_listing();
  MutexLock lock(mutex_);
  return labels_[static_cast<std::size_t>(id)];
}

void RemoteSource::load_listing() const {
  const auto listed = [this] {
    MutexLock lock(mutex_);
    return listed_;
  };
  if (listed()) return;
  MutexLock asking(listing_mutex_);
  if (listed()) return;
  std::vector<std::string> paths;
  std::vector<std::int64_t> labels;
  while (static_cast<std::int64_t>(paths.size()) < size()) {
    wire::pb::ListRequest request;
    request.set_name(data_.name());
    request.set_first(static_cast<std::int64_t>(paths.size()));
    request.set_count(wire::kMostListed);
    const auto part = call<wire::pb::Listing>(wire::kList, request);
    const bool sound =
        part.paths_size() > 0 && (!has_labels() || part.labels_size() == part.paths_size());
    if (!sound)
      throw Error(Code::kUnavailable,
                  url_.text() + " gives no listing that makes sense of its data set");
    paths.insert(paths.end(), part.paths().begin(), part.paths().end());
    labels.insert(labels.end(), part.labels().begin(), part.labels().end());
  }
  MutexLock lock(mutex_);
  paths_ = std::move(paths);
  labels_ = std::move(labels);
  listed_ = true;
}

}  // namespace cutwater::remote

namespace cutwater {

std::shared_ptr<const Source> open_remote(std::string_view url, const RemoteOptions& options) {
  if (!(options.patience_s > 0))
    throw Error(Code::kInvalidArgument,
                "patience must be some seconds, got " + std::to_string(options.patience_s));
  const std::vector<remote::Url> parts = remote::parse_parts(url);
  if (parts.size() == 1) return std::make_shared<remote::RemoteSource>(parts[0], options);
  if (options.fallback)
    throw Error(Code::kInvalidArgument,
                "fallback: a data set in parts has none; name several servers for each part");
  std::vector<std::unique_ptr<const remote::RemoteSource>> sources;
  for (const remote::Url& part : parts)
    sources.push_back(std::make_unique<remote::RemoteSource>(part, options));
  return std::make_shared<remote::JoinedSource>(std::move(sources), options);
}

}  // namespace cutwater
