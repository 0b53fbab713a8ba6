// SPDX-License-Identifier: Apache-2.0
// Which hosts are this machine: what is said to them, nobody else can hear.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <string>

namespace cutwater::wire {

// "::1" of "[::1]"; others as they are.
inline std::string without_brackets(const std::string& host) {
  if (!host.starts_with('[') || !host.ends_with(']')) return host;
  return host.substr(1, host.size() - 2);
}

inline bool is_loopback(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6) != 0;
  return host == "localhost";
}

}  // namespace cutwater::wire
