// SPDX-License-Identifier: Apache-2.0
// Quotas: what a user's values may take, whose values make way for them, and that a reader knows.
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "cache/keeper.h"
#include "cache/reader.h"

namespace cutwater::cache {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint32_t kUser = 7, kOther = 8;

// One user with a quota and one without, each with a data set of its own.
struct Users {
  explicit Users(std::uint64_t limit, std::uint64_t quota) : keeper(Segment::shared(limit)) {
    keeper.set_quota(kUser, quota);
    mine = keeper.open_client(kUser);
    others = keeper.open_client(kOther);
    reader = Reader::make(keeper.segment(), mine);
    other_reader = Reader::make(keeper.segment(), others);
  }

  static CacheKey key(SampleId sample) { return {kUser, 1, sample, 0}; }
  static CacheKey other_key(SampleId sample) { return {kOther, 1, sample, 0}; }

  bool put(int client, const CacheKey& name, std::uint64_t size, double seconds) {
    const auto place = keeper.reserve(client, name, size, seconds);
    return place && keeper.commit(client, place->token);
  }
  bool put(SampleId sample, std::uint64_t size, double seconds) {
    return put(mine, key(sample), size, seconds);
  }
  bool put_other(SampleId sample, std::uint64_t size, double seconds) {
    return put(others, other_key(sample), size, seconds);
  }
  bool has(SampleId sample) const { return reader->has(key(sample)); }
  bool has_room(SampleId sample, std::uint64_t size, double seconds) const {
    return reader->has_room(key(sample), size, seconds);
  }
  std::int64_t evicted() const { return keeper.stats().evicted; }

  Keeper keeper;
  int mine, others;
  std::shared_ptr<Reader> reader, other_reader;
};

TEST(KeeperQuota, OwnValuesMakeWay) {
  Users users(4 * kMiB, 45'000);
  ASSERT_TRUE(users.put(1, 20'000, 2));
  ASSERT_TRUE(users.put(2, 20'000, 1));
  ASSERT_TRUE(users.put_other(3, 20'000, 0.01)) << "another user's, who has no quota";
  EXPECT_FALSE(users.put(4, 20'000, 1)) << "worth no more than what is there";
  EXPECT_FALSE(users.put(4, 50'000, 100)) << "more than the quota";
  EXPECT_TRUE(users.put(4, 20'000, 3));
  EXPECT_TRUE(users.has(1));
  EXPECT_FALSE(users.has(2)) << "it was worth the least of his";
  EXPECT_TRUE(users.reader->has(Users::other_key(3))) << "others' do not make way for a quota";
  EXPECT_TRUE(users.has(4));
  for (const Keeper::OwnerUse& use : users.keeper.by_owner())
    EXPECT_LE(use.bytes, use.quota.value_or(4 * kMiB));
}

TEST(KeeperQuota, AUserWithFewValuesAmongManyFindsHisOwn) {
  Users users(16 * kMiB, 45'000);
  ASSERT_TRUE(users.put(1, 20'000, 1));
  ASSERT_TRUE(users.put(2, 20'000, 1));
  for (SampleId sample = 0; sample < 2000; ++sample)
    ASSERT_TRUE(users.put_other(sample, 5'000, 0.01));
  for (SampleId sample = 3; sample < 9; ++sample)
    EXPECT_TRUE(users.put(sample, 20'000, static_cast<double>(1 << sample)));
  EXPECT_EQ(users.evicted(), 6);
  EXPECT_TRUE(users.has(8));
  EXPECT_TRUE(users.has(7));
  SampleId there = 0;
  for (SampleId sample = 0; sample < 2000; ++sample)
    there += users.reader->has(Users::other_key(sample)) ? 1 : 0;
  EXPECT_EQ(there, 2000);
}

// The place of what would go is too small, and others' values are on both sides of it.
TEST(KeeperQuota, NothingGoesForAValueThatFindsNoPlace) {
  Users users(kMiB, 60'000);
  for (SampleId sample = 0; sample < 3; ++sample) {  // all are worth as much by the byte
    ASSERT_TRUE(users.put_other(1000 + sample, 5'000, 0.5));
    ASSERT_TRUE(users.put(sample, 18'000, 1.8));
  }
  SampleId others = 0;
  while (users.put_other(others, 5'000, 0.5)) ++others;
  ASSERT_GT(others, 100);
  EXPECT_FALSE(users.put(9, 30'000, 100));
  EXPECT_EQ(users.evicted(), 0);
  EXPECT_TRUE(users.has(0) && users.has(1) && users.has(2));
  EXPECT_TRUE(users.put(9, 15'000, 100)) << "into the place of one of them";
  EXPECT_EQ(users.evicted(), 1);
}

// There is room for bytes, but not for a name.
TEST(KeeperQuota, OthersKeepTheirPlacesInAFullIndex) {
  Users users(16 * kMiB, 45'000);
  ASSERT_TRUE(users.put(1, 20'000, 1));
  ASSERT_TRUE(users.put(2, 20'000, 1));
  SampleId tried = 0;
  for (int refused = 0; refused < 1000; ++tried)
    if (!users.put_other(tried, 1'000, 1e-3)) ++refused;
  const auto others = [&] {
    SampleId there = 0;
    for (SampleId sample = 0; sample < tried; ++sample)
      there += users.reader->has(Users::other_key(sample)) ? 1 : 0;
    return there;
  };
  const SampleId before = others();
  for (SampleId sample = 3; sample < 200; ++sample)
    users.put(sample, 20'000, static_cast<double>(sample));
  EXPECT_EQ(others(), before);
}

TEST(KeeperQuota, AReaderKnowsWhatIsLeft) {
  Users users(4 * kMiB, 45'000);
  EXPECT_TRUE(users.has_room(1, 44'000, 1));
  EXPECT_FALSE(users.has_room(1, 46'000, 1)) << "nothing there could make way";
  ASSERT_TRUE(users.put(1, 20'000, 1));
  ASSERT_TRUE(users.put(2, 20'000, 1));
  EXPECT_FALSE(users.has_room(3, 20'000, 1)) << "worth no more than what is there";
  EXPECT_FALSE(users.has_room(3, 20'000, 0)) << "nothing is free";
  EXPECT_TRUE(users.has_room(3, 20'000, 3));
  EXPECT_TRUE(users.has_room(3, 4'000, 0)) << "that much is left";
  ASSERT_TRUE(users.put_other(5, 20'000, 0.01));
  EXPECT_FALSE(users.has_room(3, 20'000, 1)) << "others' values do not make way";
  EXPECT_TRUE(users.other_reader->has_room(Users::other_key(6), 1'000'000, 0));

  const int second = users.keeper.open_client(kUser);
  const auto its = Reader::make(users.keeper.segment(), second);
  EXPECT_FALSE(its->has_room(Users::key(3), 20'000, 1)) << "the quota is the user's";
  EXPECT_TRUE(users.keeper.drop(Users::key(1)));
  EXPECT_TRUE(its->has_room(Users::key(3), 20'000, 0));
  EXPECT_TRUE(users.has_room(3, 20'000, 0));
  users.keeper.set_quota(kUser, 30'000);
  EXPECT_FALSE(users.has_room(3, 20'000, 1));
  users.keeper.close_client(second);
  ASSERT_EQ(users.keeper.open_client(kOther), second);
  EXPECT_TRUE(its->has_room(Users::other_key(6), 1'000'000, 0)) << "whoever comes has no quota";
}

}  // namespace
}  // namespace cutwater::cache
