// SPDX-License-Identifier: Apache-2.0
// Real Redis servers for tests: each in a folder of its own, on free ports of this machine, gone at
// the end.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/redis_connection.h"
#include "cutwater/error.h"
#include "source/test_folder.h"

namespace cutwater::redis {

inline bool is_program(const std::string& name) {
  std::istringstream path(::getenv("PATH") != nullptr ? ::getenv("PATH") : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

// Whether it has come true within half a minute.
inline bool comes_true(const std::function<bool()>& condition) {
  const auto end = Clock::now() + std::chrono::seconds(30);
  while (!condition()) {
    if (Clock::now() > end) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

inline std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool is_bound = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(fd);
  if (!is_bound) throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

class TestServer {
 public:
  static bool is_installed() { return is_program("redis-server"); }

  // Where its nodes talk to each other, beside the port for clients.
  struct InCluster {};

  explicit TestServer(std::vector<std::string> options = {}) : options_(std::move(options)) {
    start_anywhere();
  }
  explicit TestServer(InCluster) : bus_port_(free_port()) {
    options_ = {"--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"};
    start_anywhere();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() { kill(); }

  std::uint16_t port() const { return port_; }
  std::uint16_t bus_port() const { return bus_port_; }
  const std::string& folder() const { return folder_.path(); }
  std::string url(const std::string& rest = "") const {
    return "redis://127.0.0.1:" + std::to_string(port_) + rest;
  }

  void start() {
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--dir",
                                      folder_.path(),
                                      "--logfile",
                                      folder_.path() + "/log",
                                      "--unixsocket",
                                      folder_.path() + "/socket"};
    words.insert(words.end(), options_.begin(), options_.end());
    if (bus_port_ != 0) words.insert(words.end(), {"--cluster-port", std::to_string(bus_port_)});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    bool ended = pid_ < 0;
    const bool settled = comes_true([&] {
      ended = ended || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
      return ended || answers();
    });
    if (ended) pid_ = -1;
    if (ended || !settled) throw std::runtime_error("redis-server did not start:\n" + log());
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void freeze() const { ::kill(pid_, SIGSTOP); }
  void thaw() const { ::kill(pid_, SIGCONT); }

  // What it answers to one command, by its Unix socket; errors are thrown.
  Reply ask(const std::vector<std::string>& words) const {
    const Url url = parse_url("redis+unix://" + folder_.path() + "/socket");
    const Deadline deadline = Clock::now() + std::chrono::seconds(10);
    Connection link(addresses_of(url.endpoint, true), url, "", nullptr, deadline);
    Commands commands;
    commands.begin(words.size());
    for (const std::string& word : words) commands.word(word);
    Reply reply = link.exchange(commands, deadline).front();
    if (reply.is_error()) throw std::runtime_error(words[0] + ": " + reply.text);
    return reply;
  }
  std::size_t used() const {
    const std::string info = ask({"INFO", "memory"}).text;
    return std::stoul(info.substr(info.find("used_memory:") + 12));
  }
  // Empties it, and leaves room for so many bytes besides what it needs itself.
  void set_room(std::size_t bytes) const {
    ask({"CONFIG", "SET", "maxmemory", "0"});
    ask({"FLUSHALL"});
    ask({"CONFIG", "SET", "maxmemory", std::to_string(bytes < 1000 ? bytes : used() + bytes)});
  }

 private:
  // A port that was free a moment ago may be taken by now: by any connection of this machine.
  void start_anywhere() {
    for (int tries_left = 5;; --tries_left) try {
        return start();
      } catch (const std::runtime_error&) {
        if (tries_left == 1) throw;
        kill();
        port_ = free_port();
        if (bus_port_ != 0) bus_port_ = free_port();
      }
  }
  std::string log() const {
    std::ifstream file(folder_.path() + "/log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool answers() const {
    try {
      return ask({"PING"}).text == "PONG";
    } catch (const std::exception&) {
      return false;
    }
  }

  std::vector<std::string> options_;
  const TestFolder folder_;
  std::uint16_t port_ = free_port();
  std::uint16_t bus_port_ = 0;  // none
  pid_t pid_ = -1;
};

// Three masters with a third of the slots each.
class TestCluster {
 public:
  TestCluster() {
    constexpr int kThird = 16384 / 3;
    for (int i = 0; i < 3; ++i) {
      nodes_.push_back(std::make_unique<TestServer>(TestServer::InCluster{}));
      nodes_[i]->ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * kThird),
                      std::to_string(i == 2 ? 16383 : (i + 1) * kThird - 1)});
      nodes_[i]->ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
      if (i > 0)
        nodes_[i]->ask({"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0]->port()),
                        std::to_string(nodes_[0]->bus_port())});
    }
    if (!comes_true([this] { return is_joined(); }))
      throw std::runtime_error("the cluster did not come together");
  }
  TestServer& node(std::size_t i) { return *nodes_[i]; }
  std::string url() const { return nodes_[0]->url(); }
  void set_room(std::size_t bytes) const {
    for (const auto& node : nodes_) node->set_room(bytes);
  }

 private:
  bool is_joined() const {
    for (const auto& node : nodes_) {
      const std::string info = node->ask({"CLUSTER", "INFO"}).text;
      if (info.find("cluster_state:ok") == std::string::npos ||
          info.find("cluster_slots_ok:16384") == std::string::npos ||
          info.find("cluster_known_nodes:3") == std::string::npos)
        return false;
    }
    return true;
  }
  std::vector<std::unique_ptr<TestServer>> nodes_;
};

}  // namespace cutwater::redis
