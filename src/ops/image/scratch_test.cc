// SPDX-License-Identifier: Apache-2.0
#include "ops/image/scratch.h"

#include <gtest/gtest.h>

#include <cstring>

namespace cutwater::image {
namespace {

TEST(Scratch, IsAlignedAndNobodyElses) {
  const Scratch one(100), other(5000), huge(3 << 20);
  for (const Scratch* scratch : {&one, &other, &huge})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch->data()) % kCacheLine, 0U);
  std::memset(one.data(), 1, 100);
  std::memset(other.data(), 2, 5000);
  std::memset(huge.data(), 3, 3 << 20);
  EXPECT_EQ(one.data()[99], 1);
  EXPECT_EQ(other.data()[0], 2);
  EXPECT_EQ(other.data()[4999], 2);
}

TEST(Scratch, IsKeptForTheNextWork) {
  const std::uint8_t* before = nullptr;
  {
    const Scratch work(70'000);
    before = work.data();
  }
  const Scratch work(60'000);
  EXPECT_EQ(work.data(), before);
}

TEST(RowDistance, IsAnOddNumberOfCacheLines) {
  for (std::int64_t bytes = 1; bytes < 10'000; bytes += 37) {
    EXPECT_GE(row_distance(bytes), bytes);
    EXPECT_EQ(row_distance(bytes) % (2 * kCacheLine), kCacheLine);
  }
}

}  // namespace
}  // namespace cutwater::image
