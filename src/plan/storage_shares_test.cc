// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "cutwater/error.h"
#include "plan/test_offload.h"

namespace cutwater {
namespace {

double saved(const std::vector<StorageShare>& shares) {
  return std::accumulate(
      shares.begin(), shares.end(), 0.0,
      [](double sum, const StorageShare& share) { return sum + share.bytes_saved_per_s; });
}

double taken(const std::vector<StorageShare>& shares) {
  return std::accumulate(shares.begin(), shares.end(), 0.0,
                         [](double sum, const StorageShare& share) { return sum + share.threads; });
}

TEST(StorageShares, GoToWhoSavesMost) {
  const std::vector<OffloadTenant> tenants = {{{{1, 100}, {1, 10}}, 0}, {{{0.5, 20}, {4, 80}}, 0}};
  std::vector<StorageShare> shares = share_storage(tenants, 2);
  EXPECT_DOUBLE_EQ(shares[0].threads, 1);
  EXPECT_DOUBLE_EQ(shares[0].price, 100);
  EXPECT_DOUBLE_EQ(shares[1].threads, 1);
  EXPECT_DOUBLE_EQ(shares[1].price, 20);
  EXPECT_DOUBLE_EQ(saved(shares), 130);
  shares = share_storage(tenants, 100);
  EXPECT_DOUBLE_EQ(taken(shares), 6.5);
  EXPECT_EQ(shares[0].price, 0);
  EXPECT_EQ(shares[1].price, 0);
  shares = share_storage(tenants, 0);
  EXPECT_EQ(taken(shares), 0);
  EXPECT_TRUE(share_storage({}, 3).empty());
}

TEST(StorageShares, KeepTheFloorOfThoseWhoCanUseIt) {
  const std::vector<OffloadTenant> tenants = {
      {{{10, 1000}}, 0.5}, {{{10, 10}}, 0.5}, {{{0.1, 0.1}}, 0.5}, {{}, 0.5}};
  const std::vector<StorageShare> shares = share_storage(tenants, 2);
  EXPECT_DOUBLE_EQ(shares[0].threads, 1.4);
  EXPECT_DOUBLE_EQ(shares[1].threads, 0.5);
  EXPECT_DOUBLE_EQ(shares[2].threads, 0.1);
  EXPECT_DOUBLE_EQ(shares[3].threads, 0);
  EXPECT_THAT([&] { share_storage(tenants, 1); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("the floors of all tenants are 2")));
}

TEST(StorageShares, AreAsGoodAsTheBestSplitThatASearchFinds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<test::RandomCase> cases;
    std::vector<OffloadTenant> tenants;
    double all = 0;
    for (std::uint64_t j = 0; j < 3; ++j) {
      cases.push_back(test::random_case(7 * seed + j, 60, 6));
      const double rate = static_cast<double>(1 + random() % 20);
      tenants.push_back({worth_of_storage(cases.back().options.table(), rate), 0});
      for (const OffloadPiece& piece : tenants.back().pieces) all += piece.storage_s;
    }
    const double threads = all * static_cast<double>(random() % 100) / 80;
    const std::vector<StorageShare> ours = share_storage(tenants, threads);
    const std::vector<StorageShare> searched = best_static_split(tenants, threads);
    EXPECT_LE(taken(ours), threads * (1 + 1e-9));
    EXPECT_LE(taken(searched), threads * (1 + 1e-9));
    EXPECT_GE(saved(ours), saved(searched) * (1 - 1e-9));
    EXPECT_GE(saved(searched), saved(ours) * 0.95);
  }
}

TEST(StorageShares, PiecesFallInEfficiencyAndAddUpToTheHull) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    const test::RandomCase c = test::random_case(seed, 200, 6);
    const OffloadTable table = c.options.table();
    const std::vector<OffloadPiece> pieces = worth_of_storage(table, 2, 16);
    EXPECT_LE(pieces.size(), 17u);
    double bytes = 0, most = 0;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      bytes += pieces[k].bytes_saved;
      if (k > 0) {
        EXPECT_LE(pieces[k].efficiency(), pieces[k - 1].efficiency() * (1 + 1e-9));
      }
    }
    for (std::size_t i = 0; i < table.samples(); ++i) {
      const std::span<const OffloadOption> row = table.row(i);
      const OffloadPrices nothing, everything{1, 0, 0};
      most += 2 * (row[best_option(row, nothing)].bytes - row[best_option(row, everything)].bytes);
    }
    EXPECT_NEAR(bytes, most, 1e-6 * (1 + most));
  }
}

}  // namespace
}  // namespace cutwater
