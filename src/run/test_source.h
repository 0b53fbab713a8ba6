// SPDX-License-Identifier: Apache-2.0
// For tests: samples from memory, and a wrapper that fails, counts and holds up reads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/caught.h"
#include "cutwater/source.h"

namespace cutwater::test {

// Sample `id` is an image of `bytes` bytes, all (id mod 251), and the label 10 * id.
class MemorySource : public Source {
 public:
  explicit MemorySource(std::int64_t size, std::int64_t bytes = 4) : size_(size), bytes_(bytes) {}

  std::int64_t size() const override { return size_; }
  std::string path(SampleId id) const override { return "memory/" + std::to_string(id); }
  bool has_labels() const override { return true; }
  std::int64_t label(SampleId id) const override { return 10 * id; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::string identity() const override { return "memory " + std::to_string(size_); }

  Result<Sample> read(SampleId id, const ReadContext& into) const override try {
    Buffer bytes = into.allocate(static_cast<std::size_t>(bytes_));
    for (std::uint8_t& byte : bytes.span()) byte = byte_of(id);
    Sample sample;
    sample.id = id;
    sample.fields.push_back({"image", Tensor({DType::kU8, {bytes_}}, std::move(bytes))});
    sample.fields.push_back({"label", Tensor::scalar(label(id))});
    return sample;
  } catch (...) {
    return caught(id, "read");
  }

  static std::uint8_t byte_of(SampleId id) { return static_cast<std::uint8_t>(id % 251); }

 private:
  std::int64_t size_, bytes_;
  std::vector<std::string> classes_;
};

// A source whose reads a test controls. Counts them from their start.
class FaultySource : public Source {
 public:
  // `storage_failed`: of bad samples, they may be sound.
  explicit FaultySource(std::shared_ptr<const Source> inner, std::set<SampleId> bad = {},
                        bool storage_failed = false)
      : inner_(std::move(inner)), bad_(std::move(bad)), storage_failed_(storage_failed) {}

  std::int64_t size() const override { return inner_->size(); }
  std::string path(SampleId id) const override { return inner_->path(id); }
  bool has_labels() const override { return inner_->has_labels(); }
  std::int64_t label(SampleId id) const override { return inner_->label(id); }
  const std::vector<std::string>& classes() const override { return inner_->classes(); }
  std::string identity() const override { return inner_->identity(); }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    {
      std::unique_lock lock(mutex_);
      reads_.push_back(id);
      changed_.notify_all();
      changed_.wait(lock, [&] { return !held_.contains(id); });
    }
    if (bad_.contains(id))
      return Failure{Code::kBadSample, "is broken", id, path(id), "read", storage_failed_};
    return inner_->read(id, into);
  }

  std::vector<SampleId> reads() const {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  // Returns once so many reads have begun.
  void wait_for_reads(std::size_t count) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reads_.size() >= count; });
  }

  // Reads of these samples wait while it lives. Declare it after the loader: that joins its
  // threads.
  class Hold {
   public:
    Hold(const FaultySource& source, std::set<SampleId> ids) : source_(source) {
      const std::lock_guard lock(source_.mutex_);
      source_.held_ = std::move(ids);
    }
    ~Hold() { release(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void release() {
      const std::lock_guard lock(source_.mutex_);
      source_.held_.clear();
      source_.changed_.notify_all();
    }

   private:
    const FaultySource& source_;
  };

 private:
  const std::shared_ptr<const Source> inner_;
  const std::set<SampleId> bad_;
  const bool storage_failed_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::vector<SampleId> reads_;
  mutable std::set<SampleId> held_;
};

}  // namespace cutwater::test
