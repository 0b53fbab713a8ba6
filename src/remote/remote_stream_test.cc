// SPDX-License-Identifier: Apache-2.0
// What comes from servers is what a loader makes of the files themselves, byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/store.h"
#include "remote/test_remote.h"
#include "source/limited.h"

namespace cutwater::remote {
namespace {

using test::by_policy;
using test::epochs;
using test::photos_of;
using test::RunningServer;
using test::Seen;
using test::seen;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kPolicies[] = {"auto",    "sophon",     "none", "no-off",
                                     "all-off", "resize-off", "paper"};

class RemoteStream : public testing::Test {
 protected:
  std::vector<Seen> local(const What& what, int count = 2) const {
    Loader loader(what, test::with_threads(2));
    return epochs(loader, count);
  }
  // So slow that something is worth sparing it, so fast that nobody waits.
  static RemoteOptions over_a_link() {
    RemoteOptions options;
    options.link = std::make_shared<Link>(2e7);
    return options;
  }

  const TestFolder folder_;
  const std::shared_ptr<const Source> source_ = test::photo_folder(folder_, 42);
};

TEST_F(RemoteStream, IsTheSameByEveryPolicyAndNumberOfServers) {
  const std::vector<Seen> expected = local(photos_of(source_));
  std::vector<std::unique_ptr<RunningServer>> servers;
  for (int count = 1; count <= 3; ++count) {
    servers.push_back(std::make_unique<RunningServer>(source_));
    for (const char* const policy : kPolicies) {
      Loader loader(photos_of(open_remote(test::url_of(servers), over_a_link())),
                    by_policy(policy));
      EXPECT_EQ(epochs(loader, 2), expected) << policy << ", " << count << " servers";
      const FetchReport report = *loader.stats().fetch;
      std::int64_t samples = 0;
      for (const FetchReport::Way& way : report.ways) samples += way.samples;
      EXPECT_GE(samples, 84) << policy;
      EXPECT_EQ(report.damaged, 0);
      EXPECT_EQ(report.fallbacks, 0);
      if (policy == std::string("all-off")) {
        EXPECT_EQ(report.ways.back().samples, samples);
      } else if (policy == std::string("none")) {
        EXPECT_EQ(report.ways.size(), 1u);
      } else if (policy == std::string("sophon")) {
        EXPECT_LT(report.ways[0].samples, samples) << "a slow link is spared something";
      }
    }
  }
}

TEST_F(RemoteStream, HasAllSamplesOnceInReadyOrder) {
  What what = photos_of(source_);
  const test::Samples expected = samples_of(local(what));
  what.order = Order::kReady;
  const RunningServer a(source_), b(source_);
  for (const char* const policy : kPolicies) {
    what.source = open_remote("grpc://" + a.address() + "," + b.address() + "/data", over_a_link());
    Loader loader(what, by_policy(policy));
    EXPECT_EQ(samples_of(epochs(loader, 2)), expected) << policy;
  }
}

TEST_F(RemoteStream, IsTheSameBesideACache) {
  const std::vector<Seen> expected = local(photos_of(source_), 3);
  const RunningServer server(source_);
  for (const char* const policy : {"sophon", "all-off", "none"}) {
    HowFast how = by_policy(policy);
    how.cache.cache = cache_named("64MiB");
    how.cache.cut = "decode";
    Loader loader(photos_of(open_remote(server.url(), over_a_link())), how);
    EXPECT_EQ(epochs(loader, 3), expected) << policy;
  }
}

TEST_F(RemoteStream, IsTheSameWhenTheServerHasACache) {
  const char* const kPipeline = "decode | resize(40) | center_crop(24) | to_tensor";
  const std::vector<Seen> expected = local(photos_of(source_, kPipeline), 3);
  serve::ServerOptions options = RunningServer::serving(source_);
  options.workshop.maker.cache = cache_named("64MiB");
  const RunningServer server(options);
  for (const char* const policy : {"all-off", "resize-off", "paper"}) {
    Loader loader(photos_of(open_remote(server.url(), over_a_link()), kPipeline),
                  by_policy(policy));
    EXPECT_EQ(epochs(loader, 3), expected) << policy;
  }
  EXPECT_GT(options.workshop.maker.cache->stats().hits, 0);
}

TEST_F(RemoteStream, IsTheSameWithAServerThatRunsNoOps) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.workshop.makers = 0;
  const RunningServer server(options);
  for (const char* const policy : kPolicies) {
    Loader loader(photos_of(open_remote(server.url(), over_a_link())), by_policy(policy));
    EXPECT_EQ(epochs(loader, 1), local(photos_of(source_), 1)) << policy;
    EXPECT_GE(loader.stats().fetch->ways[0].samples, 42);
  }
}

TEST_F(RemoteStream, IsTheSameWithTheSmallestLimits) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.service.in_flight = 1;
  options.workshop.memory = options.workshop.client_memory = 1;
  options.workshop.readers = 1;
  const RunningServer server(options);
  Loader loader(photos_of(open_remote(server.url(), over_a_link())), by_policy("sophon"));
  EXPECT_EQ(epochs(loader, 2), local(photos_of(source_)));
}

