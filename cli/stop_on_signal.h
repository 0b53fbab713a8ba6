// SPDX-License-Identifier: Apache-2.0
// A server that ctrl-C and SIGTERM stop.
#pragma once

#include <csignal>

namespace cutwater::cli {

// One at a time. REQUIRES: server.stop() may be called from a signal handler; the server outlives
// this.
template <class Server>
class StopOnSignal {
 public:
  explicit StopOnSignal(Server& server) {
    serving_ = &server;
    for (const int end : {SIGTERM, SIGINT}) std::signal(end, [](int) { serving_->stop(); });
  }
  ~StopOnSignal() {
    for (const int end : {SIGTERM, SIGINT}) std::signal(end, SIG_DFL);
    serving_ = nullptr;
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

 private:
  static inline Server* serving_ = nullptr;
};

}  // namespace cutwater::cli
