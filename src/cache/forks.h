// SPDX-License-Identifier: Apache-2.0
// Whether this process is a fork of another, told without a system call. A fork has a copy of
// everything but the threads, and must leave alone what is the other's: connections, pins, locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace cutwater::cache {

// Another number in every fork, and the same all through a process, once watch_forks() was called.
inline std::atomic<std::uint64_t> fork_count{0};
inline std::uint64_t forks() { return fork_count.load(std::memory_order_relaxed); }

void watch_forks();

}  // namespace cutwater::cache
