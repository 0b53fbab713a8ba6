// SPDX-License-Identifier: Apache-2.0
// Unix sockets of whole packets (SOCK_SEQPACKET), and who may meet at them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "cache/descriptor.h"

namespace cutwater::cache {

// cache.sock in a folder of this user alone: $XDG_RUNTIME_DIR/cutwater, else /tmp/cutwater-UID.
std::string default_socket();

// A socket that listens, and its file, which goes with it.
class Listener {
 public:
  // The socket is this user's alone (0600). Makes the default's folder; any folder must be the
  // user's and closed to the writing of others. What a dead listener left is replaced. Throws
  // Error: kInvalidArgument for a path or a folder that cannot be, kUnavailable, naming the
  // process, where somebody listens already, kIo.
  explicit Listener(const std::string& path);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const Descriptor& socket() const { return socket_; }

 private:
  const std::string path_;
  Descriptor socket_;
  dev_t device_ = 0;
  ino_t file_ = 0;
};

// What a listener that was killed has left behind. False: there is none, or somebody listens there.
// Throws Error(kInvalidArgument) for a path or a folder that cannot be.
bool remove_dead_socket(const std::string& path);

// Throws Error(kUnavailable) with the reason in words: nobody is there, or he is neither this user
// nor root.
Descriptor connect_to(const std::string& path);

struct Peer {
  pid_t pid = 0;  // 0: of a world that this process does not see
  uid_t uid = 0;
};
Peer peer_of(const Descriptor& socket);

// The whole packet or nothing, without waiting; with a descriptor that the other gets a copy of.
// False: there is no room just now (EAGAIN in errno), or nobody there any more.
bool send_packet(const Descriptor& socket, std::span<const std::uint8_t> packet, int pass = -1);

struct Received {
  enum class What { kPacket, kNothing, kGone } what;
  std::span<const std::uint8_t> packet;  // in the room; empty where it was longer than that
  Descriptor passed;
};
// The next packet, without waiting. A packet that is longer than the room is an empty one.
Received receive_packet(const Descriptor& socket, std::span<std::uint8_t> room);

// Whether there is something to receive, or nobody there any more, before the time is over.
bool wait_readable(const Descriptor& socket, std::chrono::milliseconds time);
bool wait_writable(const Descriptor& socket, std::chrono::milliseconds time);

}  // namespace cutwater::cache
