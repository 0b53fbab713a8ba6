// SPDX-License-Identifier: Apache-2.0
#include "cache/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "cache/protocol.h"
#include "cache/ready_memory.h"
#include "cache/session.h"
#include "cache/unix_socket.h"
#include "core/machine.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

// Packets of one client before the others get their turn.
constexpr int kPacketsAtOnce = 64;
// How often values are looked at that nobody can use any more.
constexpr std::chrono::milliseconds kTick{1000};
using Clock = std::chrono::steady_clock;

std::string words_of(const Peer& peer) {
  return "process " + std::to_string(peer.pid) + " of user " + std::to_string(peer.uid);
}

// Readable when the process has ended; -1: this system has none, or the process is of a world that
// this one does not see.
int descriptor_of(pid_t process) {
  return process > 0 ? static_cast<int>(syscall(SYS_pidfd_open, process, 0)) : -1;
}

// Of the machine's memory, what is not cleared ahead: half of what holds nothing now; and so much
// that where files fill the rest, it is not theirs that is taken.
std::uint64_t left_alone() {
  constexpr std::size_t kPart = 16;
  return std::max(unused_memory_bytes() / 2, usable_memory_bytes() / kPart);
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(const ServeOptions& options)
      : log_(options.log),
        desk_(Segment::shared(options.limit)),
        listener_(options.socket),
        events_(epoll_create1(EPOLL_CLOEXEC)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        ready_(desk_.keeper.segment(), left_alone()) {
    for (const auto& [user, bytes] : options.quotas) desk_.keeper.set_quota(user, bytes);
    if (!events_ || !stop_ || !watch(stop_, kStop) || !watch(listener_.socket(), kListener))
      throw Error(Code::kIo,
                  "the cache cannot watch its socket: " + std::generic_category().message(errno));
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run() {
    std::array<epoll_event, 64> ready;
    while (true) {
      const bool idle = clients_.empty() && listening_;
      const int count = epoll_wait(events_.get(), ready.data(), static_cast<int>(ready.size()),
                                   idle ? -1 : static_cast<int>(kTick.count()));
      if (count < 0 && errno != EINTR)
        throw Error(Code::kIo, "the cache cannot wait: " + std::generic_category().message(errno));
      if (Clock::now() - ticked_ >= kTick) tick();
      for (int i = 0; i < count; ++i) {
        const std::uint64_t about = ready[static_cast<std::size_t>(i)].data.u64;
        if (about == kStop) return;
        if (about == kListener)
          accept_one();
        else if (const auto client = clients_.find(about / 2); client == clients_.end())
          continue;  // it went a moment ago
        else if (about % 2 == 0)
          serve(client);
        else
          bury(client);
      }
    }
  }

  void stop() {
    const std::uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
  }

 private:
  // What an event is about: these, or twice the client's number, one more for its process.
  static constexpr std::uint64_t kStop = 0, kListener = 1;

  struct Client {
    Client(Descriptor&& its_socket, Descriptor&& its_process, Desk& desk, const Peer& peer)
        : socket(std::move(its_socket)), process(std::move(its_process)), session(desk, peer) {}

    const Descriptor socket, process;
    Session session;
    bool leaving = false;  // it was told to go, and is not listened to any more
  };
  using Clients = std::map<std::uint64_t, Client>;

  bool watch(const Descriptor& fd, std::uint64_t about) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = about;
    return epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
  }

  void tick() {
    ticked_ = Clock::now();
    desk_.keeper.sweep();
    if (!listening_) listening_ = watch(listener_.socket(), kListener);
    if (desk_.keeper.trouble() != trouble_) log_(trouble_ = desk_.keeper.trouble());
  }

  void accept_one() {
    Descriptor socket(
        accept4(listener_.socket().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
      log_("a client has to wait: " + std::generic_category().message(errno));
      epoll_ctl(events_.get(), EPOLL_CTL_DEL, listener_.socket().get(), nullptr);
      listening_ = false;
      return;
    }
    Peer peer;
    try {
      peer = peer_of(socket);
    } catch (const Error& error) {
      return log_("a client was turned away: " + error.failure().reason);
    }
    if (geteuid() != 0 && peer.uid != geteuid() && peer.uid != 0) {
      log_(words_of(peer) + " was turned away: it is another user's");
      return;
    }
    const std::uint64_t number = next_client_++;
    Descriptor process(descriptor_of(peer.pid));
    const auto place =
        clients_.try_emplace(number, std::move(socket), std::move(process), desk_, peer);
    Client& client = place.first->second;
    if (!watch(client.socket, 2 * number) ||
        (client.process && !watch(client.process, 2 * number + 1))) {
      log_(words_of(peer) + " cannot be served: " + std::generic_category().message(errno));
      clients_.erase(place.first);
    }
  }

  void serve(Clients::iterator client) {
    try {
      if (answered(client->second)) return;
    } catch (const Error& error) {
      log_(words_of(client->second.session.peer()) + " is disconnected: " + error.failure().reason);
      if (tell_to_go(client->second)) return;
    }
    clients_.erase(client);
  }

  // Whoever has the memory may be reading what he holds: that is given back when he has gone.
  static bool tell_to_go(Client& client) {
    client.leaving = true;
    return client.session.has_memory() && shutdown(client.socket.get(), SHUT_WR) == 0;
  }

  // What it has said by now. False: it has gone. Throws Error where it has to.
  bool answered(Client& client) {
    for (int i = 0; i < kPacketsAtOnce; ++i) {
      const Received received = receive_packet(client.socket, room_);
      if (received.what == Received::What::kNothing) return true;
      if (received.what == Received::What::kGone) return false;
      if (client.leaving) continue;
      const Session::Reply reply = client.session.answer(received.packet);
      if (reply.last) {
        (void)send_packet(client.socket, reply.bytes, reply.pass);
        return false;
      }
      if (!send_packet(client.socket, reply.bytes, reply.pass))
        throw Error(Code::kIo, "it cannot be answered");
    }
    return true;
  }

  // Its process has ended, though a fork of it may still hold the socket. What it said last counts.
  void bury(Clients::iterator client) {
    const std::uint64_t number = client->first;
    serve(client);
    clients_.erase(number);
  }

  const std::function<void(const std::string&)> log_;
  Desk desk_;
  const Listener listener_;
  const Descriptor events_, stop_;
  bool listening_ = true;  // false: there was no descriptor for a client
  Clock::time_point ticked_ = Clock::now();
  std::string trouble_;
  std::uint64_t next_client_ = 1;
  Clients clients_;
  std::array<std::uint8_t, wire::kMostBytes> room_;
  const ReadyMemory ready_;
};

Server::Server(const ServeOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Server::~Server() = default;
void Server::run() { impl_->run(); }
void Server::stop() { impl_->stop(); }

}  // namespace cutwater::cache
