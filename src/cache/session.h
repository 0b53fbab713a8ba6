// SPDX-License-Identifier: Apache-2.0
// One client of the daemon, as the daemon sees it: what it says is checked, done and answered.
// There is no socket here; server.h has it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/keeper.h"
#include "cache/protocol.h"
#include "cache/unix_socket.h"

namespace cutwater::cache {

// What all sessions share.
struct Desk {
  explicit Desk(std::shared_ptr<Segment> segment) : keeper(std::move(segment)) {}

  Keeper keeper;
  std::map<int, Peer> clients;  // that have the memory, by their number
};

class Session {
 public:
  // REQUIRES: the desk outlives this.
  Session(Desk& desk, const Peer& peer) : desk_(&desk), peer_(peer) {}
  ~Session();  // gives back all that the client held
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  struct Reply {
    std::span<const std::uint8_t> bytes;  // valid until the next packet
    int pass = -1;                        // a descriptor that goes along
    bool last = false;                    // then the client is disconnected
  };
  // Throws Error(kInvalidArgument) where the packet is nonsense: the client has to go.
  Reply answer(std::span<const std::uint8_t> packet);

  const Peer& peer() const { return peer_; }
  bool has_memory() const { return client_ >= 0; }

 private:
  template <class Message>
  static Message parsed(std::span<const std::uint8_t> packet);
  template <class Message>
  Reply said(const Message& message);
  // Of those who have the memory.
  int client() const;

  Reply greet(const wire::Hello& hello);
  Reply reserve(const wire::Reserve& question);
  Reply join(const wire::Join& question);
  Reply stat();
  Reply list(const wire::List& question);
  Reply clear(const wire::Clear& question);

  std::vector<wire::Row> rows(wire::Listed what) const;

  Desk* const desk_;
  const Peer peer_;
  bool greeted_ = false;
  int client_ = -1;  // -1: it has not got the memory
  std::vector<std::uint8_t> reply_;
};

}  // namespace cutwater::cache
