// SPDX-License-Identifier: Apache-2.0
#include "run/ring.h"

#if CUTWATER_IO_URING

#include <fcntl.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <thread>

#include "core/mutex.h"

namespace cutwater {

struct Ring::State {
  ~State() {
    if (made) io_uring_queue_exit(&ring);
  }

  io_uring ring;
  bool made = false;
  Mutex submitting;  // one submission at a time; wait() needs no lock beside it

  // Fills the next entry by `prepare` and hands it over.
  template <class F>
  bool submit(std::uint64_t token, F&& prepare) {
    MutexLock lock(submitting);
    io_uring_sqe* const entry = io_uring_get_sqe(&ring);
    if (entry == nullptr) return false;
    prepare(entry);
    io_uring_sqe_set_data64(entry, token);
    while (io_uring_submit(&ring) == -EINTR) {
    }
    if (io_uring_sq_ready(&ring) == 0) return true;
    // Still ours: an entry that does nothing takes its place, and its token is nobody's.
    io_uring_prep_nop(entry);
    io_uring_sqe_set_data64(entry, 0);
    return false;
  }
};

Ring::Ring() : state_(std::make_unique<State>()) {}

Ring::~Ring() = default;

std::unique_ptr<Ring> Ring::create(unsigned depth) {
  auto ring = std::make_unique<Ring>();
  // One more for wake(), one for an entry that the kernel did not take.
  ring->state_->made = io_uring_queue_init(depth + 2, &ring->state_->ring, 0) == 0;
  if (!ring->state_->made) return nullptr;
  return ring;
}

std::string Ring::missing() {
  io_uring ring;
  const int result = io_uring_queue_init(2, &ring, 0);
  if (result == 0) {
    io_uring_queue_exit(&ring);
    return {};
  }
  return "the kernel refuses it: " + std::generic_category().message(-result);
}

bool Ring::open(const char* path, int flags, std::uint64_t token) {
  return state_->submit(
      token, [&](io_uring_sqe* entry) { io_uring_prep_openat(entry, AT_FDCWD, path, flags, 0); });
}

bool Ring::read(int fd, std::span<std::uint8_t> into, std::uint64_t offset, std::uint64_t token) {
  const auto size = static_cast<unsigned>(
      std::min<std::size_t>(into.size(), std::numeric_limits<std::int32_t>::max()));
  return state_->submit(token, [&](io_uring_sqe* entry) {
    io_uring_prep_read(entry, fd, into.data(), size, offset);
  });
}

bool Ring::wait_until(std::chrono::steady_clock::time_point due, std::uint64_t token) {
  const auto since = due.time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
  __kernel_timespec when{seconds.count(), std::chrono::nanoseconds(since - seconds).count()};
  return state_->submit(token, [&](io_uring_sqe* entry) {
    io_uring_prep_timeout(entry, &when, 0, IORING_TIMEOUT_ABS);
  });
}

void Ring::wake() {
  // Refused only while the kernel is short of memory.
  while (!state_->submit(0, [](io_uring_sqe* entry) { io_uring_prep_nop(entry); }))
    std::this_thread::yield();
}

std::vector<Ring::Done> Ring::wait() {
  std::vector<Done> done;
  io_uring_cqe* first = nullptr;
  int result;
  do result = io_uring_wait_cqe(&state_->ring, &first);
  while (result == -EINTR);
  unsigned head = 0, seen = 0;
  io_uring_cqe* entry = nullptr;
  io_uring_for_each_cqe(&state_->ring, head, entry) {
    ++seen;
    if (entry->user_data != 0) done.push_back({entry->user_data, entry->res});
  }
  io_uring_cq_advance(&state_->ring, seen);
  return done;
}

}  // namespace cutwater

#else

namespace cutwater {

struct Ring::State {};
Ring::Ring() = default;
Ring::~Ring() = default;
std::unique_ptr<Ring> Ring::create(unsigned) { return nullptr; }
std::string Ring::missing() { return "built without liburing"; }
bool Ring::open(const char*, int, std::uint64_t) { return false; }
bool Ring::read(int, std::span<std::uint8_t>, std::uint64_t, std::uint64_t) { return false; }
bool Ring::wait_until(std::chrono::steady_clock::time_point, std::uint64_t) { return false; }
void Ring::wake() {}
std::vector<Ring::Done> Ring::wait() { return {}; }

}  // namespace cutwater

#endif
