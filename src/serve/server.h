// SPDX-License-Identifier: Apache-2.0
// Server: data sets near their storage, for trainers elsewhere. It sends each sample as far through
// the trainer's pipeline as pays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutwater/op.h"
#include "serve/data_sets.h"
#include "serve/service.h"
#include "serve/workshop.h"

namespace cutwater::serve {

struct ServerOptions {
  std::vector<ServedData> data;
  std::string listen = "127.0.0.1:7070";  // port 0: any that is free
  // PEM texts; both or none. Without them, and a token, only this machine is listened to.
  std::string tls_cert, tls_key;
  // Where Prometheus text is: HOST:PORT, or PORT on 127.0.0.1, for it is told to anybody who can
  // reach it; port 0: any that is free. Empty: nowhere.
  std::string metrics;
  double drain_seconds = 10;
  double hello_seconds = 10;  // a connection that has not said what it is by then is closed
  double idle_seconds = 60;   // and one over which nothing has been asked for so long
  ServiceOptions service;
  WorkshopOptions workshop;
  std::function<void(const std::string& line)> log = [](const std::string&) {};
  std::function<void()> going_down = [] {};  // called by run(), once stop() was
};

class Server {
 public:
  // Listens. Throws Error(kInvalidArgument) for a bind that would not be safe, kUnavailable where
  // the address cannot be had. REQUIRES: `ops` lives for ever.
  Server(ServerOptions options, const OpTable& ops);
  ~Server();  // as stop(), and waits
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string address() const;  // with the port that it got
  std::optional<int> metrics_port() const;
  WorkshopStats stats() const;

  // Returns when stop() was called and what was ordered is sent, or drain_seconds are over.
  void run();
  void stop();  // from any thread, or from a signal handler

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The host and the port of "HOST:PORT" or "[::1]:PORT". Throws Error(kInvalidArgument) that names
// the option.
struct Address {
  std::string host;
  int port = 0;
  bool loopback = false;
};
Address parse_address(const std::string& text, const std::string& option = "--listen");

}  // namespace cutwater::serve
