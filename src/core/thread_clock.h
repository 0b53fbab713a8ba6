// SPDX-License-Identifier: Apache-2.0
// The clock of a profile: CPU time of the calling thread, not time on the wall. A loader's threads
// have their cores to themselves when it matters; what other processes of a shared machine take
// from this one while it measures would only blur the figures. What threads cost one another stays
// in them: a thread that waits for memory, or shares a core's units, runs on by this clock. So does
// the kernel's work for the thread, copies from the page cache included. Waiting for storage does
// not: cold reads are timed on the wall (storage_probe.cc).
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace cutwater {

inline double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of all threads of this process, also those that are gone.
inline double process_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Reading it is a system call: some tenths of a microsecond, which short work would be charged for.
inline double thread_clock_cost() {
  static const double cost = [] {
    double least = 1;
    for (int i = 0; i < 200; ++i) {
      const double start = thread_seconds();
      least = std::min(least, thread_seconds() - start);
    }
    return least;
  }();
  return cost;
}

// How often the calling thread had to make way for another while it had work to do, and how often
// it waited for something.
struct ThreadSwitches {
  long made_way = 0, waited = 0;
};
inline ThreadSwitches thread_switches() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_nivcsw, usage.ru_nvcsw};
}

// Seconds that the calling thread works in `work`.
template <class Work>
double timed(Work&& work) {
  const double cost = thread_clock_cost();
  const double start = thread_seconds();
  std::forward<Work>(work)();
  return std::max(thread_seconds() - start - cost, 0.0);
}

}  // namespace cutwater
