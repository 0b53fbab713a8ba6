// SPDX-License-Identifier: Apache-2.0
// For tests: the same work on every SIMD level that this processor has.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace cutwater::image {

// Calls body() once per level, the portable one included. Kernels that were not made for a level
// run on the next one below, as they would on such a processor.
template <class F>
void for_each_simd_level(F&& body) {
  const std::int64_t all = hwy::SupportedTargets();
  for (std::int64_t left = all; left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left);
    SCOPED_TRACE(hwy::TargetName(left & -left));
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace cutwater::image
