// SPDX-License-Identifier: Apache-2.0
// What the daemon makes of what clients say: right, wrong, and nonsense.
#include "cache/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <limits>
#include <random>

#include "cache/connection.h"
#include "cache/test_daemon.h"
#include "cutwater/error.h"

namespace cutwater::cache {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class SessionTest : public testing::Test {
 protected:
  Desk desk_{Segment::shared(kMiB)};
  Session session_{desk_, Peer{1, 1000}};

  template <class Reply, class Question>
  Reply ask(Session& session, const Question& question) {
    const auto reply = wire::read<Reply>(session.answer(wire::bytes_of(question)).bytes);
    EXPECT_TRUE(reply);
    return reply.value_or(Reply{});
  }
  void greet(Session& session, std::uint32_t wants_memory = 1) {
    wire::Hello hello;
    hello.wants_memory = wants_memory;
    EXPECT_EQ(ask<wire::HelloReply>(session, hello).status, wire::Status::kDone);
  }
  template <class Question>
  void expect_refused(const Question& question, const char* why) {
    EXPECT_THAT([&] { session_.answer(wire::bytes_of(question)); },
                ThrowsMessage<Error>(HasSubstr(why)));
  }
  static wire::Reserve reserve_of(SampleId sample, std::uint64_t size) {
    wire::Reserve question;
    question.key = {1, 2, sample, 0};
    question.size = size;
    question.seconds = 1;
    return question;
  }
};

TEST_F(SessionTest, NothingComesBeforeHello) {
  expect_refused(wire::Stat{}, "no hello");
  expect_refused(reserve_of(1, 10), "no hello");
  greet(session_);
  wire::Hello again;
  expect_refused(again, "a second hello");
}

TEST_F(SessionTest, AnotherVersionIsToldOurs) {
  wire::Hello hello;
  hello.head.version = 77;
  const Session::Reply reply = session_.answer(wire::bytes_of(hello));
  EXPECT_TRUE(reply.last);
  const auto read = wire::read<wire::HelloReply>(reply.bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->status, wire::Status::kOtherVersion);
  EXPECT_EQ(read->head.version, wire::kVersion);
}

TEST_F(SessionTest, PacketsOfAnotherSizeAreNonsense) {
  greet(session_);
  const wire::Reserve question = reserve_of(1, 10);
  std::vector<std::uint8_t> bytes(wire::bytes_of(question).begin(), wire::bytes_of(question).end());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(session_.answer(std::span(bytes).first(size)), Error) << size;
  bytes.push_back(0);
  EXPECT_THROW(session_.answer(bytes), Error);
}

TEST_F(SessionTest, ValuesThatCannotBeAreNonsense) {
  greet(session_);
  wire::Reserve reserve = reserve_of(1, 10);
  for (const double seconds :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    reserve.seconds = seconds;
    expect_refused(reserve, "a value that saves");
  }
  wire::Join join;
  join.forms_count = 33;
  expect_refused(join, "33 forms");
  join.forms_count = 1;
  join.samples = -5;
  expect_refused(join, "-5 samples");
  wire::Commit commit;
  commit.token = 99;
  expect_refused(commit, "has not reserved");
  wire::Abort abort;
  abort.token = 99;
  expect_refused(abort, "has not reserved");
  wire::Leave leave;
  for (const std::uint32_t seat : {0U, 7U, 0xffffffffU}) {
    leave.seat = seat;
    expect_refused(leave, "does not have the seat");
  }
  wire::List list;
  list.what = static_cast<wire::Listed>(3);
  expect_refused(list, "a list of kind 3");
  wire::Clear clear;
  clear.by_form = 2;
  expect_refused(clear, "a flag of 2");
  wire::Stat unknown;
  unknown.head.kind = static_cast<wire::Kind>(11);
  expect_refused(unknown, "kind 11");
  unknown.head.kind = wire::Kind::kStat;
  unknown.head.version = 2;
  expect_refused(unknown, "kind 8");
}

TEST_F(SessionTest, WithoutTheMemoryThereAreOnlyQuestions) {
  greet(session_, 0);
  expect_refused(reserve_of(1, 10), "have the memory");
  expect_refused(wire::Join{}, "have the memory");
  expect_refused(wire::Drop{}, "have the memory");
  EXPECT_EQ(ask<wire::StatReply>(session_, wire::Stat{}).limit, kMiB);
  EXPECT_EQ(ask<wire::StatReply>(session_, wire::Stat{}).clients, 0u);
}

TEST_F(SessionTest, OneClientCannotCommitWhatAnotherReserved) {
  greet(session_);
  Session other(desk_, Peer{2, 1000});
  greet(other);
  wire::Commit commit;
  commit.token = ask<wire::ReserveReply>(other, reserve_of(1, 100)).token;
  expect_refused(commit, "has not reserved");
}

TEST_F(SessionTest, TooManyClientsAreRefusedAndServedWhenOthersHaveGone) {
  std::vector<std::unique_ptr<Session>> sessions;
  wire::Hello hello;
  hello.wants_memory = 1;
  while (true) {
    sessions.push_back(std::make_unique<Session>(desk_, Peer{3, 1000}));
    if (ask<wire::HelloReply>(*sessions.back(), hello).status == wire::Status::kRefused) break;
    ASSERT_LE(sessions.size(), 1000u);
  }
  sessions.erase(sessions.begin());
  greet(session_);
}

TEST_F(SessionTest, AClientThatGoesGivesBackWhatItHeld) {
  const std::size_t before = desk_.keeper.stats().bytes;
  {
    Session other(desk_, Peer{2, 1000});
    greet(other);
    EXPECT_EQ(ask<wire::ReserveReply>(other, reserve_of(1, 100'000)).status, wire::Status::kDone);
    wire::Join join;
    join.samples = 1000;
    EXPECT_EQ(ask<wire::JoinReply>(other, join).status, wire::Status::kDone);
    EXPECT_GT(desk_.keeper.stats().bytes, before + 100'000);
  }
  EXPECT_EQ(desk_.keeper.stats().bytes, before);
  EXPECT_TRUE(desk_.keeper.jobs().empty());
}

// As a client without the memory asks for them.
std::vector<wire::Row> listed(Session& session, wire::Listed what) {
  std::vector<wire::Row> rows;
  wire::List question;
  question.what = what;
  question.from_start = 1;
  while (true) {
    const auto reply = wire::read<wire::ListReply>(session.answer(wire::bytes_of(question)).bytes);
    rows.insert(rows.end(), reply->rows.begin(), reply->rows.begin() + reply->count);
    if (reply->more == 0) return rows;
    question.from_start = 0;
    question.a = rows.back().a;
    question.b = rows.back().b;
  }
}

TEST_F(SessionTest, ListsComeInPagesAndWhole) {
  greet(session_);
  std::mt19937_64 random(3);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> entries;
  for (SampleId sample = 0; sample < 150; ++sample) {
    wire::Reserve question = reserve_of(sample, 8);
    question.key.data = random() % 10;
    question.key.form = random() % 10;
    wire::Commit commit;
    commit.token = ask<wire::ReserveReply>(session_, question).token;
    ask<wire::CommitReply>(session_, commit);
    ++entries[{question.key.data, question.key.form}];
  }
  ASSERT_GT(entries.size(), 2 * wire::kMostRows);
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::int64_t> found;
  for (const wire::Row& row : listed(session_, wire::Listed::kForms))
    EXPECT_TRUE(found.emplace(std::pair{row.a, row.b}, row.entries).second);
  EXPECT_EQ(found, entries);
}

TEST_F(SessionTest, UsersHaveQuotas) {
  desk_.keeper.set_quota(1000, 50'000);
  greet(session_);
  Session other(desk_, Peer{2, 1001});
  greet(other);
  const auto put = [&](Session& session, SampleId sample) {
    const auto place = ask<wire::ReserveReply>(session, reserve_of(sample, 20'000));
    if (place.status != wire::Status::kDone) return false;
    wire::Commit commit;
    commit.token = place.token;
    ask<wire::CommitReply>(session, commit);
    return true;
  };
  EXPECT_TRUE(put(session_, 1));
  EXPECT_TRUE(put(session_, 2));
  EXPECT_FALSE(put(session_, 3));
  for (SampleId sample = 10; sample < 14; ++sample) EXPECT_TRUE(put(other, sample));
  const std::vector<wire::Row> users = listed(session_, wire::Listed::kUsers);
  ASSERT_EQ(users.size(), 2u);
  EXPECT_EQ(users[0].a, 1000u);
  EXPECT_EQ(users[0].entries, 2);
  EXPECT_GE(users[0].bytes, 40'000u);
  EXPECT_EQ(users[0].limit, 50'000u);
  EXPECT_EQ(users[1].entries, 4);
  EXPECT_EQ(users[1].limit, 0u);
  wire::Drop drop;
  drop.key = reserve_of(1, 0).key;
  ask<wire::DropReply>(session_, drop);
  EXPECT_TRUE(put(session_, 3)) << "what went makes room for others of the same user";
}

TEST_F(SessionTest, UsersTakeOnlyTheirOwnValuesAway) {
  Session one(desk_, Peer{2, geteuid() + 1}), other(desk_, Peer{3, geteuid() + 2});
  greet(one);
  greet(other);
  const auto put = [&](Session& session, SampleId sample) {
    wire::Commit commit;
    commit.token = ask<wire::ReserveReply>(session, reserve_of(sample, 1000)).token;
    ask<wire::CommitReply>(session, commit);
  };
  const auto left_after_drop = [&](Session& session, SampleId sample) {
    wire::Drop drop;
    drop.key = reserve_of(sample, 0).key;
    ask<wire::DropReply>(session, drop);
    return desk_.keeper.stats().entries;
  };
  for (const SampleId sample : {1, 2}) put(one, sample);
  for (const SampleId sample : {3, 4}) put(other, sample);
  EXPECT_EQ(left_after_drop(one, 3), 4);
  EXPECT_EQ(left_after_drop(one, 1), 3);
  EXPECT_EQ(ask<wire::ClearReply>(one, wire::Clear{}).entries, 1);
  EXPECT_EQ(ask<wire::ClearReply>(one, wire::Clear{}).entries, 0);
  EXPECT_EQ(ask<wire::ClearReply>(other, wire::Clear{}).entries, 2);
  for (const uid_t user : {uid_t{0}, geteuid()}) {
    put(one, 1);
    put(other, 2);
    Session master(desk_, Peer{4, user});
    greet(master);
    EXPECT_EQ(left_after_drop(master, 1), 1) << user;
    EXPECT_EQ(ask<wire::ClearReply>(master, wire::Clear{}).entries, 1) << user;
  }
}

// Over a real socket.
TEST(CacheServer, LivesOnAfterNonsense) {
  const TestFolder folder;
  const TestDaemon daemon(folder.socket(), kMiB);
  for (const std::size_t size : {1, 7, 8, 16, 56, 5000, 20000}) {
    const Descriptor socket = connect_to(folder.socket());
    EXPECT_TRUE(send_packet(socket, std::vector<std::uint8_t>(size, 0x41)));
    ASSERT_TRUE(wait_readable(socket, kAnswerTime));
    std::array<std::uint8_t, 64> room;
    EXPECT_EQ(receive_packet(socket, room).what, Received::What::kGone) << size;
  }
  Connection connection(folder.socket(), false);
  EXPECT_EQ(connection.ask<wire::StatReply>(wire::Stat{}).limit, kMiB);
}

TEST(CacheServer, TheSocketIsTheUsersAlone) {
  const TestFolder folder;
  {
    const TestDaemon daemon(folder.socket(), kMiB);
    struct stat found {};
    ASSERT_EQ(stat(folder.socket().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
    EXPECT_THAT([&] { TestDaemon second(folder.socket(), kMiB); },
                ThrowsMessage<Error>(HasSubstr("by process " + std::to_string(getpid()))));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.socket()));
}

TEST(CacheServer, WhatADeadDaemonLeftIsReplaced) {
  const TestFolder folder;
  daemon_process(folder.socket(), kMiB)->end(SIGKILL);
  EXPECT_TRUE(std::filesystem::exists(folder.socket()));
  const TestDaemon daemon(folder.socket(), kMiB);
  EXPECT_EQ(Connection(folder.socket(), false).hello().limit, kMiB);
}

TEST(CacheServer, RefusesPlacesThatAreNotTheUsers) {
  const TestFolder folder;
  chmod(folder.path().c_str(), 0777);
  const auto serve_at = [](const std::string& path) { TestDaemon daemon(path, kMiB); };
  EXPECT_THAT([&] { serve_at(folder.socket()); },
              ThrowsMessage<Error>(HasSubstr("must belong to you")));
  chmod(folder.path().c_str(), 0700);
  EXPECT_THAT([&] { serve_at(folder.path() + "/none/cache.sock"); },
              ThrowsMessage<Error>(HasSubstr("no folder")));
  EXPECT_THAT([&] { serve_at(folder.path() + "/" + std::string(200, 'x')); },
              ThrowsMessage<Error>(HasSubstr("choose a shorter one")));
  std::filesystem::create_directory(folder.path() + "/there");
  EXPECT_THAT([&] { serve_at(folder.path() + "/there"); },
              ThrowsMessage<Error>(HasSubstr("is no socket")));
}

}  // namespace
}  // namespace cutwater::cache
