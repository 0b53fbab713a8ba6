// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_connection.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

[[noreturn]] void fail(const std::string& why) { throw Error(Code::kUnavailable, why); }

// The number that a line is but for its sign; nothing: it is another line.
std::optional<std::int64_t> number_after(char sign, std::string_view line) {
  std::int64_t number = 0;
  if (!line.starts_with(sign)) return std::nullopt;
  const auto read = std::from_chars(line.data() + 1, line.data() + line.size(), number);
  if (read.ec != std::errc{} || read.ptr != line.data() + line.size()) return std::nullopt;
  return number;
}

iovec piece(const void* data, std::size_t size) { return {const_cast<void*>(data), size}; }

}  // namespace

void Commands::add(std::initializer_list<std::string_view> words) {
  begin(words.size());
  for (const std::string_view text : words) word(text);
}

void Commands::begin(std::size_t words) {
  if (asking_) text_ += "*1\r\n$6\r\nASKING\r\n";
  text_ += "*" + std::to_string(words) + "\r\n";
  ++count_;
}

void Commands::word(std::string_view text) { word(text, {}); }

void Commands::word(std::string_view head, std::span<const std::uint8_t> body) {
  text_ += "$" + std::to_string(head.size() + body.size()) + "\r\n";
  text_ += head;
  if (!body.empty()) bodies_.push_back({text_.size(), body});
  text_ += "\r\n";
}

std::vector<iovec> Commands::pieces() const {
  std::vector<iovec> pieces;
  pieces.reserve(2 * bodies_.size() + 1);
  std::size_t at = 0;
  for (const Body& body : bodies_) {
    pieces.push_back(piece(text_.data() + at, body.at - at));
    pieces.push_back(piece(body.bytes.data(), body.bytes.size()));
    at = body.at;
  }
  pieces.push_back(piece(text_.data() + at, text_.size() - at));
  return pieces;
}

Connection::Connection(std::span<const Address> addresses, const Url& url, const std::string& host,
                       const Tls* tls, Deadline deadline)
    : socket_(addresses, host, tls, deadline) {
  log_in(url, deadline);
}

void Connection::log_in(const Url& url, Deadline deadline) {
  Commands commands;
  if (!url.user.empty())
    commands.add({"AUTH", url.user, url.password});
  else if (!url.password.empty())
    commands.add({"AUTH", url.password});
  const std::size_t logins = commands.count();
  if (url.database != 0) commands.add({"SELECT", std::to_string(url.database)});
  commands.add({"PING"});
  const std::vector<Reply> replies = exchange(commands, deadline);
  for (std::size_t i = 0; i < replies.size(); ++i)
    if (replies[i].is_error())
      fail((i < logins ? "the login was refused: " : "the server refuses: ") + replies[i].text);
}

std::vector<Reply> Connection::exchange(const Commands& commands, Deadline deadline) {
  send(commands, deadline);
  std::vector<Reply> replies;
  for (std::size_t i = 0; i < commands.count(); ++i) {
    if (commands.asking()) (void)read_reply(deadline);  // a refusal comes again with the command
    replies.push_back(read_reply(deadline));
    --outstanding_;
  }
  return replies;
}

Reply Connection::ask(std::initializer_list<std::string_view> words, Deadline deadline) {
  Commands commands(asking_);
  commands.add(words);
  return std::move(exchange(commands, deadline).front());
}

void Connection::send(const Commands& commands, Deadline deadline) {
  if (!is_clean()) fail("the server has answered what was not asked");
  outstanding_ = commands.count();
  std::vector<iovec> pieces = commands.pieces();
  ++traffic_.trips;
  for (const iovec& part : pieces) traffic_.bytes += part.iov_len;
  socket_.write_all(std::move(pieces), deadline);
}

Reply Connection::read_reply(Deadline deadline) {
  for (;;) {
    if (std::optional<Reply> reply = replies_.next()) return *std::move(reply);
    fill(deadline);
    replies_.feed(std::exchange(in_, {}));
  }
}

void Connection::fill(Deadline deadline) {
  std::copy(in_.begin(), in_.end(), input_.begin());
  const std::span<std::uint8_t> room = std::span(input_).subspan(in_.size());
  if (room.empty()) fail("not an answer of Redis: a line without an end");
  const std::size_t got = socket_.read_some(room, deadline);
  traffic_.bytes += got;
  in_ = {input_.data(), in_.size() + got};
}

std::string Connection::read_line(Deadline deadline) {
  for (std::size_t searched = 0;;) {
    const auto end =
        std::find(in_.begin() + static_cast<std::ptrdiff_t>(searched), in_.end(), '\n');
    if (end != in_.end()) {
      std::string line(in_.begin(), end);
      in_ = {end + 1, in_.end()};
      if (!line.ends_with('\r')) fail("not an answer of Redis: a line that does not end as others");
      line.pop_back();
      return line;
    }
    searched = in_.size();
    fill(deadline);
  }
}

std::string Connection::read_first_line(Deadline deadline) {
  if (asking_) (void)read_line(deadline);
  return read_line(deadline);
}

Connection::Head Connection::read_head(Deadline deadline) {
  const std::string line = read_first_line(deadline);
  if (line.starts_with('-')) {
    --outstanding_;
    return {std::nullopt, line.substr(1)};
  }
  const std::optional<std::int64_t> size = number_after('$', line);
  if (!size || *size < -1) fail("not an answer of Redis: no size of a text");
  if (*size >= 0) return {static_cast<std::size_t>(*size), {}};
  --outstanding_;
  return {};
}

Connection::Head Connection::read_number(Deadline deadline) {
  const std::string line = read_first_line(deadline);
  --outstanding_;
  if (line.starts_with('-')) return {std::nullopt, line.substr(1)};
  const std::optional<std::int64_t> number = number_after(':', line);
  if (!number || *number < 0) fail("not an answer of Redis: no number");
  return {static_cast<std::size_t>(*number), {}};
}

std::size_t Connection::read_text(std::span<std::uint8_t> place, Deadline deadline) {
  if (in_.empty()) {
    const std::size_t got = socket_.read_some(place, deadline);
    traffic_.bytes += got;
    return got;
  }
  const std::size_t size = std::min(place.size(), in_.size());
  std::memcpy(place.data(), in_.data(), size);
  in_ = in_.subspan(size);
  return size;
}

void Connection::read_tail(Deadline deadline) {
  if (!read_line(deadline).empty()) fail("not an answer of Redis: a text that does not end");
  --outstanding_;
}

}  // namespace cutwater::redis
