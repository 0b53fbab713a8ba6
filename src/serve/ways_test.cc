// SPDX-License-Identifier: Apache-2.0
#include "serve/ways.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/test_ops.h"

namespace cutwater::serve {
namespace {

// As stored; an excerpt; 192 bytes whatever the sample; the same with a codec.
class WayBookTest : public testing::Test {
 protected:
  static constexpr std::size_t kStored = 0, kExcerpt = 1, kPixels = 2, kPacked = 3;

  std::vector<Offer> offers(double stored_bytes, double excerpt_share = 1) const {
    std::vector<Offer> all;
    book_.estimate({stored_bytes, excerpt_share}, all);
    return all;
  }

  WayBook book_{Pipeline::parse("pixels(8, 8)", test::test_table()),
                {{0, {}, false}, {0, {}, true}, {1, {}, false}, {1, codec_named("zstd:1"), false}}};
};

TEST_F(WayBookTest, TellsWhatCanBeToldBeforeAnythingWasTried) {
  const std::vector<Offer> all = offers(1000, 0.25);
  EXPECT_EQ(all[kStored].bytes, 1000);
  EXPECT_EQ(all[kStored].seconds, 0);
  EXPECT_EQ(all[kExcerpt].bytes, 250);
  EXPECT_EQ(all[kPixels].bytes, 192) << "all samples have as many at that cut";
  for (const std::size_t way : {kExcerpt, kPixels}) EXPECT_GT(all[way].seconds, 0);
  EXPECT_TRUE(std::isinf(offers(1000, 1)[kExcerpt].bytes)) << "there is none of this sample";
}

TEST_F(WayBookTest, LearnsWhatWaysWeighAndCost) {
  for (int i = 0; i < 3; ++i) {
    book_.learn(kPacked, {1000, 1}, {96, 1e-3});
    book_.learn(kExcerpt, {1000, 0.5}, {600, 2e-3});
  }
  const std::vector<Offer> all = offers(2000, 0.25);
  EXPECT_DOUBLE_EQ(all[kPacked].bytes, 96) << "goes with the tensor, which is the same for all";
  EXPECT_DOUBLE_EQ(all[kPacked].seconds, 2e-3) << "goes with the stored bytes";
  EXPECT_DOUBLE_EQ(all[kExcerpt].bytes, 600) << "1.2 times what was told";
  EXPECT_DOUBLE_EQ(all[kExcerpt].seconds, 4e-3);
}

// Trials of what nobody takes are few, and the first of them finds nothing warm.
TEST_F(WayBookTest, AFewTrialsDoNotMislead) {
  book_.learn(kExcerpt, {1000, 0.5}, {500, 9e-3});
  EXPECT_DOUBLE_EQ(offers(1000, 0.5)[kExcerpt].seconds, 9e-3) << "there is nothing better to go by";
  book_.learn(kExcerpt, {1000, 0.5}, {500, 2e-3});
  EXPECT_DOUBLE_EQ(offers(1000, 0.5)[kExcerpt].seconds, 2e-3);
  book_.learn(kExcerpt, {1000, 0.5}, {500, 4e-3});
  EXPECT_DOUBLE_EQ(offers(1000, 0.5)[kExcerpt].seconds, 3e-3);
}

// What a codec is applied to was made first: what nobody has tried is known by it.
TEST_F(WayBookTest, OneWithACodecTellsOfTheOneWithout) {
  book_.learn(kPacked, {1000, 1}, {96, 3e-3});
  EXPECT_GT(offers(1000'000)[kPixels].seconds, 15e-3) << "nobody knows";
  book_.learn(kPacked, {1000, 1}, {96, 3e-3}, 1e-3);
  EXPECT_DOUBLE_EQ(offers(1000)[kPixels].seconds, 1e-3);
  EXPECT_DOUBLE_EQ(offers(1000)[kPixels].bytes, 192);
  EXPECT_DOUBLE_EQ(offers(1000)[kPacked].seconds, 3e-3);
}

TEST_F(WayBookTest, WhatOpsHaveSeenBeforeCostsLess) {
  book_.learn(kPixels, {1000, 1, false}, {192, 4e-3});
  const auto cost = [this](bool learned) {
    std::vector<Offer> all;
    book_.estimate({1000, 1, learned}, all);
    return all[kPixels].seconds;
  };
  EXPECT_DOUBLE_EQ(cost(true), 4e-3) << "there is nothing better to go by";
  for (int i = 0; i < 6; ++i) book_.to_try({1000, 1, false});
  EXPECT_EQ(book_.to_try({1000, 1, true}), kExcerpt) << "to be tried again";
  book_.learn(kPixels, {1000, 1, true}, {192, 1e-3});
  EXPECT_DOUBLE_EQ(cost(true), 1e-3);
  EXPECT_DOUBLE_EQ(cost(false), 4e-3);
}

// A way at a fresh cut costs less where a cache has what comes before; one at a stable cut does
// not.
TEST(WayBook, WhatIsMadeFromAKeptFormHasACostOfItsOwn) {
  WayBook book(Pipeline::parse("pixels(8, 8) | jitter", test::test_table()),
               {{0, {}, false}, {1, {}, false}, {2, {}, false}});
  const Facts stored{1000, 1}, kept{1000, 1, false, 0, true};
  for (const std::size_t way : {1, 2}) book.learn(way, stored, {192, 4e-3});
  const auto cost = [&](std::size_t way, const Facts& facts) {
    std::vector<Offer> all;
    book.estimate(facts, all);
    return all[way].seconds;
  };
  EXPECT_DOUBLE_EQ(cost(2, kept), 4e-3) << "there is nothing better to go by";
  book.learn(2, kept, {192, 1e-3});
  EXPECT_DOUBLE_EQ(cost(2, kept), 1e-3);
  EXPECT_DOUBLE_EQ(cost(2, stored), 4e-3);
  EXPECT_DOUBLE_EQ(cost(1, kept), 4e-3);
  EXPECT_TRUE(book.form(1));
  EXPECT_EQ(book.form(1), book.frontier_form());
  EXPECT_FALSE(book.form(0) || book.form(2)) << "as stored; another in every epoch";
}

TEST_F(WayBookTest, ForgetsWhatWasLongAgo) {
  for (int i = 0; i < 300; ++i) book_.learn(kPixels, {1000, 1}, {192, 1});
  for (int i = 0; i < 3000; ++i) book_.learn(kPixels, {1000, 1}, {192, 2});
  EXPECT_NEAR(offers(1000)[kPixels].seconds, 2, 0.01);
}

TEST_F(WayBookTest, IsNotMisledBySamplesWithoutBytes) {
  book_.learn(kPixels, {0, 1}, {192, 1});
  book_.learn(kExcerpt, {1000, 0}, {0, 1});
  for (const Offer& offer : offers(0, 0.5)) EXPECT_FALSE(std::isnan(offer.bytes));
}

TEST(WayBook, BestIsWhatSavesMostForItsPrice) {
  const std::vector<Offer> offers = {{1000, 0}, {600, 1e-3}, {200, 5e-3}, {INFINITY, INFINITY}};
  EXPECT_EQ(WayBook::best(offers, 0), 2u);
  EXPECT_EQ(WayBook::best(offers, 99'000), 2u) << "400 bytes more for 4 ms more";
  EXPECT_EQ(WayBook::best(offers, 101'000), 1u);
  EXPECT_EQ(WayBook::best(offers, 399'000), 1u);
  EXPECT_EQ(WayBook::best(offers, 401'000), 0u);
  EXPECT_EQ(WayBook::best(offers, INFINITY), 0u);
  EXPECT_EQ(WayBook::best({{10, 0}, {10, 0}}, 0), 0u) << "as stored where nothing is gained";
}

// To one who decodes only the part that is needed, the rest of a file is no more than bytes.
TEST(WayBook, AsStoredCostsWhatIsSentAndWhatIsNeeded) {
  const std::vector<Offer> offers = {{1000, 0}, {400, 0}, {600, 0}};
  const auto best = [&](Worths worths, double needed) {
    return WayBook::best(offers, 0, std::make_shared<const Worths>(worths),
                         {1000, 1, false, needed});
  };
  EXPECT_EQ(best({{0.1, 1.1, 0.1}, 1}, 400), 2u) << "60, where as stored is 500 and 1 is 440";
  EXPECT_EQ(best({{0.1, 1.1, 2}, 1}, 400), 1u);
  EXPECT_EQ(best({{0.1, 1.1, 2}, 1}, 300), 0u) << "400";
}

TEST_F(WayBookTest, TriesEachWayTwiceAndThenTheForgottenNowAndThen) {
  for (const std::size_t way : {kExcerpt, kExcerpt, kPixels, kPixels, kPacked, kPacked})
    EXPECT_EQ(book_.to_try({}), way) << "one with each sample, whether or not the last has ended";
  for (int i = 0; i < 3; ++i)
    for (const std::size_t way : {kExcerpt, kPixels}) book_.learn(way, {1000, 0.5}, {100, 1});
  std::vector<std::size_t> tried;
  for (int i = 0; i < 640; ++i)
    if (const auto way = book_.to_try({})) tried.push_back(*way);
  ASSERT_EQ(tried.size(), 10u);
  EXPECT_EQ(tried[0], kPacked);
  for (const std::size_t way : {kExcerpt, kPixels, kPacked})  // also where none was learned
    EXPECT_GE(std::ranges::count(tried, way), 3) << way;
  WayBook alone(Pipeline(test::test_table()), {{}});
  for (int i = 0; i < 200; ++i) EXPECT_EQ(alone.to_try({}), std::nullopt);
}

}  // namespace
}  // namespace cutwater::serve
