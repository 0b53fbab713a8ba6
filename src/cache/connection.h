// SPDX-License-Identifier: Apache-2.0
// A client's way to the daemon: it says hello, and gets answers within a time.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cache/protocol.h"
#include "cache/unix_socket.h"
#include "cutwater/error.h"

namespace cutwater::cache {

// How long a daemon may take for an answer.
inline constexpr std::chrono::milliseconds kAnswerTime{2000};

// What to do where no daemon answers.
std::string how_to_serve(const std::string& path);

// One thread at a time.
class Connection {
 public:
  // Throws Error: kInvalidArgument for a path that cannot be, kUnavailable where there is no daemon
  // of this user (or root) and this version, kTimeout where it does not answer. All name the path.
  Connection(const std::string& path, bool wants_memory);

  const wire::HelloReply& hello() const { return hello_; }
  Descriptor take_memory() { return std::move(memory_); }  // none where it was not wanted
  const Descriptor& socket() const { return socket_; }
  const std::string& path() const { return path_; }

  // Throws Error: kUnavailable where the daemon is gone or answers nonsense, kTimeout.
  template <class Reply, class Question>
  Reply ask(const Question& question) {
    say(question);
    return answer<Reply>();
  }
  // The halves of ask(). say() throws kUnavailable, too, where the daemon reads nothing any more:
  // the question is not said then. After kTimeout, the answer may still come.
  template <class Question>
  void say(const Question& question) {
    send(wire::bytes_of(question));
  }
  template <class Reply>
  Reply answer() {
    const auto reply = wire::read<Reply>(receive());
    if (!reply) throw nonsense();
    return *reply;
  }
  // A packet that has come, if any, whatever it is.
  std::span<const std::uint8_t> late_answer() { return receive_packet(socket_, room_).packet; }

 private:
  void send(std::span<const std::uint8_t> packet);
  std::span<const std::uint8_t> receive();
  Error gone() const;
  Error nonsense() const;
  Error late() const;

  const std::string path_;
  Descriptor socket_, memory_;
  wire::HelloReply hello_;
  std::array<std::uint8_t, wire::kMostBytes> room_;
};

// All rows of a list. Throws Error as ask().
std::vector<wire::Row> all_rows(Connection& connection, wire::Listed what);

}  // namespace cutwater::cache
