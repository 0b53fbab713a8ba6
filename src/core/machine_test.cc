// SPDX-License-Identifier: Apache-2.0
#include "core/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace cutwater {
namespace {

TEST(Machine, CoresAreAtLeastOneAndAtMostThoseOfTheAffinity) {
  EXPECT_GE(affinity_cores(), 1);
  EXPECT_LE(affinity_cores(), static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)));
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), affinity_cores());
}

TEST(Machine, AQuotaIsPositiveAndLimitsTheCores) {
  const std::optional<double> quota = cpu_quota();
  if (!quota) {
    EXPECT_EQ(usable_cores(), affinity_cores());
    return;
  }
  EXPECT_GT(*quota, 0);
  EXPECT_LT(usable_cores(), *quota + 1);
}

// In a thread of its own: affinity is a thread's, so the others keep theirs.
TEST(Machine, RespectsTheAffinity) {
  std::thread([] {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &mine)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
      EXPECT_EQ(affinity_cores(), 1);
      EXPECT_EQ(usable_cores(), 1);
    }
  }).join();
}

TEST(Machine, MemoryIsAtMostThePhysicalMemory) {
  const auto physical = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_GT(usable_memory_bytes(), std::size_t{16} << 20);
  EXPECT_LE(usable_memory_bytes(), physical);
}

}  // namespace
}  // namespace cutwater
