// SPDX-License-Identifier: Apache-2.0
// The order of an epoch: a permutation that depends on (seed, epoch) alone.
#pragma once

#include <cstdint>
#include <vector>

#include "cutwater/sample.h"

namespace cutwater {

class EpochOrder {
 public:
  // In listing order: 0, 1, 2…
  explicit EpochOrder(std::int64_t size) : size_(size) {}
  // Every permutation equally likely (Fisher-Yates over a Philox stream). 4 bytes a sample.
  // REQUIRES: size < 2^32.
  static EpochOrder shuffled(std::int64_t size, std::uint64_t seed, std::uint32_t epoch);

  std::int64_t size() const { return size_; }
  SampleId operator[](std::int64_t position) const {
    return shuffled_.empty() ? position : shuffled_[static_cast<std::size_t>(position)];
  }
  // The position of each sample, by id; empty for the listing order, where they are the same.
  std::vector<std::uint32_t> positions() const;

 private:
  std::int64_t size_;
  std::vector<std::uint32_t> shuffled_;
};

}  // namespace cutwater
