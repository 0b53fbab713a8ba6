// SPDX-License-Identifier: Apache-2.0
#include "core/bit_set.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cutwater {
namespace {

TEST(BitSet, IsAsAVectorOfBools) {
  for (const std::int64_t size : {0, 1, 63, 64, 65, 200}) {
    std::mt19937 random(static_cast<unsigned>(size));
    BitSet bits(size);
    std::vector<bool> plain(static_cast<std::size_t>(size));
    for (std::int64_t round = 0; round <= size; ++round) {
      const auto next = [&](std::int64_t from, bool wanted) {
        while (from < size && plain[static_cast<std::size_t>(from)] != wanted) ++from;
        return from;
      };
      for (std::int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(bits[i], plain[static_cast<std::size_t>(i)]);
        ASSERT_EQ(bits.next_set(i), next(i, true));
        ASSERT_EQ(bits.next_clear(i), next(i, false));
      }
      ASSERT_EQ(bits.next_set(size), size);
      if (size == 0) continue;
      const auto i = static_cast<std::int64_t>(random() % static_cast<unsigned>(size));
      bits.set(i);
      plain[static_cast<std::size_t>(i)] = true;
    }
  }
}

TEST(BitSet, TextIsDigitsOfFour) {
  BitSet bits(40);
  EXPECT_EQ(bits.text(0), "");
  for (const std::int64_t i : {1, 2, 3, 4, 13}) bits.set(i);
  EXPECT_EQ(bits.text(1), "f001");
  EXPECT_EQ(bits.text(0), "e102");
  EXPECT_EQ(bits.text(14), "");
}

TEST(BitSet, TextGoesBothWays) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto size = static_cast<std::int64_t>(1 + random() % 300);
    const auto first = static_cast<std::int64_t>(random() % static_cast<unsigned>(size));
    BitSet bits(size), again(size);
    for (std::int64_t i = first; i < size; ++i)
      if (random() % 4 == 0) bits.set(i);
    ASSERT_TRUE(again.set_from_text(first, bits.text(first)));
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(again[i], bits[i]) << i << " of " << size;
  }
}

TEST(BitSet, RefusesOtherTexts) {
  BitSet bits(6);
  for (const char* text : {"g", "0F", "-1", " ", "\xff"}) EXPECT_FALSE(bits.set_from_text(0, text));
  EXPECT_FALSE(bits.set_from_text(0, "04")) << "of a seventh";
  EXPECT_FALSE(bits.set_from_text(6, "1"));
  EXPECT_TRUE(bits.set_from_text(0, "0200000")) << "zeros speak of nothing";
}

}  // namespace
}  // namespace cutwater
