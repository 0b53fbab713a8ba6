// SPDX-License-Identifier: Apache-2.0
// A stream of bytes to a server, plain or by TLS, in which every wait has a deadline. What goes
// wrong is an Error: kTimeout when the deadline has passed, kUnavailable for all else.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/redis_url.h"

struct ssl_st;
struct ssl_ctx_st;

namespace cutwater::redis {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};
// Where an endpoint can be reached. Names are looked up, which waits for as long as the system's
// resolver likes, unless `only_numbers`; empty: there is no such name.
std::vector<Address> addresses_of(const Endpoint& endpoint, bool only_numbers);

// Whom to trust. Any thread.
class Tls {
 public:
  // Throws Error(kInvalidArgument) if the file of certificates cannot be used.
  explicit Tls(const std::string& ca);
  ssl_ctx_st* context() const { return context_.get(); }

 private:
  std::shared_ptr<ssl_ctx_st> context_;
};

class Socket {
 public:
  // Connects to the first address that answers; `tls` may be null. The certificate has to be
  // that of `host`.
  Socket(std::span<const Address> addresses, const std::string& host, const Tls* tls,
         Deadline deadline);
  explicit Socket(int fd);  // takes over a connected socket
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Reads at least one byte, into a place that is not empty.
  std::size_t read_some(std::span<std::uint8_t> place, Deadline deadline);
  // Writes all pieces, one after another.
  void write_all(std::vector<iovec> pieces, Deadline deadline);

 private:
  bool connect_to(const Address& address, Deadline deadline, std::string& why);
  void start_tls(const std::string& host, const Tls& tls, Deadline deadline);
  bool wait_for(short events, Deadline deadline) const;  // false: the deadline has passed
  void wait_or_throw(short events, Deadline deadline) const;
  void wait_for_tls(int result, Deadline deadline);
  void close_fd();

  int fd_ = -1;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> tls_;
};

}  // namespace cutwater::redis
