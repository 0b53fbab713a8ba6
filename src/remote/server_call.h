// SPDX-License-Identifier: Apache-2.0
// ServerCall: one Fetch of one server, on a completion queue. Whoever reads the queue is its only
// user.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>
#include <string>

#include "cutwater/remote.h"

namespace cutwater::remote {

// A channel to HOST:PORT. Throws Error(kInvalidArgument) where the CA's file cannot be read.
std::shared_ptr<grpc::Channel> open_channel(const std::string& server, bool tls,
                                            const RemoteOptions& options);
void add_token(grpc::ClientContext& context, const RemoteOptions& options);

class ServerCall : public std::enable_shared_from_this<ServerCall> {
 public:
  enum class Event { kStarted, kWritten, kReceived, kFinished };
  // What comes out of the queue; holds the call while something is under way.
  struct Tag {
    std::shared_ptr<ServerCall> call;
    Event event;
  };

  ServerCall(const std::shared_ptr<grpc::Channel>& channel, const RemoteOptions& options,
             grpc::CompletionQueue& queue, std::size_t server);

  void start();
  void write(const grpc::ByteBuffer& bytes);  // REQUIRES: writable()
  void receive();                             // into `received`
  void cancel() { context_.TryCancel(); }

  // To be told of every event of this call.
  void happened(Event event, bool ok);
  bool writable() const { return started_ && !writing_ && !broken_; }
  bool receiving() const { return receiving_; }
  bool broken() const { return broken_; }        // nothing can be written any more
  bool finishing() const { return finishing_; }  // nor read

  const std::size_t server;
  grpc::ByteBuffer received;
  grpc::Status status;

 private:
  void* tag(Event event);
  void finish();  // for `status`

  grpc::ClientContext context_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::ByteBuffer written_;
  bool started_ = false, writing_ = false, receiving_ = false, broken_ = false, finishing_ = false;
};

}  // namespace cutwater::remote