// A policy is no part of the stream: who goes on with another, or with the files, gets the rest.
TEST_F(RemoteStream, GoesOnInMidEpochByAnotherPolicy) {
  const std::vector<Seen> expected = local(photos_of(source_));
  const RunningServer server(source_);
  std::vector<Seen> all;
  LoaderState state;
  for (std::size_t turn = 0; all.size() < expected.size(); ++turn) {
    const bool from_files = turn % 4 == 3;
    Loader loader(photos_of(from_files ? source_ : open_remote(server.url(), over_a_link())),
                  by_policy(from_files ? "auto" : kPolicies[turn % std::size(kPolicies)]));
    if (turn > 0) loader.restore(state);
    loader.begin();
    for (int batch = 0; batch < 3; ++batch) {
      if (const auto next = loader.next()) {
        all.push_back(seen(*next));
      } else if (all.size() < expected.size()) {
        loader.begin();
      }
    }
    state = loader.state();
  }
  EXPECT_EQ(all, expected);
}

TEST_F(RemoteStream, LeavesOutTheSameBadSamples) {
  const TestFolder folder;
  const auto source = test::photo_folder(folder, 30, {3, 4, 17, 29});
  const auto messages = [](const std::vector<Failure>& failures) {
    std::vector<std::string> all;
    for (const Failure& failure : failures) all.push_back(failure.message());
    return all;
  };
  const RunningServer server(source);
  for (const OnError on_error : {OnError::kSkip, OnError::kSubstitute}) {
    What what = photos_of(source);
    what.bad_samples.policy = on_error;
    Loader files(what, test::with_threads(2));
    const std::vector<Seen> expected = epochs(files, 2);
    for (const char* const policy : kPolicies) {
      what.source = open_remote(server.url(), over_a_link());
      what.source->load_listing();  // for the paths of substitutes
      Loader loader(what, by_policy(policy));
      EXPECT_EQ(epochs(loader, 2), expected) << policy;
      EXPECT_EQ(messages(loader.stats().skipped), messages(files.stats().skipped)) << policy;
      EXPECT_EQ(messages(loader.stats().substituted), messages(files.stats().substituted))
          << policy;
    }
  }
  Loader strict(photos_of(open_remote(server.url())), by_policy("all-off"));
  EXPECT_THAT([&] { epochs(strict, 1); }, ThrowsMessage<Error>(HasSubstr(".jpg), decode: ")));
}

TEST_F(RemoteStream, ComesFromAStoreAsWell) {
  const Pipeline pipeline = Pipeline::parse(test::kTrain, all_ops());
  const TestFolder place;
  materialize(source_, pipeline, pipeline.cut_named("decode"), place.path("store"));
  const auto store = open_store(place.path("store"));
  const std::vector<Seen> expected = local(photos_of(source_));
  const RunningServer server(store);
  for (const char* const policy : kPolicies) {
    const auto remote = open_remote(server.url(), over_a_link());
    EXPECT_EQ(remote->cut(), store->cut());
    EXPECT_EQ(remote->fingerprint(), store->fingerprint());
    Loader loader(photos_of(remote), by_policy(policy));
    EXPECT_EQ(epochs(loader, 2), expected) << policy;
  }
}

TEST_F(RemoteStream, TellsWhatTheDataSetIs) {
  const TestFolder odd;
  odd.file("b\xff/1.jpg", "x");
  odd.file("a/\xfe.jpg", "y");
  const auto named = open_folder(odd.path());
  serve::ServerOptions options = RunningServer::serving(source_);
  options.data.push_back({"odd", named});
  options.data.push_back({"memory", std::make_shared<test::MemorySource>(5)});
  const RunningServer server(options);
  for (const serve::ServedData& data : options.data) {
    const auto remote = open_remote(server.url(data.name));
    EXPECT_EQ(remote->size(), data.source->size());
    EXPECT_EQ(remote->identity(), data.source->identity());
    EXPECT_EQ(remote->stamp(), data.source->stamp());
    EXPECT_EQ(remote->classes(), data.source->classes());
    EXPECT_THAT(remote->path(0), HasSubstr(server.url(data.name)));
    remote->load_listing();
    EXPECT_EQ(paths_of(*remote), paths_of(*data.source));
    EXPECT_EQ(labels_of(*remote), labels_of(*data.source));
    for (SampleId id = 0; id < data.source->size(); ++id)
      EXPECT_EQ(image_of(*remote, id), image_of(*data.source, id));
  }
  EXPECT_THAT([&] { open_remote(server.url("../odd")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no data set '../odd'"), HasSubstr("'odd'"))));
  EXPECT_THAT([&] { open_remote(server.url("")); },
              ThrowsMessage<Error>(HasSubstr("it has 'data'")));
}

TEST_F(RemoteStream, NeedsTheTokenOfTheServer) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.service.token = "0123456789abcdef";
  const RunningServer server(options);
  RemoteOptions remote = over_a_link();
  for (const char* const token : {"", "0123456789abcdee", "x"}) {
    remote.token = token;
    EXPECT_THAT(
        [&] { open_remote(server.url(), remote); },
        ThrowsMessage<Error>(AllOf(HasSubstr(server.address()), HasSubstr("missing or wrong"))));
  }
  remote.token = options.service.token;
  Loader loader(photos_of(open_remote(server.url(), remote)), by_policy("sophon"));
  EXPECT_EQ(epochs(loader, 1), local(photos_of(source_), 1));
}

TEST_F(RemoteStream, RefusesAPolicyThatThereIsNot) {
  const RunningServer server(source_);
  EXPECT_THAT([&] { Loader(photos_of(open_remote(server.url())), by_policy("half")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'half'"), HasSubstr("resize-off"))));
}

}  // namespace
}  // namespace cutwater::remote
