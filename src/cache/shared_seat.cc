// SPDX-License-Identifier: Apache-2.0
#include "cache/shared_seat.h"

#include <algorithm>
#include <new>
#include <utility>

#include "cache/forks.h"

namespace cutwater::cache {

LastingSeat::LastingSeat(JobOffer offer)
    : offer_(std::move(offer)),
      had_(static_cast<std::size_t>(std::max<std::int64_t>(offer_.samples, 0))) {}

bool LastingSeat::sits_at(const void* where) const {
  const MutexLock lock(mutex_);
  return seat_ && where_ == where;
}

void LastingSeat::sit(std::unique_ptr<CacheSeat> seat, const void* where) {
  const MutexLock lock(mutex_);
  if (seat && begun_) {
    seat->begin_epoch(draw_);
    for (std::size_t sample = 0; sample < had_.size(); ++sample)
      if (had_[sample]) seat->had(draw_, static_cast<SampleId>(sample));
  }
  where_ = where;
  seat_.swap(seat);  // the one before leaves
}

std::uint64_t LastingSeat::begin_epoch(std::uint64_t draw) {
  const MutexLock lock(mutex_);
  begun_ = true;
  draw_ = draw;
  std::fill(had_.begin(), had_.end(), false);
  return seat_ ? seat_->begin_epoch(draw) : 0;
}

void LastingSeat::had(std::uint64_t draw, SampleId sample) {
  const MutexLock lock(mutex_);
  if (!begun_ || draw != draw_ || sample < 0 || static_cast<std::size_t>(sample) >= had_.size())
    return;
  had_[static_cast<std::size_t>(sample)] = true;
  if (seat_) seat_->had(draw, sample);
}

void LastingSeat::leave_epoch() {
  const MutexLock lock(mutex_);
  begun_ = false;
  if (seat_) seat_->leave_epoch();
}

void LastingSeat::arrivals(std::vector<SampleId>& samples) {
  const MutexLock lock(mutex_);
  if (seat_) seat_->arrivals(samples);
}

int LastingSeat::others() const {
  const MutexLock lock(mutex_);
  return seat_ ? seat_->others() : 0;
}

int LastingSeat::others_alike() const {
  const MutexLock lock(mutex_);
  return seat_ ? seat_->others_alike() : 0;
}

bool LastingSeat::start_making(SampleId sample) {
  const MutexLock lock(mutex_);
  return seat_ ? seat_->start_making(sample) : true;
}

void LastingSeat::made(SampleId sample) {
  const MutexLock lock(mutex_);
  if (seat_) seat_->made(sample);
}

namespace {

class Face final : public CacheSeat {
 public:
  explicit Face(std::shared_ptr<LastingSeat> seat) : seat_(std::move(seat)), forks_(forks()) {}
  ~Face() override {
    // A fork's copy of the mutex may be locked for ever, and the seat must not be left by it: its
    // hold on the seat stays.
    if (!mine()) (void)new (std::nothrow) std::shared_ptr<LastingSeat>(std::move(seat_));
  }
  Face(const Face&) = delete;
  Face& operator=(const Face&) = delete;

  std::uint64_t begin_epoch(std::uint64_t draw) override {
    return mine() ? seat_->begin_epoch(draw) : 0;
  }
  void had(std::uint64_t draw, SampleId sample) override {
    if (mine()) seat_->had(draw, sample);
  }
  void leave_epoch() override {
    if (mine()) seat_->leave_epoch();
  }
  void arrivals(std::vector<SampleId>& samples) override {
    if (mine()) seat_->arrivals(samples);
  }
  int others() const override { return mine() ? seat_->others() : 0; }
  int others_alike() const override { return mine() ? seat_->others_alike() : 0; }
  bool start_making(SampleId sample) override { return !mine() || seat_->start_making(sample); }
  void made(SampleId sample) override {
    if (mine()) seat_->made(sample);
  }

 private:
  bool mine() const { return forks_ == forks(); }

  std::shared_ptr<LastingSeat> seat_;
  const std::uint64_t forks_;
};

}  // namespace

std::unique_ptr<CacheSeat> face_of(std::shared_ptr<LastingSeat> seat) {
  return std::make_unique<Face>(std::move(seat));
}

}  // namespace cutwater::cache
