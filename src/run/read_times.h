// SPDX-License-Identifier: Apache-2.0
// ReadTimes: what a read of so many bytes usually takes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cutwater {

// How long one read takes is the storage's and the scheduler's mood, not the sample's: what counts
// is a line through those of late, of which one that was held up must not count a hundredfold.
class ReadTimes {
 public:
  void learn(double bytes, double seconds) {
    constexpr double kMost = 4;  // times the mean
    constexpr std::int64_t kMemory = 256;
    if (count_ > 0) seconds = std::min(seconds, kMost * seconds_);
    count_ = std::min(count_ + 1, kMemory);
    const double part = 1 / static_cast<double>(count_);
    const double more_bytes = bytes - bytes_, more_seconds = seconds - seconds_;
    bytes_ += part * more_bytes;
    seconds_ += part * more_seconds;
    spread_ = (1 - part) * (spread_ + part * more_bytes * more_bytes);
    together_ = (1 - part) * (together_ + part * more_bytes * more_seconds);
  }

  // Never falls with the bytes, nor below zero. Some of it is for opening the file and getting to
  // its bytes, also where a line through a few that were held up would deny it.
  double usual(double bytes) const {
    constexpr double kMostByBytes = 0.75;  // of the mean
    const double steepest = bytes_ > 0 ? kMostByBytes * seconds_ / bytes_ : 0;
    const double slope = spread_ > 0 ? std::clamp(together_ / spread_, 0.0, steepest) : 0;
    return std::max(seconds_ + slope * (bytes - bytes_), 0.0);
  }

 private:
  std::int64_t count_ = 0;
  double bytes_ = 0, seconds_ = 0;    // means
  double spread_ = 0, together_ = 0;  // variance of the bytes; covariance
};

}  // namespace cutwater
