// SPDX-License-Identifier: Apache-2.0
// Absence: that servers do not answer, or refuse, as whoever noticed it last tells all who read the
// same source. Where there is a fallback, they then go there without asking. Any thread.
#pragma once

#include <atomic>
#include <chrono>

namespace cutwater::remote {

// Seconds that servers may take where there is a fallback.
inline constexpr double kFallbackAfter = 1;

class Absence {
 public:
  void begin() { until_ = (Clock::now() + kAloneFor).time_since_epoch().count(); }
  bool lasts() const { return Clock::now().time_since_epoch().count() < until_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kAloneFor{5};

  std::atomic<Clock::rep> until_ = 0;
};

}  // namespace cutwater::remote
