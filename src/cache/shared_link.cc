// SPDX-License-Identifier: Apache-2.0
#include "cache/shared_link.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "cache/seats.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

// Between two attempts to find the daemon, and to get a seat where all are taken.
constexpr int kFirstPauseMs = 100, kLongestPauseMs = 2000;

std::shared_ptr<const Descriptor> new_wake() {
  auto wake = std::make_shared<Descriptor>(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!*wake) throw Error(Code::kIo, "no descriptor is left for a shared cache; see ulimit -n");
  return wake;
}

void ring(const Descriptor& wake) { (void)eventfd_write(wake.get(), 1); }

void quiet(const Descriptor& wake) {
  eventfd_t count = 0;
  (void)eventfd_read(wake.get(), &count);
}

}  // namespace

Link::Link(const std::string& path) : path_(path), wake_(new_wake()) {
  (void)attach();
  thread_ = std::thread([this] { look_after(); });
}

Link::~Link() {
  stopping_ = true;
  ring(*wake_);
  thread_.join();
}

CacheValue Link::get(const CacheKey& key) {
  if (reading_.load(std::memory_order_acquire)) {
    const std::shared_lock lock(mutex_);
    if (attached_.reader) return attached_.reader->get(key);
  }
  misses_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

bool Link::has(const CacheKey& key) const {
  const Attached at = attached();
  return at.attachment && at.attachment->state() == Attachment::State::kFine && at.reader->has(key);
}

bool Link::has_room(const CacheKey& key, std::size_t bytes, double seconds) const {
  const Attached at = attached();
  return at.attachment && at.attachment->state() == Attachment::State::kFine &&
         at.reader->has_room(key, bytes, seconds);
}

bool Link::put(const CacheKey& key, std::size_t size, double seconds, const Cache::Fill& fill) {
  const Attached at = attached();
  if (!at.attachment || at.attachment->state() != Attachment::State::kFine) return refuse();
  const auto place = at.attachment->reserve(key, size, seconds);
  if (!place)  // the daemon has counted that, if it is there
    return at.attachment->state() != Attachment::State::kFine && refuse();
  try {
    fill(place->bytes);
  } catch (...) {
    at.attachment->abort(place->token);
    throw;
  }
  return at.attachment->commit(place->token) || refuse();
}

void Link::drop(const CacheKey& key) {
  damaged_.fetch_add(1, std::memory_order_relaxed);
  if (const Attached at = attached(); at.attachment) at.attachment->drop(key);
}

std::shared_ptr<LastingSeat> Link::seat(const JobOffer& offer) {
  auto seat = std::make_shared<LastingSeat>(offer);
  (void)seat_one(attached(), *seat);
  {
    const MutexLock lock(books_);
    std::erase_if(seats_, [](const auto& known) { return known.expired(); });
    seats_.push_back(seat);
  }
  ring(*wake_);  // where it stands, the thread sees to it
  return seat;
}

std::string Link::trouble() const {
  if (const Attached at = attached(); at.attachment) {
    const std::string why = at.attachment->trouble();
    return why.empty() ? why : why + "; nothing more is kept until it does";
  }
  const MutexLock lock(books_);
  return trouble_ + "; " + how_to_serve(path_) + "; meanwhile samples are made from their source";
}

CacheStats Link::stats() const {
  CacheStats stats;
  if (const Attached at = attached(); at.reader) stats = at.reader->segment()->stats();
  stats.misses += misses_;
  stats.refused += refused_;
  stats.damaged = damaged_;
  return stats;
}

Link::Attached Link::attached() const {
  if (!reading_.load(std::memory_order_acquire)) return {};
  const std::shared_lock lock(mutex_);
  return attached_;
}

bool Link::attach() {
  Attached fresh;
  try {
    fresh.attachment = Attachment::make(path_, [wake = wake_] { ring(*wake); });
  } catch (const Error& error) {
    if (error.code() == Code::kInvalidArgument) throw;
    const MutexLock lock(books_);
    trouble_ = error.failure().reason;
    return false;
  }
  fresh.reader = fresh.attachment->reader();
  const std::unique_lock lock(mutex_);
  attached_ = std::move(fresh);
  reading_.store(true, std::memory_order_release);
  return true;
}

void Link::detach() {
  reading_.store(false, std::memory_order_release);
  Attached lost;
  {
    const std::unique_lock lock(mutex_);
    lost = std::exchange(attached_, {});
  }
  const MutexLock lock(books_);
  trouble_ = lost.attachment->trouble();
  for (const auto& known : seats_)
    if (const auto seat = known.lock()) seat->stand();
}

bool Link::seat_one(const Attached& at, LastingSeat& seat) {
  if (!at.attachment) return false;
  const std::optional<int> number = at.attachment->join(seat.offer());
  if (!number) return false;
  seat.sit(make_seat(at.reader, *number, nullptr,
                     [attachment = at.attachment, number] { attachment->leave(*number); }),
           at.attachment.get());
  return true;
}

bool Link::seat_all() {
  std::vector<std::weak_ptr<LastingSeat>> seats;
  {
    const MutexLock lock(books_);
    seats = seats_;
  }
  const Attached at = attached();
  bool all = true;
  for (const auto& known : seats) {
    const auto seat = known.lock();
    if (seat && !seat->sits_at(at.attachment.get())) all = seat_one(at, *seat) && all;
  }
  return all;
}

void Link::look_after() {
  int pause_ms = kFirstPauseMs;
  bool all_sit = true;
  while (!stopping_) {
    if (const Attached at = attached(); at.attachment) {
      at.attachment->look_after(*wake_, all_sit ? -1 : kLongestPauseMs);
      quiet(*wake_);
      if (at.attachment->state() == Attachment::State::kGone) {
        detach();
        pause_ms = kFirstPauseMs;
      } else if (!stopping_) {
        all_sit = seat_all();
      }
    } else if (attach()) {
      all_sit = seat_all();
    } else {
      pollfd entry{wake_->get(), POLLIN, 0};
      if (poll(&entry, 1, pause_ms) == 0) pause_ms = std::min(2 * pause_ms, kLongestPauseMs);
      quiet(*wake_);
    }
  }
}

bool Link::refuse() {
  refused_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace cutwater::cache
