// SPDX-License-Identifier: Apache-2.0
#include "serve/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "proto/loopback.h"
#include "proto/quiet.h"
#include "serve/metrics.h"

namespace cutwater::serve {
namespace {

// Memory that gRPC may use for its own buffers, over all connections.
constexpr std::size_t kTransportBytes = std::size_t{256} << 20;

constexpr std::chrono::milliseconds kTick(50);  // between looks at what waits

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

Address metrics_address(const std::string& text) {
  const bool port_alone = text.find(':') == std::string::npos;
  return parse_address(port_alone ? "127.0.0.1:" + text : text, "--metrics");
}

void check(const ServerOptions& options) {
  const Address address = parse_address(options.listen);
  if (options.tls_cert.empty() != options.tls_key.empty())
    refuse("--tls-cert and --tls-key go together: a certificate is of no use without its key");
  if (!address.loopback && (options.tls_cert.empty() || options.service.token.empty()))
    refuse("--listen " + options.listen +
           " can be reached from other machines, which needs --tls-cert, --tls-key and "
           "--token-file; listen to "
           "127.0.0.1 for this machine alone");
  if (!options.metrics.empty()) (void)metrics_address(options.metrics);
  if (options.data.empty()) refuse("--data: there is nothing to serve");
}

}  // namespace

Address parse_address(const std::string& text, const std::string& option) {
  const std::size_t colon = text.rfind(':');
  Address address;
  const char* const end = text.data() + text.size();
  const char* const digits = colon == std::string::npos ? end : text.data() + colon + 1;
  const auto read = std::from_chars(digits, end, address.port);
  if (digits == end || read.ec != std::errc{} || read.ptr != end || address.port < 0 ||
      address.port > 65535)
    refuse(option + " must be HOST:PORT, as in 127.0.0.1:7070, got '" + text + "'");
  address.host = text.substr(0, colon);
  address.host = wire::without_brackets(address.host);
  if (address.host.empty())
    refuse(option + " must name a host, as in 127.0.0.1:7070, got '" + text + "'");
  address.loopback = wire::is_loopback(address.host);
  return address;
}

struct Server::Impl {
  Impl(ServerOptions given, const OpTable& ops)
      : options(std::move(given)),
        shop(options.workshop),
        data(options.data, ops, options.workshop.makers),
        service(data, shop, options.service),
        stop_event(eventfd(0, EFD_CLOEXEC)) {
    if (stop_event < 0) throw Error(Code::kIo, "no descriptor is left for an event");
  }
  ~Impl() { close(stop_event); }

  const ServerOptions options;
  Workshop shop;
  DataSets data;
  Service service;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<grpc::Server> server;
  std::string address;
  int stop_event;
};

Server::Server(ServerOptions options, const OpTable& ops) {
  check(options);
  impl_ = std::make_unique<Impl>(std::move(options), ops);
  Impl& my = *impl_;
  wire::keep_transport_quiet();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (!my.options.tls_cert.empty()) {
    grpc::SslServerCredentialsOptions tls;
    tls.pem_key_cert_pairs.push_back({my.options.tls_key, my.options.tls_cert});
    credentials = grpc::SslServerCredentials(tls);
  }
  int port = 0;
  builder.AddListeningPort(my.options.listen, credentials, &port);
  builder.RegisterCallbackGenericService(&my.service);
  builder.SetMaxReceiveMessageSize(static_cast<int>(wire::kMostRequestBytes));
  builder.SetMaxSendMessageSize(static_cast<int>(wire::kMostReplyBytes));
  builder.SetResourceQuota(grpc::ResourceQuota("cutwater").Resize(kTransportBytes));
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(1000 * my.options.hello_seconds));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 100);
  // Who has connected and asks for nothing: a trainer has a stream, and else comes again.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(1000 * my.options.idle_seconds));
  // Who is gone without a word is noticed also when nothing is sent, and before whoever waits for
  // his place loses patience.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  my.server = builder.BuildAndStart();
  if (!my.server || port == 0)
    throw Error(Code::kUnavailable,
                "cannot listen to " + my.options.listen +
                    ": the port is in use, or the address is not of this machine, or the "
                    "certificate and its key do not fit");
  my.address = my.options.listen.substr(0, my.options.listen.rfind(':') + 1) + std::to_string(port);
  if (!my.options.metrics.empty()) {
    const Address where = metrics_address(my.options.metrics);
    my.metrics = std::make_unique<Metrics>(where.host, where.port, my.shop);
  }
}

Server::~Server() {
  stop();
  run();
}

std::string Server::address() const { return impl_->address; }

std::optional<int> Server::metrics_port() const {
  return impl_->metrics ? std::optional(impl_->metrics->port()) : std::nullopt;
}

WorkshopStats Server::stats() const { return impl_->shop.stats(); }

void Server::run() {
  Impl& my = *impl_;
  if (!my.server) return;
  pollfd wait{my.stop_event, POLLIN, 0};
  for (int ticks = 1; poll(&wait, 1, static_cast<int>(kTick.count())) <= 0; ++ticks) {
    my.shop.look_after();
    if (ticks % (1000 / kTick.count()) == 0) my.service.end_idle_calls();
  }
  my.options.going_down();  // first: whoever reads the log may hang, too
  my.options.log("going down: what was ordered is sent first");
  if (grpc::HealthCheckServiceInterface* const health = my.server->GetHealthCheckService())
    health->Shutdown();
  my.service.drain();
  // What waits too long for a maker goes as stored also now, when it is waited for.
  std::promise<void> drained;
  std::thread looks_after([&my, over = drained.get_future()] {
    while (over.wait_for(kTick) == std::future_status::timeout) my.shop.look_after();
  });
  my.server->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * my.options.drain_seconds)));
  my.server.reset();
  drained.set_value();
  looks_after.join();
}

void Server::stop() {
  const std::uint64_t one = 1;
  (void)!write(impl_->stop_event, &one, sizeof one);
}

}  // namespace cutwater::serve
