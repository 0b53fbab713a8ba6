// SPDX-License-Identifier: Apache-2.0
// ReadyMemory: gives a segment's arena its pages before anybody needs them. A page that is touched
// for the first time is cleared first, which takes as long as many a sample does, and would be the
// time of whoever puts one there.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "cache/segment.h"

namespace cutwater::cache {

class ReadyMemory {
 public:
  // From the beginning on, in a thread of low priority, as long as so much memory of the machine
  // holds nothing, not even a file. The rest gets its pages when it is needed, and so does what the
  // system refuses. Ends with this object.
  ReadyMemory(std::shared_ptr<const Segment> segment, std::uint64_t reserve_bytes);

  // Until nothing more is made ready.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::jthread thread_;
};

}  // namespace cutwater::cache
