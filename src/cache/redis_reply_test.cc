// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_reply.h"

#include <gtest/gtest.h>

#include "cache/redis_slots.h"
#include "cutwater/error.h"

namespace cutwater::redis {
namespace {

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(RedisReply, ReadsListsHoweverTheyCome) {
  const std::string text = "*3\r\n:7\r\n*2\r\n$3\r\na\r\n\r\n$-1\r\n+OK\r\n-ERR no\r\n";
  for (std::size_t part = 1; part <= text.size(); ++part) {
    ReplyReader reader;
    std::vector<Reply> replies;
    for (std::size_t at = 0; at < text.size(); at += part) {
      reader.feed(bytes_of(text.substr(at, part)));
      while (auto reply = reader.next()) replies.push_back(*reply);
    }
    ASSERT_EQ(replies.size(), 2u);
    ASSERT_TRUE(replies[0].is_list(3));
    EXPECT_EQ(replies[0].parts[0].number, 7);
    ASSERT_TRUE(replies[0].parts[1].is_list(2));
    EXPECT_EQ(replies[0].parts[1].parts[0].text, "a\r\n");
    EXPECT_EQ(replies[0].parts[1].parts[1].type, Reply::Type::kNone);
    EXPECT_TRUE(replies[0].parts[2].is_ok());
    EXPECT_EQ(replies[1].text, "ERR no");
    EXPECT_TRUE(replies[1].is_error());
    EXPECT_TRUE(reader.is_empty());
  }
}

// Announced sizes cost nothing: what is kept follows what has come.
TEST(RedisReply, BoundsWhatIsAnnounced) {
  ReplyReader reader;
  reader.feed(bytes_of("*2147483647\r\n*2147483647\r\n*1000000\r\n:1\r\n"));
  EXPECT_FALSE(reader.next());
  ReplyReader texts;
  texts.feed(bytes_of("$2000000000\r\nab"));
  EXPECT_FALSE(texts.next());
  const std::string much(ReplyReader::kMostBytes, 'x');
  EXPECT_THROW(texts.feed(bytes_of(much)), Error);
}

TEST(RedisReply, RefusesWhatIsNone) {
  for (const char* const text : {"HTTP/1.1 400 Bad Request\r\n\r\n", "*x\r\n", "$-7\r\n",
                                 "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"}) {
    ReplyReader reader;
    reader.feed(bytes_of(text));
    EXPECT_THROW((void)reader.next(), Error) << text;
  }
}

TEST(RedisSlots, AreThoseOfRedis) {
  EXPECT_EQ(slot_of("123456789"), 0x31c3 % kSlots);  // the check value of CRC-16/XMODEM
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("bar"), 5061);
  EXPECT_EQ(slot_of(""), 0);
}

TEST(RedisSlots, ReadsRedirections) {
  const Endpoint asked{"10.0.0.1", 7000, ""};
  const auto moved = redirect_in("MOVED 3999 127.0.0.1:6381", asked);
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->is_ask);
  EXPECT_EQ(moved->to, (Endpoint{"127.0.0.1", 6381, ""}));
  const auto ask = redirect_in("ASK 1 :7001", asked);
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->is_ask);
  EXPECT_EQ(ask->to, (Endpoint{"10.0.0.1", 7001, ""}));
  for (const char* const text : {"", "MOVED", "MOVED 1 host", "MOVED 1 h:99999", "ERR ASK 1 h:1"})
    EXPECT_FALSE(redirect_in(text, asked)) << text;
}

Reply list(std::vector<Reply> parts) { return {Reply::Type::kList, "", 0, std::move(parts)}; }
Reply number(std::int64_t value) { return {Reply::Type::kNumber, "", value, {}}; }
Reply text(std::string value) { return {Reply::Type::kText, std::move(value), 0, {}}; }

TEST(RedisSlots, ReadsTheMap) {
  const Endpoint asked{"here", 7000, ""};
  const auto ranges =
      slots_in(list({list({number(0), number(99), list({text("a"), number(1)}), list({})}),
                     list({number(100), number(16383), list({text(""), number(2)})})}),
               asked);
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[0].last, 99);
  EXPECT_EQ((*ranges)[0].master, (Endpoint{"a", 1, ""}));
  EXPECT_EQ((*ranges)[1].master, (Endpoint{"here", 2, ""}));
  for (const Reply& wrong :
       {Reply{}, text("x"), list({number(1)}), list({list({number(1), number(2)})}),
        list({list({number(5), number(4), list({text("a"), number(1)})})}),
        list({list({number(0), number(16384), list({text("a"), number(1)})})}),
        list({list({number(-1), number(4), list({text("a"), number(1)})})}),
        list({list({number(0), number(4), list({text("a"), number(0)})})})})
    EXPECT_FALSE(slots_in(wrong, asked));
}

}  // namespace
}  // namespace cutwater::redis
