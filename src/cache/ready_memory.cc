// SPDX-License-Identifier: Apache-2.0
#include "cache/ready_memory.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <system_error>
#include <utility>

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{4} << 20;  // between two looks whether to end
constexpr int kModest = 10;                              // nice(1)

void make_ready(const Segment& segment, std::uint64_t most_bytes, const std::stop_token& stop) {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kModest);
  const std::uint64_t begin = segment.shape().arena_at();
  const std::uint64_t end = begin + std::min(most_bytes, segment.shape().end() - begin);
  for (std::uint64_t at = begin; at < end && !stop.stop_requested(); at += kStep)
    if (!segment.make_ready(at, std::min(at + kStep, end))) return;
}

}  // namespace

ReadyMemory::ReadyMemory(std::shared_ptr<const Segment> segment, std::uint64_t most_bytes) {
  try {
    thread_ = std::jthread([segment = std::move(segment), most_bytes](const std::stop_token& stop) {
      make_ready(*segment, most_bytes, stop);
    });
  } catch (const std::system_error&) {  // no thread for it: pages come as they are needed
  }
}

}  // namespace cutwater::cache
