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
  // At most this much of it, from the beginning, in a thread of low priority; the rest, and what
  // the system refuses, gets its pages when it is needed. Ends with this object.
  ReadyMemory(std::shared_ptr<const Segment> segment, std::uint64_t most_bytes);

  // Until nothing more is made ready.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::jthread thread_;
};

}  // namespace cutwater::cache
