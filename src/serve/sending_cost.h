// SPDX-License-Identifier: Apache-2.0
// SendingCost: what a byte takes of the server's CPU until the wire has it: encryption, the
// transport, the system. No thread of ours does all of that, so it is what the process took for
// anything but reading and ops.
#pragma once

#include <algorithm>
#include <utility>

namespace cutwater::serve {

class SendingCost {
 public:
  struct SoFar {
    double process_s = 0;  // CPU of all threads
    double worked_s = 0;   // of that, for reading and ops
    double bytes = 0;      // that were sent
  };
  explicit SendingCost(const SoFar& now) : before_(now) {}

  // To be called some times a second. What is under way counts once it is done: the CPU that it
  // has taken by then may be that of several looks.
  void look(const SoFar& now, bool under_way) {
    const bool some = now.bytes > before_.bytes;
    if (under_way && !some) return;
    const SoFar before = std::exchange(before_, now);
    if (!some) return;  // what an idle server does is for nobody's bytes
    constexpr double kFade = 0.98;
    seconds_ =
        kFade * seconds_ + (now.process_s - before.process_s) - (now.worked_s - before.worked_s);
    bytes_ = kFade * bytes_ + now.bytes - before.bytes;
  }

  // 0: not known yet.
  double seconds_per_byte() const {
    constexpr double kEnough = 1 << 20, kMost = 1e-8;
    return bytes_ < kEnough ? 0 : std::clamp(seconds_ / bytes_, 0.0, kMost);
  }

 private:
  SoFar before_;
  double seconds_ = 0, bytes_ = 0;  // fading
};

}  // namespace cutwater::serve
