// SPDX-License-Identifier: Apache-2.0
#include "core/xxh3.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cutwater {
namespace {

TEST(Xxh3, IsTheSameWhereverTheBytesStandAndHoweverItIsComputed) {
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 3, 16, 17, 128, 129, 240, 241, 1024, 4096, 100'003}) {
    std::vector<std::uint8_t> bytes(size + 1);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const std::span<const std::uint8_t> all(bytes.data() + 1, size);
    const std::uint64_t hash = xxh3(all);
    EXPECT_EQ(detail::xxh3_plain({all.data(), size, nullptr, 0}), hash) << size;
    for (int round = 0; round < 20; ++round) {
      const std::size_t at = random() % (size + 1);
      EXPECT_EQ(xxh3(all.first(at), all.subspan(at)), hash) << size << " at " << at;
      EXPECT_EQ(detail::xxh3_plain({all.data(), at, all.data() + at, size - at}), hash);
    }
  }
  // The specification's own: of nothing.
  EXPECT_EQ(xxh3({}), 0x2D06800538D394C2U);
}

}  // namespace
}  // namespace cutwater
