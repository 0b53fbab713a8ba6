// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <system_error>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

[[noreturn]] void fail(const std::string& why) { throw Error(Code::kUnavailable, why); }

std::string text_of(int error) { return std::generic_category().message(error); }

std::string tls_trouble() {
  const unsigned long error = ERR_get_error();
  const char* const reason = error != 0 ? ERR_reason_error_string(error) : nullptr;
  ERR_clear_error();
  return reason != nullptr ? reason : "the connection broke";
}

// OpenSSL's own socket BIO raises SIGPIPE when the server has gone; this one does not.
int fd_of(BIO* bio) { return *static_cast<const int*>(BIO_get_data(bio)); }

int write_to_socket(BIO* bio, const char* data, int size) {
  const ssize_t sent = ::send(fd_of(bio), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  BIO_clear_retry_flags(bio);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_from_socket(BIO* bio, char* data, int size) {
  const ssize_t got = ::recv(fd_of(bio), data, static_cast<std::size_t>(size), 0);
  BIO_clear_retry_flags(bio);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* socket_method() {
  static const std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> method = [] {
    std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> made(
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cutwater socket"), BIO_meth_free);
    BIO_meth_set_write(made.get(), write_to_socket);
    BIO_meth_set_read(made.get(), read_from_socket);
    BIO_meth_set_ctrl(made.get(), control_socket);
    return made;
  }();
  return method.get();
}

bool is_number(const std::string& host) {
  sockaddr_in6 six{};
  sockaddr_in four{};
  return inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
}

}  // namespace

std::vector<Address> addresses_of(const Endpoint& endpoint, bool only_numbers) {
  if (!endpoint.path.empty()) {
    Address address;
    auto* const to = reinterpret_cast<sockaddr_un*>(&address.storage);
    if (endpoint.path.size() >= sizeof(to->sun_path)) return {};
    to->sun_family = AF_UNIX;
    std::memcpy(to->sun_path, endpoint.path.c_str(), endpoint.path.size() + 1);
    address.size = sizeof(sockaddr_un);
    return {address};
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (only_numbers ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  if (getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list) != 0)
    return {};
  std::vector<Address> addresses;
  for (const addrinfo* found = list; found != nullptr; found = found->ai_next) {
    if (found->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, found->ai_addr, found->ai_addrlen);
    address.size = found->ai_addrlen;
  }
  freeaddrinfo(list);
  return addresses;
}

Tls::Tls(const std::string& ca) : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
  if (context_ == nullptr) throw Error(Code::kInternal, "TLS cannot be used: " + tls_trouble());
  SSL_CTX_set_min_proto_version(context(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const int trusted = ca.empty() ? SSL_CTX_set_default_verify_paths(context())
                                 : SSL_CTX_load_verify_locations(context(), ca.c_str(), nullptr);
  if (trusted != 1)
    throw Error(Code::kInvalidArgument, "the cache's Redis URL: ca '" + ca +
                                            "' is not a file of certificates: " + tls_trouble());
}

Socket::Socket(int fd) : fd_(fd), tls_(nullptr, SSL_free) {
  if (::fcntl(fd_, F_SETFL, O_NONBLOCK) < 0) {
    const std::string why = text_of(errno);
    close_fd();
    fail(why);
  }
}

Socket::Socket(std::span<const Address> addresses, const std::string& host, const Tls* tls,
               Deadline deadline)
    : tls_(nullptr, SSL_free) {
  std::string why = "no such host";
  const bool connected = std::ranges::any_of(
      addresses, [&](const Address& address) { return connect_to(address, deadline, why); });
  if (!connected) fail(why);
  try {
    if (tls != nullptr) start_tls(host, *tls, deadline);
  } catch (...) {
    close_fd();
    throw;
  }
}

Socket::~Socket() { close_fd(); }

void Socket::close_fd() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool Socket::connect_to(const Address& address, Deadline deadline, std::string& why) {
  close_fd();
  const auto* const to = reinterpret_cast<const sockaddr*>(&address.storage);
  fd_ = ::socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int error = fd_ < 0 ? errno : 0;
  if (error == 0 && ::connect(fd_, to, address.size) != 0) error = errno;
  if (error == EINPROGRESS) {
    if (!wait_for(POLLOUT, deadline)) throw Error(Code::kTimeout, "no connection in time");
    socklen_t size = sizeof error;
    if (::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  }
  if (error != 0) {
    why = text_of(error);
    close_fd();
    return false;
  }
  const int on = 1;  // refused by Unix sockets, which need neither
  (void)::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  return true;
}

void Socket::start_tls(const std::string& host, const Tls& tls, Deadline deadline) {
  tls_.reset(SSL_new(tls.context()));
  BIO* const bio = tls_ != nullptr ? BIO_new(socket_method()) : nullptr;
  if (bio == nullptr) fail("TLS: " + tls_trouble());
  BIO_set_data(bio, &fd_);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_.get(), bio, bio);
  // A number is looked for among the certificate's addresses, a name among its names.
  const int set = is_number(host)
                      ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str())
                      : SSL_set1_host(tls_.get(), host.c_str());
  if (set != 1) fail("TLS: " + tls_trouble());
  if (!is_number(host)) SSL_set_tlsext_host_name(tls_.get(), const_cast<char*>(host.c_str()));
  for (;;) {
    const int result = SSL_connect(tls_.get());
    if (result == 1) return;
    const long verdict = SSL_get_verify_result(tls_.get());
    if (verdict != X509_V_OK) {
      ERR_clear_error();
      fail(std::string("the server's certificate is not trusted: ") +
           X509_verify_cert_error_string(verdict) + "; name its authority by ?ca=FILE");
    }
    wait_for_tls(result, deadline);
  }
}

bool Socket::wait_for(short events, Deadline deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll{fd_, events, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::min<std::int64_t>(left, INT_MAX)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail(text_of(errno));
  }
}

void Socket::wait_or_throw(short events, Deadline deadline) const {
  if (!wait_for(events, deadline)) throw Error(Code::kTimeout, "no answer in time");
}

void Socket::wait_for_tls(int result, Deadline deadline) {
  const int error = SSL_get_error(tls_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return wait_or_throw(POLLIN, deadline);
  if (error == SSL_ERROR_WANT_WRITE) return wait_or_throw(POLLOUT, deadline);
  if (error == SSL_ERROR_ZERO_RETURN) fail("the server has closed the connection");
  fail("TLS: " + tls_trouble());
}

std::size_t Socket::read_some(std::span<std::uint8_t> place, Deadline deadline) {
  for (;;) {
    std::size_t got = 0;
    if (tls_ != nullptr) {
      const int result = SSL_read_ex(tls_.get(), place.data(), place.size(), &got);
      if (result != 1) wait_for_tls(result, deadline);
    } else {
      const ssize_t result = ::recv(fd_, place.data(), place.size(), 0);
      if (result == 0) fail("the server has closed the connection");
      if (result < 0 && errno == EAGAIN)
        wait_or_throw(POLLIN, deadline);
      else if (result < 0 && errno != EINTR)
        fail(text_of(errno));
      else if (result > 0)
        got = static_cast<std::size_t>(result);
    }
    // A server that trickles must not keep anybody for longer than one that is silent.
    if (Clock::now() > deadline) throw Error(Code::kTimeout, "no whole answer in time");
    if (got > 0) return got;
  }
}

void Socket::write_all(std::vector<iovec> pieces, Deadline deadline) {
  std::size_t first = 0;
  while (first < pieces.size()) {
    if (pieces[first].iov_len == 0) {
      ++first;
      continue;
    }
    std::size_t sent = 0;
    if (tls_ != nullptr) {
      const int result =
          SSL_write_ex(tls_.get(), pieces[first].iov_base, pieces[first].iov_len, &sent);
      if (result != 1) {
        wait_for_tls(result, deadline);
        continue;
      }
    } else {
      msghdr message{};
      message.msg_iov = pieces.data() + first;
      message.msg_iovlen = std::min<std::size_t>(pieces.size() - first, IOV_MAX);
      const ssize_t result = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (result < 0) {
        if (errno == EAGAIN)
          wait_or_throw(POLLOUT, deadline);
        else if (errno != EINTR)
          fail(text_of(errno));
        continue;
      }
      sent = static_cast<std::size_t>(result);
    }
    while (sent > 0) {
      iovec& piece = pieces[first];
      const std::size_t part = std::min(sent, piece.iov_len);
      piece.iov_base = static_cast<std::uint8_t*>(piece.iov_base) + part;
      piece.iov_len -= part;
      sent -= part;
      if (piece.iov_len == 0) ++first;
    }
    if (Clock::now() > deadline) throw Error(Code::kTimeout, "not taken in time");
  }
}

}  // namespace cutwater::redis
