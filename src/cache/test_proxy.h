// SPDX-License-Identifier: Apache-2.0
// A link to a server of this machine, for tests: it counts round trips, and can be slow.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace cutwater::redis {

class TestProxy {
 public:
  // Counts the trips whose commands begin with something that has `counted` in it.
  TestProxy(std::uint16_t to, std::string counted) : to_(to), counted_(std::move(counted)) {
    sockaddr_in address = local(0);
    socklen_t size = sizeof address;
    if (::bind(listens_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(listens_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        ::listen(listens_, 64) != 0)
      throw std::runtime_error("no proxy");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;
  ~TestProxy() {
    ::eventfd_write(stop_, 1);
    thread_.join();
    ::close(listens_);
    ::close(stop_);
  }

  std::string url(const std::string& rest = "") const {
    return "redis://127.0.0.1:" + std::to_string(port_) + rest;
  }
  void set_delay(std::chrono::milliseconds delay) { delay_ms_ = static_cast<int>(delay.count()); }
  int trips() const { return trips_; }

 private:
  static sockaddr_in local(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  static int make_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

  void accept_all() {
    std::vector<std::thread> links;
    for (;;) {
      std::array<pollfd, 2> ready{{{listens_, POLLIN, 0}, {stop_, POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), -1);
      if (ready[1].revents != 0) break;
      const int client = ::accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client >= 0) links.emplace_back([this, client] { serve(client); });
    }
    for (std::thread& link : links) link.join();
  }

  void serve(int client) {
    const int server = make_socket(), at_once = 1;
    const sockaddr_in address = local(to_);
    for (const int fd : {client, server})
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
      pass_on(client, server);
    ::close(client);
    ::close(server);
  }

  // Until one of them goes, or all ends.
  void pass_on(int client, int server) {
    std::vector<char> bytes(65536);
    for (bool is_answered = true;;) {
      std::array<pollfd, 3> ready{{{client, POLLIN, 0}, {server, POLLIN, 0}, {stop_, POLLIN, 0}}};
      ::poll(ready.data(), ready.size(), -1);
      if (ready[2].revents != 0) return;
      const bool is_answer = ready[0].revents == 0;
      const ssize_t got = ::read(is_answer ? server : client, bytes.data(), bytes.size());
      if (got <= 0) return;
      const std::string_view text(bytes.data(), static_cast<std::size_t>(got));
      if (is_answer && !is_answered) {
        pollfd stop{stop_, POLLIN, 0};
        ::poll(&stop, 1, delay_ms_);
      } else if (!is_answer && is_answered) {
        trips_ += text.find(counted_) != std::string_view::npos;
      }
      is_answered = is_answer;
      for (std::string_view left = text; !left.empty();) {
        const ssize_t put =
            ::send(is_answer ? client : server, left.data(), left.size(), MSG_NOSIGNAL);
        if (put <= 0) return;
        left.remove_prefix(static_cast<std::size_t>(put));
      }
    }
  }

  const std::uint16_t to_;
  const std::string counted_;
  const int listens_ = make_socket(), stop_ = ::eventfd(0, EFD_CLOEXEC);
  std::uint16_t port_ = 0;
  std::atomic<int> trips_{0}, delay_ms_{0};
  std::thread thread_;
};

}  // namespace cutwater::redis
