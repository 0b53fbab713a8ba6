// SPDX-License-Identifier: Apache-2.0
// What a server refuses, and whom it does not wait for.
#include "serve/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <functional>

#include "core/test_ops.h"
#include "run/test_source.h"
#include "serve/test_server.h"

namespace cutwater::serve {
namespace {

using grpc::StatusCode;
using test::MemorySource;
using test::RawCall;
using test::RunningServer;
using test::status_after;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
namespace pb = wire::pb;

MATCHER_P2(Says, code, part, "") {
  *result_listener << arg.error_code() << ": " << arg.error_message();
  return arg.error_code() == code && arg.error_message().find(part) != std::string::npos;
}

TEST(ServerAddress, IsAHostAndAPort) {
  const Address v4 = parse_address("127.0.0.1:7070");
  EXPECT_EQ(v4.host, "127.0.0.1");
  EXPECT_EQ(v4.port, 7070);
  EXPECT_EQ(parse_address("[::1]:0").host, "::1");
  for (const std::string text :
       {"", "7070", "host", "host:", "host:x", "host:65536", "host:-1", ":7070", "[]:1", "host:1x"})
    EXPECT_THAT([&] { parse_address(text); },
                ThrowsMessage<Error>(HasSubstr("got '" + text + "'")));
}

TEST(ServerAddress, KnowsThisMachine) {
  for (const char* const text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"})
    EXPECT_TRUE(parse_address(text).loopback) << text;
  for (const char* const text :
       {"0.0.0.0:1", "128.0.0.1:1", "[::]:1", "[::ffff:10.0.0.1]:1", "127.0.0.1.example:1",
        "localhost.example:1", "10.0.0.1:1", "127.1:1", "storage:1"})
    EXPECT_FALSE(parse_address(text).loopback) << text;
}

TEST(ServerStart, APublicAddressNeedsTlsAndAToken) {
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  options.listen = "0.0.0.0:0";
  const auto refused = ThrowsMessage<Error>(
      AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("--tls-cert"), HasSubstr("--token-file")));
  EXPECT_THAT([&] { Server(options, all_ops()); }, refused);
  options.service.token = "0123456789abcdef";
  EXPECT_THAT([&] { Server(options, all_ops()); }, refused) << "the token could be read on its way";
  options.service.token.clear();
  options.tls_cert = options.tls_key = "something";
  EXPECT_THAT([&] { Server(options, all_ops()); }, refused) << "anybody could ask";
  options.listen = "127.0.0.1:0";
  options.tls_key.clear();
  EXPECT_THAT([&] { Server(options, all_ops()); }, ThrowsMessage<Error>(HasSubstr("go together")));
  options.tls_cert.clear();
  options.data.clear();
  EXPECT_THAT([&] { Server(options, all_ops()); },
              ThrowsMessage<Error>(HasSubstr("nothing to serve")));
}

TEST(ServerStart, SaysThatAPortIsTaken) {
  const RunningServer first(std::make_shared<MemorySource>(3));
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  options.listen = first.address();
  EXPECT_THAT([&] { Server(options, all_ops()); },
              ThrowsMessage<Error>(HasSubstr(first.address())));
}

// A socket; -1: nobody listens there.
int connected_to(const char* host, int port) {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
  if (::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
    return connection;
  ::close(connection);
  return -1;
}

bool listens(const char* host, int port) {
  const int connection = connected_to(host, port);
  if (connection >= 0) ::close(connection);
  return connection >= 0;
}

// They ask for no token: other addresses than this machine's own must be named.
TEST(ServerMetrics, AreForThisMachineUnlessAHostIsNamed) {
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  options.listen = "127.0.0.2:0";
  EXPECT_FALSE(RunningServer(options)->metrics_port());
  options.metrics = "0";
  {
    RunningServer server(options);
    EXPECT_TRUE(listens("127.0.0.1", *server->metrics_port()));
    EXPECT_FALSE(listens("127.0.0.2", *server->metrics_port()));
  }
  options.metrics = "127.0.0.3:0";
  RunningServer server(options);
  EXPECT_TRUE(listens("127.0.0.3", *server->metrics_port()));
  EXPECT_FALSE(listens("127.0.0.1", *server->metrics_port()));
}

TEST(ServerMetrics, RefuseWhatIsNoPlace) {
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  for (const char* const text : {"x", "65536", "-1", ":9090", "host:", "host:x"}) {
    options.metrics = text;
    EXPECT_THAT([&] { Server(options, all_ops()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("--metrics must"), HasSubstr(text))));
  }
}

class ServerRequests : public testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 10;

  pb::FetchRequest good() const {
    const Pipeline pipeline = Pipeline::parse("pixels(4, 4) | jitter", test::test_table());
    pb::FetchRequest request;
    pb::Begin& begin = *request.mutable_begin();
    begin.set_name("data");
    begin.set_version(wire::kVersion);
    begin.set_identity(source_->identity());
    begin.set_pipeline(pipeline.to_string());
    begin.set_fingerprint(pipeline.fingerprint());
    begin.add_ways();
    begin.add_ways()->set_cut(1);
    request.add_wanted()->set_id(3);
    return request;
  }
  pb::ReadRequest good_read() const {
    pb::ReadRequest request;
    request.set_identity(source_->identity());
    request.set_version(wire::kVersion);
    return request;
  }
  grpc::Status after(const google::protobuf::MessageLite& request,
                     const char* method = wire::kFetch) const {
    return status_after(server_.address(), wire::bytes_of(request), method);
  }
  // The good one, but for this.
  template <class Change>
  grpc::Status changed(Change change) const {
    pb::FetchRequest request = good();
    change(request);
    return after(request);
  }
  bool still_serves() const {
    RawCall call(server_.address());
    call.write(good());
    const auto reply = call.reply();
    return reply && !reply->reply.has_failure();
  }

  const std::shared_ptr<const Source> source_ = std::make_shared<MemorySource>(kSamples);
  RunningServer server_{RunningServer::serving(source_), test::test_table()};
};

TEST_F(ServerRequests, TheGoodOneIsAnswered) {
  RawCall call(server_.address());
  ASSERT_TRUE(call.write(good()));
  call.no_more();
  const auto reply = call.reply();
  ASSERT_TRUE(reply);
  EXPECT_FALSE(reply->reply.has_failure());
  EXPECT_FALSE(call.reply());
  EXPECT_TRUE(call.finish().ok());
}

TEST_F(ServerRequests, RefusesOtherStreamsInWords) {
  const auto invalid = [](const char* part) { return Says(StatusCode::INVALID_ARGUMENT, part); };
  EXPECT_THAT(changed([](auto& r) { r.clear_begin(); }), invalid("which stream of samples"));
  EXPECT_THAT(changed([](auto& r) { r.mutable_begin()->set_identity("of before"); }),
              Says(StatusCode::FAILED_PRECONDITION, "open it again"));
  EXPECT_THAT(changed([](auto& r) { r.mutable_begin()->set_fingerprint("other"); }),
              invalid("install the same version of cutwater on both machines"));
  EXPECT_THAT(changed([](auto& r) { r.mutable_begin()->set_pipeline("sharpen(3)"); }),
              invalid("install the same version of cutwater on both machines"));
  EXPECT_THAT(changed([](auto& r) { r.mutable_begin()->set_pipeline(std::string(70'000, ' ')); }),
              invalid("more than a server reads"));
  for (const char* const name : {"../x", "..", "/etc", "other", "data/", "data/../data"})
    EXPECT_THAT(changed([&](auto& r) { r.mutable_begin()->set_name(name); }),
                Says(StatusCode::NOT_FOUND, "it has 'data'"))
        << name;
  EXPECT_TRUE(still_serves());
}

TEST_F(ServerRequests, RefusesWhoSpeaksAnotherVersion) {
  const auto refused =
      Says(StatusCode::INVALID_ARGUMENT,
           "speaks version '" + std::string(wire::kVersion) + "' of the protocol, the trainer '");
  for (const char* const version : {"", "1", "4.1"}) {
    EXPECT_THAT(changed([&](auto& r) { r.mutable_begin()->set_version(version); }), refused);
    pb::ReadRequest read = good_read();
    read.set_version(version);
    EXPECT_THAT(after(read, wire::kRead), refused);
  }
  EXPECT_TRUE(after(good_read(), wire::kRead).ok());
}

TEST_F(ServerRequests, ReadsNothingOfAnotherDataSet) {
  pb::ReadRequest read = good_read();
  read.set_identity("of before");
  EXPECT_THAT(after(read, wire::kRead), Says(StatusCode::FAILED_PRECONDITION, "open it again"));
}

TEST_F(ServerRequests, RefusesWaysThatThereAreNot) {
  const auto invalid = [](const char* part) { return Says(StatusCode::INVALID_ARGUMENT, part); };
  const auto ways = [](pb::FetchRequest& r) { return r.mutable_begin()->mutable_ways(); };
  EXPECT_THAT(changed([&](auto& r) { ways(r)->Clear(); }), invalid("between 1 and 64 ways"));
  EXPECT_THAT(changed([&](auto& r) {
                for (int i = 0; i < 64; ++i) r.mutable_begin()->add_ways();
              }),
              invalid("between 1 and 64 ways"));
  for (const int cut : {-1, 3, 1 << 30})
    EXPECT_THAT(changed([&](auto& r) { ways(r)->at(1).set_cut(cut); }), invalid("there is no cut"))
        << cut;
  EXPECT_THAT(changed([&](auto& r) { ways(r)->at(0).set_cut(1); }), invalid("as it is stored"));
  EXPECT_THAT(changed([&](auto& r) { ways(r)->at(0).set_codec("lz4"); }),
              invalid("as it is stored"));
  EXPECT_THAT(changed([&](auto& r) { ways(r)->at(1).set_codec("zip"); }), invalid("zip"));
  EXPECT_THAT(changed([&](auto& r) { ways(r)->at(1).set_excerpt(true); }), invalid("excerpts"));
  EXPECT_THAT(changed([&](auto& r) {
                ways(r)->RemoveLast();
                r.mutable_begin()->set_always(true);
              }),
              invalid("besides 'as stored'"));
  EXPECT_TRUE(still_serves());
}

TEST_F(ServerRequests, RefusesSamplesThatThereAreNot) {
  for (const std::int64_t id : {std::int64_t{-1}, kSamples, INT64_MAX, INT64_MIN}) {
    EXPECT_THAT(changed([&](auto& r) { r.mutable_wanted(0)->set_id(id); }),
                Says(StatusCode::INVALID_ARGUMENT, "there is no sample " + std::to_string(id)));
    pb::ReadRequest read = good_read();
    read.set_id(id);
    EXPECT_THAT(after(read, wire::kRead), Says(StatusCode::INVALID_ARGUMENT, "there is no sample"));
  }
  EXPECT_THAT(changed([](auto& r) {
                for (int i = 0; i < wire::kMostWanted; ++i) r.add_wanted();
              }),
              Says(StatusCode::INVALID_ARGUMENT, "1024 samples at most, this one has 1025"));
  pb::ListRequest list;
  list.set_first(-1);
  list.set_count(5);
  EXPECT_THAT(after(list, wire::kList), Says(StatusCode::INVALID_ARGUMENT, "got -1"));
  list.set_first(INT64_MAX);
  list.set_count(INT64_MAX);
  EXPECT_TRUE(after(list, wire::kList).ok());
  EXPECT_TRUE(still_serves());
}

TEST_F(ServerRequests, APriceThatIsNoNumberIsNone) {
  for (const float price : {NAN, -1.0F, INFINITY, 1e30F})
    EXPECT_TRUE([&] {
      pb::FetchRequest request = good();
      request.mutable_wanted(0)->set_price(price);
      RawCall call(server_.address());
      call.write(request);
      return call.reply().has_value();
    }()) << price;
}

TEST_F(ServerRequests, BytesThatAreNoMessageEndTheCallAlone) {
  std::mt19937 random(5);
  for (const char* const method : {wire::kFetch, wire::kRead, wire::kList, wire::kDescribe})
    for (int round = 0; round < 30; ++round) {
      std::string bytes(random() % 200, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      const grpc::Slice slice(bytes);
      EXPECT_THAT(status_after(server_.address(), {&slice, 1}, method),
                  Says(StatusCode::UNAVAILABLE, "damaged on its way"));
    }
  const grpc::Slice large(std::string(wire::kMostRequestBytes + 1, 'x'));
  EXPECT_EQ(status_after(server_.address(), {&large, 1}).error_code(),
            StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(after(good(), "/cutwater.v1.Storage/Delete"),
              Says(StatusCode::UNIMPLEMENTED, "no method"));
  EXPECT_TRUE(still_serves());
}

TEST_F(ServerRequests, ALaterBeginIsAnotherStream) {
  RawCall call(server_.address());
  call.write(good());
  ASSERT_TRUE(call.reply());
  pb::FetchRequest more;
  more.add_wanted()->set_token(7);
  call.write(more);
  const auto second = call.reply();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->reply.token(), 7u);
  pb::FetchRequest other = good();
  other.mutable_begin()->set_name("x");
  call.write(other);
  EXPECT_FALSE(call.reply());
  EXPECT_THAT(call.finish(), Says(StatusCode::NOT_FOUND, "'x'"));
}

// An answer may be taken before the server has done with the request.
TEST_F(ServerRequests, OneAtATimeGoesOnForEver) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.service.in_flight = 1;
  const RunningServer server(options, test::test_table());
  RawCall call(server.address());
  pb::FetchRequest request = good();
  for (std::uint64_t token = 0; token < 3000; ++token) {
    request.mutable_wanted(0)->set_token(token);
    ASSERT_TRUE(call.write(request));
    const auto reply = call.reply();
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->reply.token(), token);
    request.clear_begin();
  }
}

TEST_F(ServerRequests, AStableFormIsMadeOnceAndThenComesFromTheCache) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.workshop.maker.cache = memory_cache(std::size_t{16} << 20);
  RunningServer server(options, test::test_table());
  for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
    RawCall call(server.address());
    pb::FetchRequest request = good();
    request.mutable_begin()->set_always(true);
    request.clear_wanted();
    for (std::int64_t id = 0; id < kSamples; ++id) {
      request.add_wanted()->set_id(id);
      request.mutable_wanted()->rbegin()->set_epoch(epoch);
    }
    ASSERT_TRUE(call.write(request));
    for (std::int64_t id = 0; id < kSamples; ++id) {
      const auto reply = call.reply();
      ASSERT_TRUE(reply);
      EXPECT_EQ(reply->reply.way(), 1u);
    }
    const WorkshopStats stats = server->stats();
    EXPECT_EQ(stats.cache_misses, kSamples);
    EXPECT_EQ(stats.cache_hits, epoch * kSamples);
    EXPECT_GT(stats.cache_bytes, 0u);
  }
}

TEST_F(ServerRequests, TakesSoManyStreamsAndThenRefusesInWords) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.service.clients = 2;
  RunningServer server(options, test::test_table());
  const auto opened = [&] {
    auto call = std::make_unique<RawCall>(server.address());
    call->write(good());
    return call;
  };
  auto first = opened(), second = opened();
  ASSERT_TRUE(first->reply());
  ASSERT_TRUE(second->reply());
  const auto third = opened();
  EXPECT_FALSE(third->reply());
  EXPECT_THAT(third->finish(), Says(StatusCode::RESOURCE_EXHAUSTED, "--clients 2"));
  pb::DescribeRequest describe;
  EXPECT_TRUE(status_after(server.address(), wire::bytes_of(describe), wire::kDescribe).ok());
  first->no_more();
  EXPECT_FALSE(first->reply());
  EXPECT_TRUE(first->finish().ok());
  while (server->stats().clients > 1) std::this_thread::yield();  // it has left
  for (bool served = false; !served;) served = opened()->reply().has_value();
}

// Who opens calls and says nothing keeps others from asking, not from training.
TEST_F(ServerRequests, AnswersSoManyQuestionsAtOnceAndThenRefusesInWords) {
  ServerOptions options = RunningServer::serving(source_);
  options.service.begin_within_s = 600;
  const RunningServer server(options, test::test_table());
  const auto ask = [&] {
    return status_after(server.address(), wire::bytes_of(pb::DescribeRequest()), wire::kDescribe);
  };
  std::deque<RawCall> silent;
  for (int i = 0; i < 64; ++i) silent.emplace_back(server.address(), wire::kList);
  grpc::Status refused = ask();
  while (refused.ok()) refused = ask();  // until all of them have come
  EXPECT_THAT(refused, Says(StatusCode::RESOURCE_EXHAUSTED, "as many questions"));
  RawCall call(server.address());
  call.write(good());
  EXPECT_TRUE(call.reply());
  silent.clear();
  while (!ask().ok()) std::this_thread::yield();  // until they have left
}

// Each holds a sample until it is taken.
TEST_F(ServerRequests, ReadsSoManySamplesAtOnceAndThenRefusesInWords) {
  const auto source = std::make_shared<test::FaultySource>(source_);
  serve::ServerOptions options = RunningServer::serving(source);
  options.service.clients = 1;
  RunningServer server(options, test::test_table());
  const auto read = [&] {
    return status_after(server.address(), wire::bytes_of(good_read()), wire::kRead);
  };
  RawCall first(server.address(), wire::kRead);
  {
    const test::FaultySource::Hold hold(*source, {0});
    first.write(good_read());
    source->wait_for_reads(1);
    EXPECT_THAT(read(), Says(StatusCode::RESOURCE_EXHAUSTED, "--clients 1); ask again"));
  }
  EXPECT_TRUE(first.read());
  EXPECT_TRUE(first.finish().ok());
  while (!read().ok()) std::this_thread::yield();  // until the first has left
}

TEST_F(ServerRequests, HealthIsTold) {
  RawCall call(server_.address(), "/grpc.health.v1.Health/Check");
  const grpc::Slice empty;
  call.write(grpc::ByteBuffer(&empty, 1));
  const auto answer = call.read();
  ASSERT_TRUE(answer);
  grpc::Slice slice;
  ASSERT_TRUE(answer->DumpToSingleSlice(&slice).ok());
  EXPECT_EQ(std::string(slice.begin(), slice.end()), "\x08\x01") << "status: SERVING";
}

TEST(ServerToken, IsWantedForEverything) {
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  options.service.token = "0123456789abcdef";
  const RunningServer server(options);
  pb::DescribeRequest request;
  const auto status = [&](const char* method, const std::string& authorization) {
    RawCall call(server.address(), method, authorization);
    call.write(request);
    call.no_more();
    while (call.read()) {
    }
    return call.finish();
  };
  for (const char* const method : {wire::kDescribe, wire::kList, wire::kRead, wire::kFetch, "/any"})
    for (const char* const shown :
         {"", "Bearer", "Bearer ", "Bearer 0123456789abcdee", "Bearer 0123456789abcdef0",
          "bearer 0123456789abcdef", "0123456789abcdef"})
      EXPECT_THAT(status(method, shown), Says(StatusCode::UNAUTHENTICATED, "CUTWATER_TOKEN"))
          << method << " with '" << shown << "'";
  EXPECT_TRUE(status(wire::kDescribe, "Bearer 0123456789abcdef").ok());
}

// Clients that keep a server waiting.
class SlowClients : public testing::Test {
 protected:
  static ServerOptions hurried(ServerOptions options) {
    options.hello_seconds = 1;
    options.service.begin_within_s = 0.5;
    options.service.taken_within_s = 0.5;
    return options;
  }
  static bool serves(const RunningServer& server) {
    pb::DescribeRequest request;
    return status_after(server.address(), wire::bytes_of(request), wire::kDescribe).ok();
  }
};

TEST_F(SlowClients, WhoSaysHalfAWordIsHungUpOn) {
  const RunningServer server(hurried(RunningServer::serving(std::make_shared<MemorySource>(3))));
  for (const std::string_view half :
       {"", "PRI * HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n"}) {
    const int connection = connected_to("127.0.0.1", parse_address(server.address()).port);
    ASSERT_GE(connection, 0);
    ASSERT_EQ(::send(connection, half.data(), half.size(), 0), static_cast<ssize_t>(half.size()));
    EXPECT_TRUE(serves(server)) << "while it waits";
    char answer[512];
    ssize_t got = 0;
    while ((got = ::recv(connection, answer, sizeof answer, 0)) > 0) {
    }
    EXPECT_LE(got, 0) << "the connection is closed, with or without a word";
    ::close(connection);
  }
}

// It has shown no token, and need not.
TEST_F(SlowClients, WhoConnectsAndAsksForNothingIsHungUpOn) {
  ServerOptions options = RunningServer::serving(std::make_shared<MemorySource>(3));
  options.idle_seconds = 2;
  const RunningServer server(options);
  const int connection = connected_to("127.0.0.1", parse_address(server.address()).port);
  ASSERT_GE(connection, 0);
  constexpr char kSettings[] = "\0\0\0\4\0\0\0\0\0";
  const std::string hello =
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(kSettings, sizeof kSettings - 1);
  ASSERT_EQ(::send(connection, hello.data(), hello.size(), 0), std::ssize(hello));
  constexpr timeval kPatience{15, 0};  // pings that nobody answers would end it after 30 s
  ASSERT_EQ(::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience), 0);
  std::string said;
  char part[512];
  ssize_t got = 0;
  while ((got = ::recv(connection, part, sizeof part, 0)) > 0)
    said.append(part, static_cast<std::size_t>(got));
  EXPECT_TRUE(got == 0 || errno == ECONNRESET) << "it is still open";
  EXPECT_GE(said.size(), sizeof kSettings - 1) << "it was a connection";
  EXPECT_TRUE(serves(server));
  ::close(connection);
}

TEST_F(SlowClients, WhoOpensAStreamMustBeginIt) {
  const RunningServer server(hurried(RunningServer::serving(std::make_shared<MemorySource>(3))));
  RawCall call(server.address());
  EXPECT_TRUE(serves(server));
  EXPECT_FALSE(call.read());
  EXPECT_THAT(call.finish(), Says(StatusCode::DEADLINE_EXCEEDED, "must begin"));
}

TEST_F(SlowClients, WhoOpensACallMustAskForSomething) {
  const RunningServer server(hurried(RunningServer::serving(std::make_shared<MemorySource>(3))));
  for (const char* method : {wire::kDescribe, wire::kList, wire::kRead}) {
    RawCall call(server.address(), method);
    EXPECT_TRUE(serves(server));
    EXPECT_FALSE(call.read());
    EXPECT_EQ(call.finish().error_code(), StatusCode::CANCELLED) << method;
  }
}

// Whoever takes no answer, whatever else it says: nothing, or that it still wants something, or
// what is no request, on which the call is to end.
TEST_F(SlowClients, WhoTakesNothingIsGone) {
  constexpr std::int64_t kMany = 100;
  const auto source = std::make_shared<MemorySource>(kMany, 1 << 20);
  ServerOptions options = hurried(RunningServer::serving(source));
  options.workshop.client_memory = 4 << 20;
  pb::FetchRequest request;
  request.mutable_begin()->set_version(wire::kVersion);
  request.mutable_begin()->set_identity(source->identity());
  request.mutable_begin()->set_fingerprint(Pipeline(all_ops()).fingerprint());
  request.mutable_begin()->add_ways();
  for (std::int64_t id = 0; id < kMany; ++id) request.add_wanted()->set_id(id);
  const grpc::ByteBuffer nothing = wire::bytes_of(pb::FetchRequest());
  const grpc::Slice noise("no request");
  const std::vector<std::function<void(RawCall&)>> said = {
      [](RawCall&) {},
      [&](RawCall& call) { call.write(nothing); },
      [&](RawCall& call) { call.write(grpc::ByteBuffer(&noise, 1)); },
  };
  for (std::size_t i = 0; i < said.size(); ++i) {
    RunningServer server(options);
    RawCall call(server.address());
    ASSERT_TRUE(call.write(request));
    EXPECT_TRUE(serves(server));
    while (server->stats().clients > 0) {  // until it is let go of
      said[i](call);
      std::this_thread::yield();
    }
    while (call.read()) {
    }
    EXPECT_FALSE(call.finish().ok()) << i;
    EXPECT_LT(server->stats().answers, kMany) << i << ": what nobody takes is not made";
  }
}

TEST_F(SlowClients, WhoAsksForNothingIsNoClient) {
  RunningServer server(RunningServer::serving(std::make_shared<MemorySource>(3)));
  const RawCall read(server.address(), wire::kRead);
  EXPECT_TRUE(serves(server));
  EXPECT_EQ(server->stats().clients, 0);
}

}  // namespace
}  // namespace cutwater::serve
