// SPDX-License-Identifier: Apache-2.0
// For tests: a cache without bytes. It knows which samples are resident, has seats for jobs, and
// may lie about everything that is advice.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cutwater/cache.h"
#include "run/form_keeper.h"

namespace cutwater::test {

// What is resident, shared by all jobs. Samples are as the source has them.
class Resident final : public FormKeeper {
 public:
  Resident(std::shared_ptr<const Source> source, std::size_t room)
      : source_(std::move(source)), room_(room) {}

  std::optional<Kept> find(Turn turn, const ReadContext& into, KeeperWork&) override {
    const SampleId id = turn.id;
    {
      const std::lock_guard lock(mutex_);
      if (!there_.contains(id)) return std::nullopt;
      ++hits_;
      met_.insert(id);
    }
    Result<Sample> sample = source_->read(id, into);
    if (!sample) return std::nullopt;
    return Kept{std::move(sample).value(), From::kCache};
  }
  std::optional<Cut> wants(Turn, Cut from, From) override {
    return from == 0 ? std::optional<Cut>(0) : std::nullopt;
  }
  void keep(const Sample& sample, std::uint32_t, double, KeeperWork&) override { put(sample.id); }

  void put(SampleId id) {
    const std::lock_guard lock(mutex_);
    met_.insert(id);
    if (room_ == 0 || !there_.insert(id).second) return;
    log_.push_back(id);
    if (there_.size() <= room_) return;
    auto victim = there_.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(random_() % there_.size()));
    there_.erase(victim);
  }

  // What came from `since` on; all that is there, if `since` is negative.
  std::vector<SampleId> arrivals(std::ptrdiff_t& since) const {
    const std::lock_guard lock(mutex_);
    std::vector<SampleId> ids;
    if (since < 0)
      ids.assign(there_.begin(), there_.end());
    else
      ids.assign(log_.begin() + since, log_.end());
    since = std::ssize(log_);
    return ids;
  }
  std::size_t hits() const {
    const std::lock_guard lock(mutex_);
    return hits_;
  }
  // Whether this sample was ever found, or offered.
  bool met(SampleId id) const {
    const std::lock_guard lock(mutex_);
    return met_.contains(id);
  }

 private:
  const std::shared_ptr<const Source> source_;
  const std::size_t room_;
  mutable std::mutex mutex_;
  std::set<SampleId> there_, met_;
  std::vector<SampleId> log_;
  std::size_t hits_ = 0;
  std::mt19937 random_{7};
};

// A seat that keeps books of all that it is told.
class BookSeat : public CacheSeat {
 public:
  BookSeat(const Resident& resident, int others) : resident_(resident), others_(others) {}

  std::uint64_t begin_epoch(std::uint64_t draw) override {
    const std::lock_guard lock(mutex_);
    draws_.push_back(draw);
    had_[draw].clear();
    seen_ = -1;
    return 5;
  }
  void had(std::uint64_t draw, SampleId sample) override {
    const std::lock_guard lock(mutex_);
    ++had_[draw][sample];
  }
  void leave_epoch() override {
    const std::lock_guard lock(mutex_);
    ++left_;
  }
  void arrivals(std::vector<SampleId>& samples) override {
    const std::lock_guard lock(mutex_);
    const std::vector<SampleId> more = resident_.arrivals(seen_);
    samples.insert(samples.end(), more.begin(), more.end());
  }
  int others() const override { return others_; }
  int others_alike() const override { return others_; }
  bool start_making(SampleId sample) override {
    const std::lock_guard lock(mutex_);
    ++asked_[sample];
    return making_.insert(sample).second;
  }
  void made(SampleId sample) override {
    const std::lock_guard lock(mutex_);
    if (making_.erase(sample) == 0) ++made_in_vain_;
  }

  int left() const {
    const std::lock_guard lock(mutex_);
    return left_;
  }
  std::vector<std::uint64_t> draws() const {
    const std::lock_guard lock(mutex_);
    return draws_;
  }
  // How often it was told, since that epoch was begun, that each sample was had.
  std::map<SampleId, int> told(std::uint64_t draw) const {
    const std::lock_guard lock(mutex_);
    const auto found = had_.find(draw);
    return found == had_.end() ? std::map<SampleId, int>() : found->second;
  }
  int asked(SampleId id) const {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(id);
    return found == asked_.end() ? 0 : found->second;
  }
  // Every word that a sample is being made was taken back, once.
  bool is_quiet() const {
    const std::lock_guard lock(mutex_);
    return making_.empty() && made_in_vain_ == 0;
  }

 protected:
  mutable std::mutex mutex_;

 private:
  const Resident& resident_;
  const int others_;
  std::ptrdiff_t seen_ = -1;
  std::vector<std::uint64_t> draws_;
  std::map<std::uint64_t, std::map<SampleId, int>> had_;  // by draw
  std::map<SampleId, int> asked_;
  std::set<SampleId> making_;
  int made_in_vain_ = 0, left_ = 0;
};

// Names samples twice, that never were, or that are gone; jobs come and go at every question.
class LyingSeat final : public BookSeat {
 public:
  LyingSeat(const Resident& resident, std::int64_t size, unsigned seed)
      : BookSeat(resident, 0), size_(size), random_(seed) {}

  void arrivals(std::vector<SampleId>& samples) override {
    BookSeat::arrivals(samples);
    const std::lock_guard lock(mutex_);
    for (std::int64_t more = below(20); more > 0; --more) {
      samples.push_back(below(size_ + 9) - 4);
      if (below(4) == 0) samples.push_back(samples.back());
      if (below(16) == 0) samples.push_back(below(2) == 0 ? INT64_MAX : INT64_MIN);
    }
  }
  int others() const override {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(below(6)) - 1;
  }
  bool start_making(SampleId sample) override {
    {
      const std::lock_guard lock(mutex_);
      if (below(3) == 0) return false;
    }
    return BookSeat::start_making(sample);
  }

 private:
  std::int64_t below(std::int64_t n) const {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  const std::int64_t size_;
  mutable std::mt19937 random_;
};

}  // namespace cutwater::test
