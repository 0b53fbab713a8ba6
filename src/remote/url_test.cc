// SPDX-License-Identifier: Apache-2.0
#include "remote/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/error.h"

namespace cutwater::remote {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(RemoteUrl, NamesServersAndADataSet) {
  const Url one = parse_url("grpc://storage:7071/imagenet");
  EXPECT_FALSE(one.tls);
  EXPECT_THAT(one.servers, ElementsAre("storage:7071"));
  EXPECT_EQ(one.name, "imagenet");

  const Url several = parse_url("grpcs://a,b:1,[::1]:65535,[fe80::2]/x/y");
  EXPECT_TRUE(several.tls);
  EXPECT_THAT(several.servers, ElementsAre("a:7070", "b:1", "[::1]:65535", "[fe80::2]:7070"));
  EXPECT_EQ(several.name, "x/y") << "a name is no path: what it means is the server's matter";

  EXPECT_EQ(parse_url("grpc://a").name, "");
  EXPECT_EQ(parse_url("grpc://a/").name, "");
}

TEST(RemoteUrl, NamesParts) {
  const std::vector<Url> parts = parse_parts("grpc://a,b/x+y+grpcs://c:1/+grpc://d/z+");
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].text(), "grpc://a:7070,b:7070/x+y") << "a name may have a plus";
  EXPECT_EQ(parts[1].text(), "grpcs://c:1/");
  EXPECT_EQ(parts[2].text(), "grpc://d:7070/z+");
  EXPECT_EQ(parse_parts("grpc://a/x").size(), 1u);
  EXPECT_THAT([] { parse_parts("grpc://a/x+grpc://"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("parts as"), HasSubstr("got 'grpc://'"))));
}

TEST(RemoteUrl, IsTheSameWhenReadAgain) {
  for (const char* const text : {"grpc://a:1/", "grpcs://a:1,b:2/data", "grpc://[::1]:7070/../x"})
    EXPECT_EQ(parse_url(text).text(), text);
}

TEST(RemoteUrl, IsToldFromPaths) {
  EXPECT_TRUE(is_url("grpc://a"));
  EXPECT_TRUE(is_url("grpcs://a"));
  for (const char* const text : {"", "grpc", "grpc:/a", "http://a", "/grpc://a", "GRPC://a"})
    EXPECT_FALSE(is_url(text)) << text;
}

TEST(RemoteUrl, RefusesTheRestAndShowsHowItLooks) {
  for (const std::string text :
       {"", "a:1/x", "grpc://", "grpc:///x", "grpc://a,/x", "grpc://,a", "grpc://a:0",
        "grpc://a:", "grpc://a:65536", "grpc://a:-1", "grpc://a:7x", "grpc://:7070", "grpc://u@a",
        "grpc://a b", "grpc://a?x", "grpc://a:1,a:1/x", "grpc://a,a:7070"})
    EXPECT_THAT([&] { parse_url(text); },
                ThrowsMessage<Error>(
                    AllOf(HasSubstr("grpc://HOST:PORT/NAME"), HasSubstr("got '" + text + "'"))))
        << text;
}

}  // namespace
}  // namespace cutwater::remote
