// SPDX-License-Identifier: Apache-2.0
// For tests: a server of this process, data for it, and calls that are written by hand.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/all_ops.h"
#include "ops/image/test_jpeg.h"
#include "serve/server.h"
#include "source/test_folder.h"

namespace cutwater::test {

// Runs while it lives.
class RunningServer {
 public:
  explicit RunningServer(serve::ServerOptions options, const OpTable& ops = all_ops())
      : server_(std::move(options), ops), thread_([this] { server_.run(); }) {}
  // Only this, under a name.
  explicit RunningServer(std::shared_ptr<const Source> source, std::string name = "data")
      : RunningServer(serving(std::move(source), std::move(name))) {}
  ~RunningServer() { stop(); }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  static serve::ServerOptions serving(std::shared_ptr<const Source> source,
                                      std::string name = "data") {
    serve::ServerOptions options;
    options.data.push_back({std::move(name), std::move(source)});
    options.listen = "127.0.0.1:0";
    options.workshop.makers = 2;
    return options;
  }
  // As kill -9 would, as far as a trainer can see.
  static serve::ServerOptions abrupt(serve::ServerOptions options) {
    options.drain_seconds = 0;
    return options;
  }

  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  std::string address() const { return server_.address(); }
  std::string url(const std::string& name = "data") const {
    return "grpc://" + address() + "/" + name;
  }
  serve::Server* operator->() { return &server_; }

 private:
  serve::Server server_;
  std::thread thread_;
};

// A call, step by step.
class RawCall {
 public:
  explicit RawCall(const std::string& address, const char* method = wire::kFetch,
                   const std::string& authorization = "")
      : stub_(grpc::CreateChannel(address, grpc::InsecureChannelCredentials())) {
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    next();
  }
  ~RawCall() {
    context_.TryCancel();
    if (!finished_) finish();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  bool write(const grpc::ByteBuffer& bytes) {
    call_->Write(bytes, nullptr);
    return next();
  }
  bool write(const google::protobuf::MessageLite& message) {
    return write(wire::bytes_of(message));
  }
  std::optional<grpc::ByteBuffer> read() {
    grpc::ByteBuffer bytes;
    call_->Read(&bytes, nullptr);
    if (!next()) return std::nullopt;
    return bytes;
  }
  // The next one, in a message of its own or with others. None: the call has ended.
  std::optional<wire::ReceivedReply> reply() {
    if (replies_.empty()) {
      const auto bytes = read();
      if (!bytes) return std::nullopt;
      const bool all = wire::parse_replies(
          *bytes, [](std::size_t size) { return Buffer(size); },
          [this](wire::ReceivedReply one, std::size_t) { replies_.push_back(std::move(one)); });
      if (!all) return std::nullopt;
    }
    wire::ReceivedReply first = std::move(replies_.front());
    replies_.pop_front();
    return first;
  }
  void no_more() {
    call_->WritesDone(nullptr);
    next();
  }
  grpc::Status finish() {
    grpc::Status status;
    finished_ = true;
    call_->Finish(&status, nullptr);
    next();
    return status;
  }

 private:
  bool next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  std::deque<wire::ReceivedReply> replies_;  // of the last message
  bool finished_ = false;
};

// What becomes of one message.
inline grpc::Status status_after(const std::string& address, const grpc::ByteBuffer& message,
                                 const char* method = wire::kFetch) {
  RawCall call(address, method);
  call.write(message);
  while (call.read()) {
  }
  return call.finish();
}

// So many JPEGs in one folder.
inline void photo_folder(const TestFolder& folder, const std::string& name, int count) {
  std::mt19937 random(7);
  for (int i = 0; i < count; ++i) {
    const std::vector<std::uint8_t> file =
        image::encode({.width = 70 + i, .height = 60, .layout = image::kLayouts[3]}, random);
    folder.file(name + "/" + name + std::to_string(i) + ".jpg",
                {reinterpret_cast<const char*>(file.data()), file.size()});
  }
}

// Class folders of `count` JPEGs; those that are bad are none, or only begin as one.
inline std::shared_ptr<const Source> photo_folder(const TestFolder& folder, int count,
                                                  const std::vector<int>& bad = {}) {
  std::mt19937 random(7);
  for (int i = 0; i < count; ++i) {
    image::Picture picture{.width = 60 + image::below(random, 90),
                           .height = 60 + image::below(random, 90),
                           .layout = image::kLayouts[3 + i % 4]};
    std::vector<std::uint8_t> file = image::encode(picture, random);
    const auto place = std::ranges::find(bad, i);
    if (place != bad.end()) file.resize((place - bad.begin()) % 2 == 0 ? 1 : file.size() / 3);
    folder.file("class" + std::to_string(i % 3) + "/" + std::to_string(100 + i) + ".jpg",
                {reinterpret_cast<const char*>(file.data()), file.size()});
  }
  return open_folder(folder.path());
}

}  // namespace cutwater::test
