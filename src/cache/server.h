// SPDX-License-Identifier: Apache-2.0
// The daemon of the shared cache: the only writer of its memory, one thread, one socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace cutwater::cache {

struct ServeOptions {
  std::string socket;                     // a path
  std::uint64_t limit = 0;                // bytes, of everything
  std::map<uid_t, std::uint64_t> quotas;  // bytes that one user's values may take
  std::function<void(const std::string&)> log = [](const std::string&) {};  // a line for people
};

class Server {
 public:
  // From here on clients find it, though nobody answers before run(). Throws Error as listen_at(),
  // and kIo where the system refuses the memory.
  explicit Server(const ServeOptions& options);
  ~Server();  // takes the socket away; the memory lives as long as a client has it

  // Serves until stop(). A client that says nonsense is disconnected, and it goes on.
  void run();
  // From any thread, and from a signal's handler.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cutwater::cache
