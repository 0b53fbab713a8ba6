// SPDX-License-Identifier: Apache-2.0
// RemoteSource: a near-storage server's data set as a source.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "cutwater/remote.h"
#include "proto/messages.h"
#include "remote/absence.h"
#include "remote/part.h"
#include "remote/server_call.h"

namespace cutwater::remote {

// Throws Error(kInvalidArgument) where a server speaks otherwise than this trainer.
void check_version(const std::string& server, const wire::pb::DataSet& said);

class RemoteSource final : public Source {
 public:
  // Asks all servers; where none answers, the fallback. Throws Error.
  RemoteSource(Url url, RemoteOptions options);

  std::int64_t size() const override { return data_.size(); }
  Cut cut() const override { return data_.cut(); }
  std::string fingerprint() const override { return data_.fingerprint(); }
  std::string pipeline() const override { return data_.pipeline(); }
  Result<Sample> read(SampleId id, const ReadContext& into) const override;
  bool far_away() const override { return true; }
  std::unique_ptr<Fetcher> fetcher(const FetchJob& job) const override;
  std::string path(SampleId id) const override;
  void load_listing() const override;
  bool has_labels() const override { return data_.has_labels(); }
  std::int64_t label(SampleId id) const override;
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string identity() const override { return data_.identity(); }
  std::string stamp() const override { return data_.stamp(); }
  Part part() const { return {url_, data_}; }  // all of the data set

 private:
  struct Server {
    std::string address;
    std::shared_ptr<grpc::Channel> channel;
  };
  using Clock = std::chrono::steady_clock;

  bool describe(const wire::pb::DescribeRequest& request);
  // What an answer is worth: kFailed, it says what is wrong at that server.
  enum class Answered : std::uint8_t { kSound, kFailed, kDamaged };
  // Asks until a server has a sound answer. False: there is none, and all that answered have
  // failed. Throws Error where none answers.
  bool call(const char* method, const google::protobuf::MessageLite& request, double patience_s,
            const std::function<Answered(const grpc::ByteBuffer& answer)>& look) const;
  template <class Answer>
  Answer call(const char* method, const google::protobuf::MessageLite& request) const;
  // What a server says of the sample; throws Error where none has anything to say of it.
  Result<Sample> read_remote(SampleId id, const ReadContext& into, double patience_s) const;
  double one_try_s() const;

  const Url url_;
  const RemoteOptions options_;
  std::vector<Server> servers_;
  wire::pb::DataSet data_;
  std::vector<std::string> classes_;
  const std::shared_ptr<Absence> absence_ = std::make_shared<Absence>();  // of the servers

  mutable Mutex listing_mutex_;  // one asks for the listing; held before mutex_
  mutable Mutex mutex_;
  mutable bool listed_ CUTWATER_GUARDED_BY(mutex_) = false;
  mutable std::vector<std::string> paths_ CUTWATER_GUARDED_BY(mutex_);
  mutable std::vector<std::int64_t> labels_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater::remote
