// SPDX-License-Identifier: Apache-2.0
#include "cache/ready_memory.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <system_error>
#include <utility>

#include "core/machine.h"

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{8} << 20;  // between two looks whether to go on
constexpr int kModest = 10;                              // nice(1)

void make_ready(const Segment& segment, std::uint64_t reserve_bytes, const std::stop_token& stop) {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kModest);
  const std::uint64_t begin = segment.shape().arena_at();
  const std::uint64_t end = segment.shape().end();
  for (std::uint64_t at = begin; at < end && !stop.stop_requested(); at += kStep)
    if (unused_memory_bytes() < reserve_bytes || !segment.make_ready(at, std::min(at + kStep, end)))
      return;
}

}  // namespace

ReadyMemory::ReadyMemory(std::shared_ptr<const Segment> segment, std::uint64_t reserve_bytes) {
  try {
    thread_ =
        std::jthread([segment = std::move(segment), reserve_bytes](const std::stop_token& stop) {
          make_ready(*segment, reserve_bytes, stop);
        });
  } catch (const std::system_error&) {  // no thread for it: pages come as they are needed
  }
}

}  // namespace cutwater::cache
