// SPDX-License-Identifier: Apache-2.0
// What this process may use of the machine: cores by affinity and by CFS quota, memory by cgroup.
#pragma once

#include <cstddef>
#include <optional>

namespace cutwater {

int affinity_cores();               // cores in this process's cpuset
std::optional<double> cpu_quota();  // cores that the cgroup grants, if it limits them
int usable_cores();                 // at least 1
std::size_t usable_memory_bytes();  // the smaller of physical memory and the cgroup's limit
std::size_t free_memory_bytes();    // of it, what nobody uses; page cache counts as free
std::size_t unused_memory_bytes();  // of it, what holds nothing, not even page cache

inline constexpr int kMostThreads = 1024;
// What the environment says (CUTWATER_THREADS), else the usable cores. Throws
// Error(kInvalidArgument).
int default_threads();

}  // namespace cutwater
