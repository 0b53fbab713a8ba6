// SPDX-License-Identifier: Apache-2.0
#include "plan/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace cutwater {
namespace {

TEST(Packing, OneColumnFillsItsTightestRow) {
  const Packed packed = pack({{2, 4}}, {10, 10});
  EXPECT_DOUBLE_EQ(packed.value, 2.5);
  EXPECT_DOUBLE_EQ(packed.amounts[0], 2.5);
  EXPECT_DOUBLE_EQ(packed.prices[0], 0);
  EXPECT_DOUBLE_EQ(packed.prices[1], 0.25);
}

TEST(Packing, TwoColumnsShareTwoRows) {
  // Each alone gives 1; together both rows are full: 2/3 of each.
  const Packed packed = pack({{1, 0.5}, {0.5, 1}}, {1, 1});
  EXPECT_NEAR(packed.value, 4.0 / 3, 1e-12);
  EXPECT_NEAR(packed.prices[0] + packed.prices[1], 4.0 / 3, 1e-12);
}

TEST(Packing, ARowWithoutALimitOfItsOwnTiesColumnsTogether) {
  // The second column may be used as much as the first: its row has limit 0.
  const Packed packed = pack({{1, -1}, {0.1, 1}}, {1, 0});
  EXPECT_NEAR(packed.amounts[0], packed.amounts[1], 1e-12);
  EXPECT_NEAR(packed.value, 2 / 1.1, 1e-12);
}

// What the prices say is an upper bound, and it is met: that is the proof that it is the best.
TEST(Packing, PricesProveTheBest) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> some(0.01, 1);
  for (int trial = 0; trial < 200; ++trial) {
    const std::size_t rows = 2 + random() % 6, count = 1 + random() % 40;
    std::vector<std::vector<double>> columns(count, std::vector<double>(rows));
    for (auto& column : columns)
      for (std::size_t r = 0; r < rows; ++r)
        column[r] = r + 1 == rows ? some(random) - 0.5 : some(random);
    std::vector<double> limits(rows, 1.0);
    limits.back() = 0;
    const Packed packed = pack(columns, limits);
    double bound = 0, sum = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      EXPECT_GE(packed.prices[r], 0);
      bound += packed.prices[r] * limits[r];
      double taken = 0;
      for (std::size_t k = 0; k < count; ++k) taken += packed.amounts[k] * columns[k][r];
      EXPECT_LE(taken, limits[r] + 1e-9);
    }
    for (std::size_t k = 0; k < count; ++k) {
      double cost = 0;
      for (std::size_t r = 0; r < rows; ++r) cost += packed.prices[r] * columns[k][r];
      EXPECT_GE(cost, 1 - 1e-9);
      EXPECT_GE(packed.amounts[k], 0);
      sum += packed.amounts[k];
    }
    EXPECT_NEAR(sum, packed.value, 1e-9 * std::max(1.0, sum));
    EXPECT_NEAR(bound, packed.value, 1e-9 * std::max(1.0, sum));
  }
}

}  // namespace
}  // namespace cutwater
