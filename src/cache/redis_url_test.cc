// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(RedisUrl, ReadsEveryPart) {
  const Url url = parse_url(
      "rediss://some%40one:p%2Fa%25s@cache.example:7000/"
      "3?timeout=500ms&slow=1s&ttl=10m&prefix=team:a"
      "&chunk=64KiB&ca=/etc/my%20ca.pem");
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.endpoint, (Endpoint{"cache.example", 7000, ""}));
  EXPECT_EQ(url.user, "some@one");
  EXPECT_EQ(url.password, "p/a%s");
  EXPECT_EQ(url.database, 3);
  EXPECT_EQ(url.timeout, 500ms);
  EXPECT_EQ(url.slow, 1s);
  EXPECT_EQ(url.ttl, 10min);
  EXPECT_EQ(url.prefix, "team:a");
  EXPECT_EQ(url.chunk_bytes, 65536u);
  EXPECT_EQ(url.ca, "/etc/my ca.pem");
  EXPECT_EQ(to_string(url), "rediss://cache.example:7000");
}

TEST(RedisUrl, HasDefaults) {
  const Url url = parse_url("redis://localhost");
  EXPECT_FALSE(url.tls);
  EXPECT_FALSE(url.cluster);
  EXPECT_EQ(url.endpoint, (Endpoint{"localhost", 6379, ""}));
  EXPECT_EQ(url.user + url.password, "");
  EXPECT_EQ(url.timeout, 2s);
  EXPECT_EQ(url.slow, 100ms);
  EXPECT_EQ(url.ttl, 24h);
  EXPECT_EQ(url.prefix, "cutwater");
}

TEST(RedisUrl, ReadsAddressesPasswordsAloneAndSockets) {
  EXPECT_EQ(parse_url("redis://[::1]:7/").endpoint, (Endpoint{"::1", 7, ""}));
  EXPECT_EQ(to_string(parse_url("redis://[::1]")), "redis://[::1]:6379");
  EXPECT_EQ(parse_url("redis://:secret@h").password, "secret");
  EXPECT_EQ(parse_url("redis://u:a:b@c@h").password, "a:b@c");
  const Url url = parse_url("redis+unix:///run/redis.sock?db=2");
  EXPECT_EQ(url.endpoint.path, "/run/redis.sock");
  EXPECT_EQ(url.database, 2);
  EXPECT_TRUE(parse_url("redis://h?cluster=1").cluster);
}

std::string refusal_of(std::string_view text) {
  try {
    (void)parse_url(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

TEST(RedisUrl, NamesWhatIsWrong) {
  EXPECT_THAT(refusal_of("http://h"), HasSubstr("begins with redis://"));
  EXPECT_THAT(refusal_of("redis://"), HasSubstr("the host is missing"));
  EXPECT_THAT(refusal_of("redis://h:0"), HasSubstr("port must be in 1..65535, got '0'"));
  EXPECT_THAT(refusal_of("redis://h:70000"), HasSubstr("got '70000'"));
  EXPECT_THAT(refusal_of("redis://h/one"), HasSubstr("db must be in"));
  EXPECT_THAT(refusal_of("redis://[::1"), HasSubstr("no ']'"));
  EXPECT_THAT(refusal_of("redis://h?speed=9"), HasSubstr("no option 'speed'"));
  EXPECT_THAT(refusal_of("redis://h?insecure=1"), HasSubstr("no option 'insecure'"));
  EXPECT_THAT(refusal_of("redis://h?timeout=2"), HasSubstr("timeout must be a time like"));
  EXPECT_THAT(refusal_of("redis://h?slow=0ms"), HasSubstr("slow must be a time like"));
  EXPECT_THAT(refusal_of("redis://h?ttl=nan"), HasSubstr("ttl must be a time like"));
  EXPECT_THAT(refusal_of("redis://h?ttl=1e99d"), HasSubstr("ttl must be a time like"));
  EXPECT_THAT(refusal_of("redis://h?chunk=1"), HasSubstr("chunk must be in 4KiB..256MiB"));
  EXPECT_THAT(refusal_of("redis://h?prefix=a%7Bb"), HasSubstr("prefix must be"));
  EXPECT_THAT(refusal_of("redis://h?ca=/x"), HasSubstr("ca= is for rediss://"));
  EXPECT_THAT(refusal_of("redis://h/1?cluster=1"), HasSubstr("only db 0"));
  EXPECT_THAT(refusal_of("redis+unix://"), HasSubstr("the path of the socket is missing"));
  EXPECT_THAT(refusal_of("redis+unix://run/a"), HasSubstr("third '/'"));
}

TEST(RedisUrl, NeverShowsAPassword) {
  for (const char* const text :
       {"redis://u:se/cret@h", "redis://u:se?cret@h", "redis://u:se#cret@h", "redis://u:secret%@h",
        "redis://u:secret%4@h", "redis://u:secret%00@h", "redis://u:secret@",
        "redis://u:secret@h:x", "redis://u:secret@h?no=1"}) {
    EXPECT_THAT(refusal_of(text), HasSubstr("Redis URL")) << text;
    EXPECT_THAT(refusal_of(text), Not(HasSubstr("cret"))) << text;
  }
}

}  // namespace
}  // namespace cutwater::redis
