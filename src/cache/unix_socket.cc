// SPDX-License-Identifier: Apache-2.0
#include "cache/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

constexpr int kBacklog = 64;

std::string error_text(int error) { return std::generic_category().message(error); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path ||
      path.find('\0') != std::string::npos)
    throw Error(Code::kInvalidArgument,
                "socket path '" + path + "' has " + std::to_string(path.size()) +
                    " bytes; the system takes 1 to " + std::to_string(sizeof address.sun_path - 1) +
                    ": choose a shorter one");
  path.copy(static_cast<char*>(address.sun_path), path.size());
  return address;
}

Descriptor new_socket() {
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw Error(Code::kIo, "no Unix socket to be had: " + error_text(errno));
  return fd;
}

// 0, or what went wrong.
int connected(const Descriptor& socket, const sockaddr_un& address) {
  const int done =
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return done == 0 ? 0 : errno;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// The folder, open and locked against others that want to listen in it at the same time.
Descriptor own_folder(const std::string& folder) {
  Descriptor fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found {};
  if (!fd || fstat(fd.get(), &found) != 0)
    throw Error(Code::kInvalidArgument, "no folder " + folder + " for the socket: " +
                                            error_text(errno) + "; make it with mkdir -m 700");
  if (found.st_uid != geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw Error(Code::kInvalidArgument,
                "the socket's folder " + folder +
                    " must belong to you and be closed to the writing of others: whoever can write "
                    "there can take the socket's place; make another one with mkdir -m 700");
  if (flock(fd.get(), LOCK_EX) != 0)
    throw Error(Code::kIo, folder + " cannot be locked: " + error_text(errno));
  return fd;
}

void remove_if_dead(const std::string& path, const sockaddr_un& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return;
  if (!S_ISSOCK(found.st_mode))
    throw Error(Code::kInvalidArgument, path + " is there and is no socket; choose another path");
  const Descriptor probe = new_socket();
  const int error = connected(probe, address);
  if (error == 0 || error == EAGAIN)
    throw Error(Code::kUnavailable,
                "a cache is served at " + path + " already" +
                    (error == 0 ? " by process " + std::to_string(peer_of(probe).pid) : "") +
                    "; end it, or choose another path");
  if (error != ECONNREFUSED)
    throw Error(Code::kIo, path + " is there and does not answer: " + error_text(error));
  unlink(path.c_str());
}

bool wait_for(const Descriptor& socket, short what, std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd entry{socket.get(), what, 0};
    const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

std::string default_socket() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && *runtime == '/'
                                 ? std::string(runtime) + "/cutwater"
                                 : "/tmp/cutwater-" + std::to_string(geteuid());
  return folder + "/cache.sock";
}

Listener::Listener(const std::string& path) : path_(path) {
  const sockaddr_un address = address_of(path);
  const std::string folder = folder_of(path);
  if (path == default_socket()) mkdir(folder.c_str(), 0700);  // what is wrong shows at once
  const Descriptor locked = own_folder(folder);
  remove_if_dead(path, address);
  socket_ = new_socket();
  // Before it is bound: on Linux the file has these bits from its first moment on.
  fchmod(socket_.get(), S_IRUSR | S_IWUSR);
  struct stat found {};
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket_.get(), kBacklog) != 0 || lstat(path.c_str(), &found) != 0)
    throw Error(Code::kIo, "cannot listen at " + path + ": " + error_text(errno));
  device_ = found.st_dev;
  file_ = found.st_ino;
}

Listener::~Listener() {
  // Somebody may have put another one in its place by hand.
  struct stat now {};
  if (lstat(path_.c_str(), &now) == 0 && now.st_dev == device_ && now.st_ino == file_)
    unlink(path_.c_str());
}

bool remove_dead_socket(const std::string& path) {
  const sockaddr_un address = address_of(path);
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
  const auto is_dead = [&] { return connected(new_socket(), address) == ECONNREFUSED; };
  if (!is_dead()) return false;                           // whoever's it is
  const Descriptor locked = own_folder(folder_of(path));  // nobody begins to listen meanwhile
  return is_dead() && unlink(path.c_str()) == 0;
}

Descriptor connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  Descriptor socket = new_socket();
  if (const int error = connected(socket, address); error != 0)
    throw Error(Code::kUnavailable, error == ENOENT || error == ECONNREFUSED
                                        ? "nobody serves a cache at " + path
                                        : "no way to " + path + ": " + error_text(error));
  const Peer peer = peer_of(socket);
  if (peer.uid != geteuid() && peer.uid != 0)
    throw Error(Code::kUnavailable, "the cache at " + path + " is user " +
                                        std::to_string(peer.uid) +
                                        "'s: only your own or root's is trusted");
  return socket;
}

Peer peer_of(const Descriptor& socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    throw Error(Code::kIo, "who is at the socket is not known: " + error_text(errno));
  return {who.pid, who.uid};
}

bool send_packet(const Descriptor& socket, std::span<const std::uint8_t> packet, int pass) {
  iovec part{const_cast<std::uint8_t*>(packet.data()), packet.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  if (pass >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof pass);
    std::memcpy(CMSG_DATA(rights), &pass, sizeof pass);
  }
  ssize_t sent = -1;
  do sent = sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(packet.size());
}

Received receive_packet(const Descriptor& socket, std::span<std::uint8_t> room) {
  iovec part{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // with the padding, two would fit
  ssize_t got = -1;
  do got = recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return {Received::What::kNothing, {}, {}};
  if (got <= 0) return {Received::What::kGone, {}, {}};
  Received received{Received::What::kPacket, room.first(static_cast<std::size_t>(got)), {}};
  for (cmsghdr* part_of = CMSG_FIRSTHDR(&message); part_of != nullptr;
       part_of = CMSG_NXTHDR(&message, part_of)) {
    if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part_of), sizeof fd);
    received.passed = Descriptor(fd);
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) received.packet = {};
  return received;
}

bool wait_readable(const Descriptor& socket, std::chrono::milliseconds time) {
  return wait_for(socket, POLLIN, time);
}
bool wait_writable(const Descriptor& socket, std::chrono::milliseconds time) {
  return wait_for(socket, POLLOUT, time);
}

}  // namespace cutwater::cache
