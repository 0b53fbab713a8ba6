// SPDX-License-Identifier: Apache-2.0
// The cache in Redis where the contract of all caches says nothing: logins, chunks, names, and what
// a server may do that it should not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cache/redis_value.h"
#include "cache/test_redis.h"
#include "cutwater/cache.h"

namespace cutwater::redis {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Bytes = std::vector<std::uint8_t>;

CacheKey key_of(SampleId sample, std::uint64_t draw = 0) { return {17, 42, sample, draw}; }

Bytes bytes_of(SampleId sample, std::size_t size) {
  std::mt19937_64 random(static_cast<std::uint64_t>(sample));
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

bool put(Cache& cache, const CacheKey& key, const Bytes& bytes) {
  return cache.put(key, bytes.size(), 1, [&](std::span<std::uint8_t> place) {
    std::copy(bytes.begin(), bytes.end(), place.begin());
  });
}

bool has(Cache& cache, const CacheKey& key, const Bytes& bytes) {
  const CacheValue value = cache.get(key);
  return value && std::ranges::equal(value.bytes(), bytes);
}

class RedisCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!TestServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: tools/bootstrap.sh test installs it";
  }
};

TEST_F(RedisCacheTest, ChunksHaveNamesALifeAndOneSlot) {
  TestServer server;
  const auto cache = redis_cache(server.url("?chunk=4KiB&ttl=1h&prefix=team"));
  for (const std::size_t size : {0, 4095, 4096, 4097, 8192, 500'000}) {
    const auto id = static_cast<SampleId>(size);
    ASSERT_TRUE(put(*cache, key_of(id), bytes_of(id, size))) << size;
    EXPECT_TRUE(has(*cache, key_of(id), bytes_of(id, size))) << size;
  }
  const Reply names = server.ask({"KEYS", "*:2a:0*"});
  EXPECT_EQ(names.parts.size(), 1u + 1 + 1 + 2 + 2 + 123);
  for (const Reply& name : names.parts) {
    EXPECT_THAT(name.text, testing::StartsWith("team:{11:"));
    const std::int64_t life = server.ask({"PTTL", name.text}).number;
    EXPECT_GT(life, 0) << name.text;
    EXPECT_LE(life, 3'600'000) << name.text;
  }
  cache->drop(key_of(500'000));
  EXPECT_EQ(server.ask({"KEYS", "*:2a:0*"}).parts.size(), 7u);
}

TEST_F(RedisCacheTest, FreshFormsDoNotStayLong) {
  TestServer server;
  const auto cache = redis_cache(server.url());
  ASSERT_TRUE(put(*cache, key_of(1), bytes_of(1, 10)));
  ASSERT_TRUE(put(*cache, key_of(1, 5), bytes_of(2, 10)));
  EXPECT_GT(server.ask({"PTTL", name_of("cutwater", key_of(1))}).number, 23 * 3'600'000);
  EXPECT_LE(server.ask({"PTTL", name_of("cutwater", key_of(1, 5))}).number, 3'600'000);
}

TEST_F(RedisCacheTest, PrefixesAndDatabasesDoNotMeet) {
  TestServer server;
  const auto one = redis_cache(server.url("?prefix=one"));
  const auto two = redis_cache(server.url("?prefix=two"));
  const auto three = redis_cache(server.url("/3?prefix=one"));
  const auto by_socket = redis_cache("redis+unix://" + server.folder() + "/socket?prefix=one");
  ASSERT_TRUE(put(*one, key_of(1), bytes_of(1, 10)));
  EXPECT_FALSE(two->get(key_of(1)));
  EXPECT_FALSE(three->get(key_of(1)));
  EXPECT_TRUE(has(*by_socket, key_of(1), bytes_of(1, 10)));
}

TEST_F(RedisCacheTest, LogsIn) {
  TestServer server;
  server.ask({"ACL", "SETUSER", "someone", "on", ">p@ss/word", "~cutwater:*", "+@all"});
  server.ask({"ACL", "SETUSER", "reader", "on", ">pw", "~cutwater:*", "+@all", "-set"});
  const std::string at = "@127.0.0.1:" + std::to_string(server.port());
  const auto cache = redis_cache("redis://someone:p%40ss%2Fword" + at);
  EXPECT_EQ(cache->trouble(), "");
  ASSERT_TRUE(put(*cache, key_of(1), bytes_of(1, 100)));
  EXPECT_TRUE(has(*cache, key_of(1), bytes_of(1, 100)));

  const auto reader = redis_cache("redis://reader:pw" + at);
  EXPECT_TRUE(has(*reader, key_of(1), bytes_of(1, 100)));
  EXPECT_FALSE(put(*reader, key_of(2), bytes_of(2, 100)));
  EXPECT_THAT(reader->trouble(), HasSubstr("NOPERM"));

  const auto wrong = redis_cache("redis://someone:secret" + at);
  EXPECT_THAT(wrong->trouble(), HasSubstr("the login was refused: WRONGPASS"));
  EXPECT_THAT(wrong->trouble(), Not(HasSubstr("secret")));
  EXPECT_FALSE(wrong->get(key_of(1)));
  EXPECT_FALSE(wrong->has_room(key_of(9), 10, 1));
  EXPECT_FALSE(put(*wrong, key_of(2), bytes_of(2, 100)));
}

TEST_F(RedisCacheTest, SpeaksTlsToThoseItTrusts) {
  if (!is_program("openssl")) GTEST_SKIP() << "openssl is not installed";
  TestFolder folder;
  const std::string at = folder.path() + "/";
  const auto make = [&](const std::string& name, const std::string& hosts) {
    const std::string command =
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=" + name +
        " -addext subjectAltName=" + hosts + " -keyout " + at + name + ".key -out " + at + name +
        ".pem 2>/dev/null";
    ASSERT_EQ(::system(command.c_str()), 0);
  };
  make("here", "DNS:localhost,IP:127.0.0.1");
  make("there", "DNS:elsewhere.example");
  const auto serve = [&](const std::string& name, std::uint16_t port) {
    return std::make_unique<TestServer>(std::vector<std::string>{
        "--tls-port", std::to_string(port), "--tls-cert-file", at + name + ".pem", "--tls-key-file",
        at + name + ".key", "--tls-auth-clients", "no"});
  };
  const std::uint16_t port = free_port(), other_port = free_port();
  const auto server = serve("here", port), other = serve("there", other_port);
  const std::string end = ":" + std::to_string(port);
  SampleId sample = 0;
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    const auto cache = redis_cache("rediss://" + host + end + "?ca=" + at + "here.pem");
    EXPECT_EQ(cache->trouble(), "");
    EXPECT_TRUE(put(*cache, key_of(++sample), bytes_of(1, 3'000'000)));
    EXPECT_TRUE(has(*cache, key_of(sample), bytes_of(1, 3'000'000)));
  }
  EXPECT_THAT(redis_cache("rediss://localhost" + end)->trouble(), HasSubstr("is not trusted"));
  EXPECT_THAT(
      redis_cache("rediss://localhost:" + std::to_string(other_port) + "?ca=" + at + "there.pem")
          ->trouble(),
      AnyOf(HasSubstr("is not trusted: hostname mismatch"),
            HasSubstr("is not trusted: Hostname mismatch")));
  EXPECT_THAT(
      redis_cache("rediss://127.0.0.1:" + std::to_string(server->port()) + "?ca=" + at + "here.pem")
          ->trouble(),
      Not(IsEmpty()));
  EXPECT_THROW(redis_cache("rediss://localhost?ca=" + at + "none.pem"), Error);
}

// Damage of every kind: a miss that is counted as such, and what was there is gone. Where a chunk
// is not there, the server may have evicted it: that is a miss, and no damage.
TEST_F(RedisCacheTest, WhatWasNotPutIsAMiss) {
  TestServer server;
  const auto cache = redis_cache(server.url("?chunk=4KiB"));
  const std::string name = name_of("cutwater", key_of(1));
  const Bytes bytes = bytes_of(1, 10'000);
  std::int64_t count = 0;
  const auto damaged = [&](const char* what, const std::function<void()>& damage,
                           bool looks_evicted = false) {
    server.ask({"FLUSHALL"});
    ASSERT_TRUE(put(*cache, key_of(1), bytes)) << what;
    damage();
    if (count % 2 == 0) {
      EXPECT_FALSE(cache->get(key_of(1))) << what;
    } else {
      const CacheKey keys[] = {{17, 43, 1, 0}, key_of(1)};
      const Cache::First first = cache->get_first(keys);
      EXPECT_FALSE(first.value) << what;
      EXPECT_EQ(first.damaged, looks_evicted ? 0 : 1) << what;
    }
    if (!looks_evicted) ++count;
    EXPECT_EQ(cache->stats().damaged, count) << what;
    EXPECT_EQ(server.ask({"EXISTS", name}).number, 0) << what;
    EXPECT_TRUE(put(*cache, key_of(1), bytes)) << what;
    EXPECT_TRUE(has(*cache, key_of(1), bytes)) << what;
  };
  std::string chunk;  // the name of the second
  const auto find_chunk = [&] {
    for (const Reply& found : server.ask({"KEYS", name + ":*"}).parts)
      if (found.text.ends_with(":1")) chunk = found.text;
  };
  for (const int at : {0, 7, 8, 15, 16, 23, 24, 31, 32, 63, 64, 65, 4096, 4159})
    damaged(
        "a flipped bit",
        [&] {
          const std::string byte =
              server.ask({"GETRANGE", name, std::to_string(at), std::to_string(at)}).text;
          server.ask({"SETRANGE", name, std::to_string(at),
                      std::string(1, static_cast<char>(byte[0] ^ 1))});
        },
        at >= 24 && at < 32);  // the checksum, which chunks are named after
  damaged("nothing", [&] { server.ask({"SET", name, ""}); });
  damaged("less than a header", [&] { server.ask({"SET", name, std::string(63, 'x')}); });
  damaged("a header of zeros", [&] { server.ask({"SET", name, std::string(64, '\0')}); });
  damaged("a list", [&] {
    server.ask({"DEL", name});
    server.ask({"RPUSH", name, "x"});
  });
  damaged("more", [&] { server.ask({"APPEND", name, "x"}); });
  damaged(
      "no chunk",
      [&] {
        find_chunk();
        server.ask({"DEL", chunk});
      },
      true);
  damaged("a shorter chunk", [&] {
    find_chunk();
    server.ask({"SET", chunk, "x"});
  });
  damaged("a longer chunk", [&] {
    find_chunk();
    server.ask({"APPEND", chunk, "x"});
  });
  damaged("a chunk with a flipped bit", [&] {
    find_chunk();
    const std::string byte = server.ask({"GETRANGE", chunk, "9", "9"}).text;
    server.ask({"SETRANGE", chunk, "9", std::string(1, static_cast<char>(byte[0] ^ 128))});
  });
  damaged("a chunk that is a list", [&] {
    find_chunk();
    server.ask({"DEL", chunk});
    server.ask({"RPUSH", chunk, "x"});
  });
  damaged("the value of another sample", [&] {
    ASSERT_TRUE(put(*cache, key_of(2), bytes_of(2, 100)));
    server.ask({"RENAME", name_of("cutwater", key_of(2)), name});
  });
}

TEST_F(RedisCacheTest, AnEvictingServerForgetsAndNeverLies) {
  TestServer server({"--maxmemory-policy", "allkeys-lru"});
  server.set_room(1 << 20);
  const auto cache = redis_cache(server.url("?chunk=4KiB"));
  int kept = 0, found = 0;
  for (SampleId id = 0; id < 400; ++id) kept += put(*cache, key_of(id), bytes_of(id, 10'000));
  EXPECT_GT(kept, 300);
  for (SampleId id = 0; id < 400; ++id) {
    const CacheValue value = cache->get(key_of(id));
    if (!value) continue;
    ++found;
    EXPECT_TRUE(std::ranges::equal(value.bytes(), bytes_of(id, 10'000)));
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 200);
  EXPECT_GT(cache->stats().evicted, 100);
  EXPECT_EQ(cache->stats().damaged, 0);
  EXPECT_FALSE(cache->has_room(key_of(9), std::size_t{64} << 20, 1));
}

TEST_F(RedisCacheTest, AReplicaRefusesUntilItIsAMasterAgain) {
  TestServer server;
  const auto cache = redis_cache(server.url());
  ASSERT_TRUE(put(*cache, key_of(1), bytes_of(1, 100)));
  server.ask({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_FALSE(put(*cache, key_of(2), bytes_of(2, 100)));
  EXPECT_FALSE(cache->has_room(key_of(9), 100, 1));
  EXPECT_THAT(cache->trouble(), HasSubstr("READONLY"));
  EXPECT_TRUE(has(*cache, key_of(1), bytes_of(1, 100)));
  server.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(comes_true([&] { return put(*cache, key_of(3), bytes_of(3, 100)); }));
  EXPECT_EQ(cache->trouble(), "");
}

}  // namespace
}  // namespace cutwater::redis
