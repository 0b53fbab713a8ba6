// SPDX-License-Identifier: Apache-2.0
// Where a Redis server is and how to use it, as one line of text:
//   redis://[user[:password]@]host[:port][/db][?option=value&…]   rediss://… by TLS
//   redis+unix:///path/of/the/socket[?db=0&…]
// Options: cluster=1, timeout=2s, slow=100ms, ttl=1d, prefix=cutwater, chunk=1MiB, ca=FILE, db=0.
// Whatever would be misread is written as %XX.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cutwater::redis {

struct Endpoint {
  std::string host;
  std::uint16_t port = 6379;
  std::string path;  // of a Unix socket, in place of host and port
  bool operator==(const Endpoint&) const = default;
};
std::string to_string(const Endpoint& endpoint);  // "host:6379", "[::1]:6379", "/path"

struct Url {
  Endpoint endpoint;
  bool tls = false;
  std::string ca;  // a file of certificates to trust; empty: those that the system trusts
  std::string user, password;
  int database = 0;
  bool cluster = false;                     // asked for; otherwise the server is asked what it is
  std::chrono::milliseconds timeout{2000};  // for one answer
  std::chrono::milliseconds slow{100};      // who always takes longer is left alone
  std::chrono::milliseconds ttl = std::chrono::hours{24};  // nothing stays longer unless put again
  std::string prefix = "cutwater";                         // before the name of every key
  std::size_t chunk_bytes = std::size_t{1} << 20;          // of a value under one key
};

// Throws Error(kInvalidArgument) that names the part and never shows a password.
Url parse_url(std::string_view text);
std::string to_string(const Url& url);  // for people: no user, no password, no options

}  // namespace cutwater::redis
