// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "cache/test_redis.h"
#include "cutwater/cache.h"

namespace cutwater::redis {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr std::size_t kLong = 20'000;  // of several chunks
constexpr SampleId kSamples = 40;

class RedisContentsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/bootstrap.sh test installs it";
  }

  // Two data sets in two forms, all of several chunks; and a job that has told of them.
  static void fill(const std::string& url) {
    const auto cache = redis_cache(url);
    const auto seat = cache->seat({"job", 1, kSamples, {7, 8}});
    for (const std::uint64_t data : {1, 2})
      for (const std::uint64_t form : {7, 8})
        for (SampleId id = 0; id < kSamples; ++id)
          ASSERT_TRUE(cache->put({data, form, id, 0}, kLong, 1, [](std::span<std::uint8_t> place) {
            std::ranges::fill(place, std::uint8_t{1});
          }));
  }
  static std::int64_t entries(const std::string& url, const Selection& which = {}) {
    std::int64_t sum = 0;
    for (const FormContents& form : contents_of(url)) {
      EXPECT_GE(form.bytes, static_cast<std::size_t>(form.entries) * kLong);
      if ((!which.data || form.data == *which.data) && (!which.form || form.form == *which.form))
        sum += form.entries;
    }
    return sum;
  }
};

TEST_F(RedisContentsTest, CountsAndClearsByDataSetAndForm) {
  TestServer server;
  const std::string url = server.url("?chunk=4KiB");
  fill(url);
  server.ask({"SET", "cutwater:{mine}:notes", "not a value"});
  server.ask({"SET", "elsewhere", "nor this"});
  EXPECT_EQ(contents_of(url).size(), 4u);
  EXPECT_EQ(entries(url), 4 * kSamples);
  const FormContents cleared = clear(url, {.data = 2, .form = 7});
  EXPECT_EQ(cleared.entries, kSamples);
  EXPECT_GE(cleared.bytes, kSamples * kLong);
  EXPECT_EQ(entries(url, {.data = 2, .form = 7}), 0);
  EXPECT_EQ(entries(url), 3 * kSamples);
  EXPECT_EQ(clear(url, {.data = 1}).entries, 2 * kSamples);
  EXPECT_EQ(entries(url), kSamples);
  EXPECT_EQ(clear(url, {}).entries, kSamples);
  EXPECT_EQ(server.ask({"DBSIZE"}).number, 2) << "what is not ours";
}

TEST_F(RedisContentsTest, ClearsAllNodesOfACluster) {
  TestCluster cluster;
  fill(cluster.url());
  EXPECT_EQ(entries(cluster.url()), 4 * kSamples);
  EXPECT_EQ(clear(cluster.url(), {}).entries, 4 * kSamples);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(cluster.node(i).ask({"DBSIZE"}).number, 0);
}

TEST_F(RedisContentsTest, ClearsAServerThatIsFull) {
  TestServer server;
  fill(server.url());
  server.ask({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(clear(server.url(), {}).entries, 4 * kSamples);
}

TEST_F(RedisContentsTest, SaysWhyItCannot) {
  std::string url;
  {
    TestServer server({"--rename-command", "UNLINK", ""});
    fill(server.url());
    EXPECT_THAT([&] { clear(server.url(), {}); }, ThrowsMessage<Error>(HasSubstr("UNLINK")));
    EXPECT_EQ(entries(server.url()), 4 * kSamples);
    url = server.url();
  }
  EXPECT_THAT([&] { contents_of(url); }, ThrowsMessage<Error>(testing::AllOf(
                                             HasSubstr("127.0.0.1"), Not(HasSubstr("meanwhile")))));
}

TEST_F(RedisContentsTest, ReadsAPrefixAsItStands) {
  TestServer server;
  fill(server.url("?prefix=a*"));
  fill(server.url("?prefix=ab"));
  EXPECT_EQ(clear(server.url("?prefix=a*"), {}).entries, 4 * kSamples);
  EXPECT_EQ(entries(server.url("?prefix=ab")), 4 * kSamples);
}

}  // namespace
}  // namespace cutwater::redis
