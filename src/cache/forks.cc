// SPDX-License-Identifier: Apache-2.0
#include "cache/forks.h"

#include <pthread.h>

namespace cutwater::cache {

void watch_forks() {
  static const int watching =
      pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
  (void)watching;
}

}  // namespace cutwater::cache
