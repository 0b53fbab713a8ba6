// SPDX-License-Identifier: Apache-2.0
// LeavingSeat: a job's seat that can be left while threads still use it. Whoever is left behind
// sits alone.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "cutwater/cache.h"

namespace cutwater {

class LeavingSeat final : public CacheSeat {
 public:
  // REQUIRES: seat.
  explicit LeavingSeat(std::unique_ptr<CacheSeat> seat) : seat_(std::move(seat)) {}

  void leave() {
    const std::unique_lock lock(mutex_);
    seat_.reset();
  }

  std::uint64_t begin_epoch(std::uint64_t draw) override {
    const std::shared_lock lock(mutex_);
    return seat_ ? seat_->begin_epoch(draw) : 0;
  }
  void had(std::uint64_t draw, SampleId sample) override {
    const std::shared_lock lock(mutex_);
    if (seat_) seat_->had(draw, sample);
  }
  void leave_epoch() override {
    const std::shared_lock lock(mutex_);
    if (seat_) seat_->leave_epoch();
  }
  void arrivals(std::vector<SampleId>& samples) override {
    const std::shared_lock lock(mutex_);
    if (seat_) seat_->arrivals(samples);
  }
  int others() const override {
    const std::shared_lock lock(mutex_);
    return seat_ ? seat_->others() : 0;
  }
  int others_alike() const override {
    const std::shared_lock lock(mutex_);
    return seat_ ? seat_->others_alike() : 0;
  }
  bool start_making(SampleId sample) override {
    const std::shared_lock lock(mutex_);
    return !seat_ || seat_->start_making(sample);
  }
  void made(SampleId sample) override {
    const std::shared_lock lock(mutex_);
    if (seat_) seat_->made(sample);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unique_ptr<CacheSeat> seat_;
};

}  // namespace cutwater
