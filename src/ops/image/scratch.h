// SPDX-License-Identifier: Apache-2.0
// Working memory that a thread keeps from sample to sample: fresh pages cost more than the work
// that is done in them.
#pragma once

#include <cstdint>

namespace cutwater::image {

// Bytes of unspecified value, aligned to a cache line, for as long as this lives. Idle memory stays
// with the thread; what a huge image took goes back to the system.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_;
  std::int64_t bytes_;
};

inline constexpr std::int64_t kCacheLine = 64;

constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// How far apart rows of so many bytes are kept: an odd number of cache lines, so that neighbours
// do not compete for the same places of a cache.
constexpr std::int64_t row_distance(std::int64_t bytes) {
  return (rounded_up(bytes, kCacheLine) / kCacheLine | 1) * kCacheLine;
}

}  // namespace cutwater::image
