// SPDX-License-Identifier: Apache-2.0
#include "cache/connection.h"

#include <cerrno>

namespace cutwater::cache {

std::string how_to_serve(const std::string& path) {
  const std::string where = path == default_socket() ? "" : " --socket " + path;
  return "start one: cutwater cache serve --memory 8GiB" + where;
}

Connection::Connection(const std::string& path, bool wants_memory)
    : path_(path), socket_(connect_to(path)) {
  wire::Hello hello;
  hello.wants_memory = wants_memory ? 1 : 0;
  say(hello);
  const auto packet = receive();
  const auto head = wire::head_of(packet);
  if (head && head->kind == wire::Kind::kHello && head->version != wire::kVersion)
    throw Error(Code::kUnavailable,
                "the cache at " + path + " speaks version " + std::to_string(head->version) +
                    " of the protocol, this is version " + std::to_string(wire::kVersion) +
                    ": run both from one release of cutwater");
  const auto reply = wire::read<wire::HelloReply>(packet);
  if (!reply || (wants_memory && reply->status == wire::Status::kDone && !memory_))
    throw nonsense();
  if (reply->status != wire::Status::kDone)
    throw Error(Code::kUnavailable, "the cache at " + path + " has too many clients already");
  hello_ = *reply;
}

void Connection::send(std::span<const std::uint8_t> packet) {
  if (send_packet(socket_, packet)) return;
  if (errno != EAGAIN) throw gone();
  if (!wait_writable(socket_, kAnswerTime) || !send_packet(socket_, packet))
    throw Error(Code::kUnavailable, late().failure().reason);
}

std::span<const std::uint8_t> Connection::receive() {
  if (!wait_readable(socket_, kAnswerTime)) throw late();
  Received received = receive_packet(socket_, room_);
  if (received.what != Received::What::kPacket) throw gone();
  if (received.passed) memory_ = std::move(received.passed);
  return received.packet;
}

Error Connection::gone() const {
  return {Code::kUnavailable, "the cache at " + path_ + " has closed the connection"};
}
Error Connection::nonsense() const {
  return {Code::kUnavailable, "what answers at " + path_ + " is no cache of cutwater"};
}
Error Connection::late() const {
  return {Code::kTimeout, "the cache at " + path_ + " has not answered for " +
                              std::to_string(kAnswerTime.count() / 1000) + " s"};
}

std::vector<wire::Row> all_rows(Connection& connection, wire::Listed what) {
  std::vector<wire::Row> rows;
  wire::List question;
  question.what = what;
  question.from_start = 1;
  while (true) {
    const auto reply = connection.ask<wire::ListReply>(question);
    if (reply.count > wire::kMostRows || (reply.more != 0 && reply.count == 0)) return rows;
    rows.insert(rows.end(), reply.rows.begin(), reply.rows.begin() + reply.count);
    if (reply.more == 0) return rows;
    question.from_start = 0;
    question.a = rows.back().a;
    question.b = rows.back().b;
  }
}

}  // namespace cutwater::cache
