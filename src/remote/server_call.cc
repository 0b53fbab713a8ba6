// SPDX-License-Identifier: Apache-2.0
#include "remote/server_call.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "proto/loopback.h"
#include "proto/messages.h"
#include "proto/quiet.h"

namespace cutwater::remote {
namespace {

std::string or_environment(const std::string& given, const char* name) {
  if (!given.empty()) return given;
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string content(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty())
    throw Error(Code::kInvalidArgument,
                "ca: '" + path +
                    "' cannot be read, or is empty; it must be the PEM file of "
                    "who vouches for the server");
  return text.str();
}

std::string token_of(const RemoteOptions& options) {
  return or_environment(options.token, "CUTWATER_TOKEN");
}

bool is_here(const std::string& server) {
  return wire::is_loopback(wire::without_brackets(server.substr(0, server.rfind(':'))));
}

// Anybody on the way could read it.
void refuse_token_in_the_clear(const std::string& server) {
  throw Error(
      Code::kInvalidArgument,
      "the token would go to " + server +
          " in the clear; say grpcs:// for a server that has TLS, or give no token (token=, "
          "CUTWATER_TOKEN)");
}

}  // namespace

std::shared_ptr<grpc::Channel> open_channel(const std::string& server, bool tls,
                                            const RemoteOptions& options) {
  if (!tls && !is_here(server) && !token_of(options).empty()) refuse_token_in_the_clear(server);
  wire::keep_transport_quiet();
  grpc::ChannelArguments arguments;
  // The way to this machine leads over no other, whatever http_proxy says.
  if (is_here(server)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(static_cast<int>(wire::kMostReplyBytes));
  // Large frames, and a window of several messages: each of either wakes somebody.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 4 << 20);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  // For all that is said before the first call, which takes some ways there and back: gRPC's name
  // tells of something else.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);
  // Each has a connection of its own: its stream is not shared with another loader's.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (tls) {
    grpc::SslCredentialsOptions ssl;
    const std::string ca = or_environment(options.ca, "CUTWATER_CA");
    if (!ca.empty()) ssl.pem_root_certs = content(ca);
    credentials = grpc::SslCredentials(ssl);
  }
  return grpc::CreateCustomChannel(server, credentials, arguments);
}

void add_token(grpc::ClientContext& context, const RemoteOptions& options) {
  const std::string token = token_of(options);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
}

ServerCall::ServerCall(const std::shared_ptr<grpc::Channel>& channel, const RemoteOptions& options,
                       grpc::CompletionQueue& queue, std::size_t its_server)
    : server(its_server), stub_(channel) {
  add_token(context_, options);
  call_ = stub_.PrepareCall(&context_, wire::kFetch, &queue);
}

void* ServerCall::tag(Event event) {
  return std::make_unique<Tag>(Tag{shared_from_this(), event}).release();
}

void ServerCall::start() { call_->StartCall(tag(Event::kStarted)); }

void ServerCall::write(const grpc::ByteBuffer& bytes) {
  written_ = bytes;
  writing_ = true;
  call_->Write(written_, tag(Event::kWritten));
}

void ServerCall::receive() {
  receiving_ = true;
  call_->Read(&received, tag(Event::kReceived));
}

void ServerCall::finish() {
  if (std::exchange(finishing_, true)) return;
  call_->Finish(&status, tag(Event::kFinished));
}

void ServerCall::happened(Event event, bool ok) {
  if (!ok) broken_ = true;
  switch (event) {
    case Event::kStarted: started_ = ok; break;
    case Event::kWritten: writing_ = false; break;
    case Event::kReceived: receiving_ = false; break;
    case Event::kFinished: break;
  }
  // Whatever the server has sent is read to its end before its status can be had; what is being
  // written may never get through then.
  if (!ok && (event == Event::kStarted || event == Event::kReceived)) finish();
}

}  // namespace cutwater::remote
