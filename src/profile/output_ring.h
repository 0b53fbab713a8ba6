// SPDX-License-Identifier: Apache-2.0
// OutputRing: memory as a thread's part of open batches, used round and round, so that what is
// written goes to memory as it does in a loader and not to a cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "cutwater/pipeline.h"

namespace cutwater {

// One thread at a time.
class OutputRing final : public SlotProvider {
 public:
  explicit OutputRing(std::size_t bytes) { resize(bytes); }

  TensorSpan slot(std::string_view, const TensorSpec& spec) override {
    const std::size_t bytes =
        (spec.bytes() + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    if (bytes > memory_.size()) resize(bytes);
    if (at_ + bytes > memory_.size()) at_ = 0;
    std::uint8_t* const place = memory_.data() + at_;
    at_ += bytes;
    return {spec, place};
  }

  std::span<std::uint8_t> memory() { return memory_.span(); }

  // Reads all of it: what the processor's caches held before is no longer there.
  void evict_caches() const {
    std::uint8_t sum = 0;
    for (std::size_t i = 0; i < memory_.size(); i += kBufferAlignment)
      sum = static_cast<std::uint8_t>(sum + memory_.data()[i]);
    volatile std::uint8_t read = sum;
    (void)read;
  }

 private:
  // Pages are there before anything is timed.
  void resize(std::size_t bytes) {
    memory_ = Buffer(bytes);
    if (bytes > 0) std::memset(memory_.data(), 1, bytes);
    at_ = 0;
  }

  Buffer memory_;
  std::size_t at_ = 0;
};

}  // namespace cutwater
