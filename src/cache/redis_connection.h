// SPDX-License-Identifier: Apache-2.0
// One connection to a server: commands go out together, their answers come back in order.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/redis_reply.h"
#include "cache/redis_socket.h"

namespace cutwater::redis {

// Commands for one round trip. Bodies are not copied: they stay in place until they are sent.
class Commands {
 public:
  explicit Commands(bool asking = false) : asking_(asking) {}

  void add(std::initializer_list<std::string_view> words);
  // A command word by word: begin() says how many there are.
  void begin(std::size_t words);
  void word(std::string_view text);
  void word(std::string_view head, std::span<const std::uint8_t> body);  // one word of two parts

  std::size_t count() const { return count_; }
  bool asking() const { return asking_; }
  std::vector<iovec> pieces() const;

 private:
  struct Body {
    std::size_t at;  // in text_
    std::span<const std::uint8_t> bytes;
  };
  std::string text_;
  std::vector<Body> bodies_;
  std::size_t count_ = 0;
  bool asking_;  // a node that a slot is moving to answers only those who say ASKING each time
};

// One thread at a time; every method may throw what Socket and ReplyReader do. After that, or when
// answers are outstanding, the connection is of no more use.
class Connection {
 public:
  // Connects and logs in.
  Connection(std::span<const Address> addresses, const Url& url, const std::string& host,
             const Tls* tls, Deadline deadline);
  explicit Connection(int fd) : socket_(fd) {}  // to a server that needs no login

  // From here on to the next call, commands() say ASKING.
  void set_asking(bool asking) { asking_ = asking; }
  Commands commands() const { return Commands(asking_); }

  // One round trip: as many answers as there are commands.
  std::vector<Reply> exchange(const Commands& commands, Deadline deadline);
  Reply ask(std::initializer_list<std::string_view> words, Deadline deadline);

  // Long texts come straight to where they belong: send() the commands, then for each of them
  // read_head(), and if that has a size, read_text() until all of it has come, and read_tail().
  struct Head {
    std::optional<std::size_t> size;  // nothing: there is no such text
    std::string error;
  };
  void send(const Commands& commands, Deadline deadline);
  Head read_head(Deadline deadline);
  Head read_number(
      Deadline deadline);  // in its place, for what is answered by a number, not below 0
  std::size_t read_text(std::span<std::uint8_t> place, Deadline deadline);  // some, at least one
  void read_tail(Deadline deadline);

  // What has gone to and fro so far.
  struct Traffic {
    std::size_t trips = 0, bytes = 0;
  };
  const Traffic& traffic() const { return traffic_; }

  bool is_clean() const { return outstanding_ == 0 && in_.empty() && replies_.is_empty(); }

 private:
  void log_in(const Url& url, Deadline deadline);
  void fill(Deadline deadline);  // more into in_
  std::string read_line(Deadline deadline);
  std::string read_first_line(Deadline deadline);  // of the answer to a command
  Reply read_reply(Deadline deadline);

  Socket socket_;
  ReplyReader replies_;
  std::array<std::uint8_t, 16384> input_{};
  std::span<const std::uint8_t> in_;  // of input_: read, and not yet used
  std::size_t outstanding_ = 0;       // answers, those to ASKING not counted
  Traffic traffic_;
  bool asking_ = false;
};

}  // namespace cutwater::redis
