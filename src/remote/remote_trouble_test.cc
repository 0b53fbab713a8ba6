// SPDX-License-Identifier: Apache-2.0
// Servers that go, come back, stall or have other data: nothing is lost or repeated, or it is said
// what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "remote/remote_source.h"
#include "remote/test_remote.h"
#include "run/test_source.h"
#include "source/limited.h"

namespace cutwater::remote {
namespace {

using test::by_policy;
using test::epochs;
using test::FaultySource;
using test::photos_of;
using test::RunningServer;
using test::Seen;
using test::seen;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class RemoteTrouble : public testing::Test {
 protected:
  static constexpr int kSamples = 60;

  std::vector<Seen> local() const {
    Loader loader(photos_of(source_), test::with_threads(2));
    return epochs(loader, 1);
  }
  static std::vector<Seen> some(Loader& loader, int batches) {
    std::vector<Seen> all;
    for (int i = 0; i < batches; ++i) all.push_back(seen(*loader.next()));
    return all;
  }
  static std::vector<Seen> with_rest(std::vector<Seen> all, Loader& loader) {
    for (Seen& batch : test::rest_of_epoch(loader)) all.push_back(std::move(batch));
    return all;
  }
  static std::set<SampleId> every_id() {
    const std::vector<SampleId> ids = test::counted_to(kSamples);
    return {ids.begin(), ids.end()};
  }

  const TestFolder folder_;
  const std::shared_ptr<const Source> photos_ = test::photo_folder(folder_, kSamples);
  const std::shared_ptr<FaultySource> source_ = std::make_shared<FaultySource>(photos_);
};

TEST_F(RemoteTrouble, AServerGoesDownAndTheOtherGoesOn) {
  for (const bool abrupt : {false, true}) {
    const RunningServer stays(source_);
    serve::ServerOptions options = RunningServer::serving(source_);
    RunningServer goes(abrupt ? RunningServer::abrupt(options) : options);
    Loader loader(
        photos_of(open_remote("grpc://" + goes.address() + "," + stays.address() + "/data")),
        by_policy("all-off"));
    loader.begin();
    std::vector<Seen> all = some(loader, 3);
    goes.stop();
    EXPECT_EQ(with_rest(std::move(all), loader), local()) << abrupt;
  }
}

TEST_F(RemoteTrouble, AServerIsStartedAgain) {
  for (const bool abrupt : {false, true})
    for (const char* const policy : {"none", "sophon", "all-off"}) {
      serve::ServerOptions options = RunningServer::serving(source_);
      auto first =
          std::make_unique<RunningServer>(abrupt ? RunningServer::abrupt(options) : options);
      Loader loader(photos_of(open_remote(first->url())), by_policy(policy));
      loader.begin();
      std::vector<Seen> all = some(loader, 2);
      options.listen = first->address();
      first.reset();
      const RunningServer second(options);
      EXPECT_EQ(with_rest(std::move(all), loader), local()) << policy << ", " << abrupt;
    }
}

TEST_F(RemoteTrouble, WhatAServerKeepsIsAskedForElsewhere) {
  const auto slow = std::make_shared<FaultySource>(photos_);
  const RunningServer a(slow), b(source_);
  What what = photos_of(open_remote("grpc://" + a.address() + "," + b.address() + "/data"));
  what.batch_size = 1;
  HowFast how = by_policy("none", 1);
  how.prefetch_batches = 2;
  Loader loader(what, how);
  loader.begin();
  std::vector<Seen> all = some(loader, 50);
  {
    const FaultySource::Hold hold(*slow, every_id());
    all = with_rest(std::move(all), loader);
  }
  what.source = source_;
  Loader files(what, test::with_threads(1));
  EXPECT_EQ(all, epochs(files, 1));
  EXPECT_GE(loader.stats().fetch->hedged, 1);
}

// What comes twice has gone over the link twice, and was made twice.
TEST_F(RemoteTrouble, WhatComesTooLateIsCounted) {
  const auto slow = std::make_shared<FaultySource>(photos_);
  const RunningServer a(slow), b(source_);
  What what = photos_of(open_remote("grpc://" + a.address() + "," + b.address() + "/data"));
  what.batch_size = 1;
  HowFast how = by_policy("all-off", 1);
  how.prefetch_batches = 2;
  Loader loader(what, how);
  loader.begin();
  some(loader, 50);
  {
    const FaultySource::Hold hold(*slow, every_id());
    test::rest_of_epoch(loader);
  }
  const auto counted = [&] {
    const FetchReport report = *loader.stats().fetch;
    std::uint64_t taken = 0;
    double taken_s = 1e-6;  // sums differ by their order, too; no sample is made in so short a time
    for (const FetchReport::Way& way : report.ways) {
      taken += way.bytes;
      taken_s += way.storage_seconds;
    }
    EXPECT_GE(report.wire_bytes, taken);
    return report.wire_bytes > taken && report.storage_seconds > taken_s;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!counted() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT_TRUE(counted());
}

TEST_F(RemoteTrouble, WithoutAServerTheOtherPathIsTaken) {
  auto server =
      std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  RemoteOptions options;
  options.fallback = photos_;
  Loader loader(photos_of(open_remote(server->url(), options)), by_policy("all-off"));
  loader.begin();
  std::vector<Seen> all = some(loader, 2);
  server.reset();
  EXPECT_EQ(with_rest(std::move(all), loader), local());
  EXPECT_GT(loader.stats().fetch->fallbacks, 0);
  EXPECT_EQ(epochs(loader, 1).size(), local().size()) << "and in the next epoch";
}

TEST_F(RemoteTrouble, WithoutAServerAtTheBeginningTheOtherPathSaysWhatThereIs) {
  auto server =
      std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  const std::string url = server->url();
  const auto there = open_remote(url, {});
  server.reset();
  RemoteOptions options;
  options.fallback = photos_;
  const auto gone = open_remote(url, options);
  EXPECT_EQ(gone->size(), there->size());
  EXPECT_EQ(gone->identity(), there->identity());
  EXPECT_EQ(gone->classes(), there->classes());
  EXPECT_EQ(gone->has_labels(), there->has_labels());
  EXPECT_EQ(gone->path(1), photos_->path(1));
  Loader loader(photos_of(gone), by_policy("sophon"));
  EXPECT_EQ(epochs(loader, 1), local());
  EXPECT_GT(loader.stats().fetch->fallbacks, 0);
}

// The link is what bounds the job, by far: whatever a server can spare it, it is asked for.
TEST_F(RemoteTrouble, AServerThatComesLateIsAskedForAsMuchAsOneThatWasThere) {
  serve::ServerOptions serving = RunningServer::serving(source_);
  serving.listen = RunningServer(RunningServer::abrupt(serving)).address();
  RemoteOptions options;
  options.fallback = photos_;
  options.link = std::make_shared<Link>(2e6);
  Loader loader(photos_of(open_remote("grpc://" + serving.listen + "/data", options)),
                by_policy("sophon"));
  EXPECT_EQ(epochs(loader, 1), local());
  EXPECT_EQ(test::samples_in(*loader.stats().fetch), 0);
  const RunningServer late(serving);
  const auto came = [&] { return test::samples_in(*loader.stats().fetch); };
  ASSERT_TRUE(test::epochs_until(loader, [&] { return came() >= 2 * kSamples; }))
      << "so many that it was decided what to ask for";
  const FetchReport before = *loader.stats().fetch;
  EXPECT_GT(before.storage_threads, 0);
  const std::int64_t until = came() + kSamples;
  ASSERT_TRUE(test::epochs_until(loader, [&] { return came() >= until; }));
  const FetchReport after = *loader.stats().fetch;
  EXPECT_LT(after.ways[0].samples - before.ways[0].samples,
            test::samples_in(after) - test::samples_in(before))
      << "not all are sent as stored";
}

TEST_F(RemoteTrouble, PatienceEndsWithWordsAboutEachServer) {
  auto a = std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  auto b = std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  RemoteOptions options;
  options.patience_s = 2;
  const std::string first = a->address(), second = b->address();
  const auto remote = open_remote("grpc://" + first + "," + second + "/data", options);
  Loader loader(photos_of(remote), by_policy("none"));
  loader.begin();
  some(loader, 1);
  a.reset();
  b.reset();
  try {
    test::rest_of_epoch(loader);
    ADD_FAILURE() << "there is nobody to send the rest";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(first), HasSubstr(second), HasSubstr("fallback")));
  }
  const auto pool = BufferPool::create(0);
  EXPECT_THAT(remote->read(0, *pool).failure().reason,
              HasSubstr("is 'cutwater serve' running there?"));
  EXPECT_THAT([&] { open_remote("grpc://" + first + "/data", options); },
              ThrowsMessage<Error>(HasSubstr(first)));
  options.patience_s = 0;
  EXPECT_THAT([&] { open_remote("grpc://a/data", options); },
              ThrowsMessage<Error>(HasSubstr("patience")));
}

TEST_F(RemoteTrouble, AStalledServerIsGoneWhenPatienceIsOver) {
  const auto held = std::make_shared<FaultySource>(photos_);
  const RunningServer server(held);
  RemoteOptions options;
  options.patience_s = 2;
  Loader loader(photos_of(open_remote(server.url(), options)), by_policy("none"));
  const FaultySource::Hold hold(*held, every_id());
  loader.begin();
  EXPECT_THAT([&] { loader.next(); }, ThrowsMessage<Error>(HasSubstr(server.address())));
}

// What one server cannot read, another can, or the fallback: nothing is skipped for it.
TEST_F(RemoteTrouble, WhatFailsAtOneServerIsTakenElsewhere) {
  const auto broken = std::make_shared<FaultySource>(photos_, every_id(), true);
  const RunningServer bad(broken), good(source_);
  RemoteOptions by_another_path;
  by_another_path.fallback = photos_;
  const auto pool = BufferPool::create(0);
  for (const auto& there : {open_remote("grpc://" + bad.address() + "," + good.address() + "/data"),
                            open_remote(bad.url(), by_another_path)}) {
    for (const char* const policy : {"none", "all-off", "sophon"}) {
      What what = photos_of(there);
      what.bad_samples.policy = OnError::kSkip;
      what.bad_samples.max_share = 1;
      Loader loader(what, by_policy(policy));
      EXPECT_EQ(epochs(loader, 2), [&] {
        Loader files(photos_of(source_), test::with_threads(2));
        return epochs(files, 2);
      }()) << policy;
    }
    EXPECT_EQ(image_of(*there, 0), image_of(*photos_, 0));
  }
  const auto alone = open_remote(bad.url());
  EXPECT_THAT(alone->read(0, *pool).failure(), FailsWith(Code::kBadSample, "is broken"));
  Loader loader(photos_of(alone), by_policy("none"));
  EXPECT_THAT(failure_of([&] { epochs(loader, 1); }), FailsWith(Code::kBadSample, "is broken"));
  EXPECT_EQ(loader.stats().fetch->damaged, 0);
}

// A server that is gone is waited for, but not for ever.
TEST_F(RemoteTrouble, WhatFailsWhereNobodyElseIsThereIsBad) {
  const std::set<SampleId> bad = {3, 17};
  const RunningServer there(std::make_shared<FaultySource>(photos_, bad, true));
  auto gone =
      std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  What what = photos_of(open_remote("grpc://" + there.address() + "," + gone->address() + "/data"));
  gone.reset();
  what.bad_samples.policy = OnError::kSkip;
  Loader loader(what, by_policy("none"));
  what.source = std::make_shared<FaultySource>(photos_, bad);
  Loader files(what, test::with_threads(2));
  EXPECT_EQ(epochs(loader, 1), epochs(files, 1));
  const auto pool = BufferPool::create(0);
  EXPECT_THAT(open_remote(there.url())->read(3, *pool).failure(),
              FailsWith(Code::kBadSample, "is broken"));
}

// It answers pings, so that its stream is there: each time one sample is lost on it, not a window
// of them.
TEST_F(RemoteTrouble, AServerThatHangsKeepsNothingFromTheOtherPath) {
  constexpr int kEpochs = 4;
  const auto held = std::make_shared<FaultySource>(photos_);
  const RunningServer server(held);
  RemoteOptions options;
  options.patience_s = 2;
  options.fallback = photos_;
  Loader loader(photos_of(open_remote(server.url(), options)), by_policy("none"));
  {
    const FaultySource::Hold hold(*held, every_id());
    Loader files(photos_of(source_), test::with_threads(2));
    EXPECT_EQ(epochs(loader, kEpochs), epochs(files, kEpochs));
    const FetchReport report = *loader.stats().fetch;
    EXPECT_GE(report.fallbacks, kEpochs * kSamples);
    EXPECT_LT(report.retries, 8) << "of the stalls of whole windows, there would be twice as many";
  }
  EXPECT_TRUE(test::epochs_until(loader, [&] {
    return test::samples_in(*loader.stats().fetch) > 0;
  })) << "it is asked again when it has come to itself";
}

TEST_F(RemoteTrouble, ClosingDoesNotWaitForServers) {
  const RunningServer server(source_);
  Loader closed(photos_of(open_remote(server.url())), by_policy("none"));
  auto destroyed =
      std::make_unique<Loader>(photos_of(open_remote(server.url())), by_policy("none"));
  const FaultySource::Hold hold(*source_, every_id());
  closed.begin();
  destroyed->begin();
  source_->wait_for_reads(2);
  closed.close();
  EXPECT_THAT([&] { closed.next(); }, ThrowsMessage<Error>(HasSubstr("closed")));
  destroyed.reset();
}

TEST_F(RemoteTrouble, ALoaderMayEndInMidEpoch) {
  const RunningServer server(source_);
  for (const char* const policy : {"none", "all-off"})
    for (int batches = 0; batches < 8; ++batches) {
      RemoteOptions options;
      if (batches % 2 == 0) options.link = std::make_shared<Link>(1e6);
      Loader loader(photos_of(open_remote(server.url(), options)), by_policy(policy));
      loader.begin();
      some(loader, batches);
      loader.begin();  // the rest is dropped
      some(loader, 1);
    }
}

TEST_F(RemoteTrouble, OtherDataIsRefusedInWords) {
  const TestFolder folder;
  const auto other = test::photo_folder(folder, kSamples - 1);
  auto server =
      std::make_unique<RunningServer>(RunningServer::abrupt(RunningServer::serving(source_)));
  const RunningServer elsewhere(other);
  const auto stale = [](const auto& open, const char* part) {
    EXPECT_THAT(failure_of(open), FailsWith(Code::kStale, part));
  };
  stale([&] { open_remote("grpc://" + server->address() + "," + elsewhere.address() + "/data"); },
        "do not have the same data");
  RemoteOptions options;
  options.fallback = other;
  stale([&] { open_remote(server->url(), options); }, "fallback");

  const auto alone = open_remote(server->url());
  options.fallback = photos_;
  const auto with_fallback = open_remote(server->url(), options);
  Loader loader(photos_of(alone), by_policy("none"));
  loader.begin();
  some(loader, 1);
  serve::ServerOptions changed = RunningServer::serving(other);
  changed.listen = server->address();
  server.reset();
  const RunningServer after(changed);
  stale([&] { test::rest_of_epoch(loader); }, "open it again");
  const auto pool = BufferPool::create(0);
  EXPECT_THAT(alone->read(0, *pool).failure(), FailsWith(Code::kStale, "open it again"));
  EXPECT_EQ(image_of(*with_fallback, 0), image_of(*photos_, 0));
  Loader by_another_path(photos_of(with_fallback), by_policy("none"));
  EXPECT_EQ(epochs(by_another_path, 1), local());
  const auto trouble = [&] { return by_another_path.stats().fetch->trouble; };
  EXPECT_TRUE(test::epochs_until(by_another_path, [&] { return !trouble().empty(); }));
  EXPECT_THAT(trouble(), HasSubstr("open it again"));
}

TEST_F(RemoteTrouble, AServerOfAnotherVersionIsRefusedInWords) {
  const RunningServer server(RunningServer::serving(source_), test::test_table());
  Loader loader(photos_of(open_remote(server.url())), by_policy("none"));
  loader.begin();
  const Failure failure = failure_of([&] { loader.next(); });
  EXPECT_THAT(failure, FailsWith(Code::kInvalidArgument, server.address().c_str()));
  EXPECT_THAT(failure,
              FailsWith(Code::kInvalidArgument, "the same version of cutwater on both machines"));

  RemoteOptions options;
  options.fallback = photos_;
  Loader by_another_path(photos_of(open_remote(server.url(), options)), by_policy("none"));
  const std::vector<Seen> expected = local();
  const std::size_t reads = source_->reads().size();
  EXPECT_EQ(epochs(by_another_path, 1), expected);
  EXPECT_TRUE(test::epochs_until(by_another_path,
                                 [&] { return !by_another_path.stats().fetch->trouble.empty(); }));
  EXPECT_EQ(source_->reads().size(), reads) << "by the server";
  const FetchReport report = *by_another_path.stats().fetch;
  EXPECT_GE(report.fallbacks, kSamples);
  EXPECT_EQ(test::samples_in(report), 0);
  EXPECT_THAT(report.trouble, AllOf(HasSubstr(server.address()), HasSubstr("the same version")));

  wire::pb::DataSet said;
  said.set_version(wire::kVersion);
  check_version("host:1", said);
  said.set_version("1");
  const Failure other = failure_of([&] { check_version("host:1", said); });
  EXPECT_THAT(other, FailsWith(Code::kInvalidArgument, "host:1 speaks version '1'"));
}

TEST_F(RemoteTrouble, NoTokenGoesOverTheNetInTheClear) {
  RemoteOptions options;
  options.token = "0123456789abcdef";
  options.patience_s = 2;
  const auto failure = [&](const std::string& url) {
    return failure_of([&] { open_remote(url, options); });
  };
  // Documentation's own addresses: nobody is there.
  for (const char* const url : {"grpc://192.0.2.1:7070/x", "grpc://[2001:db8::1]/x",
                                "grpc://127.0.0.1:1,storage.invalid/x"})
    EXPECT_THAT(failure(url), FailsWith(Code::kInvalidArgument, "in the clear; say grpcs://"))
        << url;
  EXPECT_EQ(failure("grpc://127.0.0.1:1/x").code, Code::kUnavailable);
  EXPECT_EQ(failure("grpc://[::1]:1/x").code, Code::kUnavailable);
}

// One thread, and memory for two samples: what has come for others is not what a substitute waits
// for.
TEST_F(RemoteTrouble, SubstitutesDoNotWaitForWhatHasCome) {
  constexpr SampleId kAll = 40;
  std::set<SampleId> bad;
  for (SampleId id = 0; id < kAll; id += 2) bad.insert(id);
  const RunningServer server(std::make_shared<test::FaultySource>(
      std::make_shared<test::MemorySource>(kAll, 100'000), bad));
  What what{open_remote(server.url()), Pipeline(all_ops()), 2};
  what.bad_samples.policy = OnError::kSubstitute;
  HowFast how = by_policy("none", 1);
  how.memory_limit = 1 << 20;
  Loader loader(std::move(what), how);
  EXPECT_EQ(test::ids_of(epochs(loader, 1)).size(), static_cast<std::size_t>(kAll));
}

}  // namespace
}  // namespace cutwater::remote
