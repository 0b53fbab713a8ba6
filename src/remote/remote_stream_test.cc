// SPDX-License-Identifier: Apache-2.0
// What comes from servers is what a loader makes of the files themselves, byte for byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "cutwater/store.h"
#include "ops/presets.h"
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
      const std::int64_t samples = test::samples_in(report);
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

TEST_F(RemoteStream, IsTheSameWhateverFilesAreCalled) {
  const TestFolder folder;
  for (const char* const name : {"no \xff UTF-8", "two\nlines", "#?%00+,"})
    test::photo_folder(folder, std::string("class ") + name, 4);
  const std::shared_ptr<const Source> odd = open_folder(folder.path());
  const RunningServer server(odd);
  for (const char* const policy : kPolicies) {
    Loader loader(photos_of(open_remote(server.url())), by_policy(policy));
    EXPECT_EQ(epochs(loader, 1), local(photos_of(odd), 1)) << policy;
    EXPECT_EQ(loader.stats().fetch->retries, 0) << policy;
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
  const auto same = [this](const std::string& pipeline, const std::vector<const char*>& policies) {
    const std::vector<Seen> expected = local(photos_of(source_, pipeline), 3);
    serve::ServerOptions options = RunningServer::serving(source_);
    options.workshop.maker.cache = cache_named("64MiB");
    RunningServer server(options);
    for (const char* const policy : policies) {
      Loader loader(photos_of(open_remote(server.url(), over_a_link()), pipeline),
                    by_policy(policy));
      EXPECT_EQ(epochs(loader, 3), expected) << pipeline << ", " << policy;
    }
    return server->stats().cache_hits;
  };
  EXPECT_GT(same("decode | resize(40) | center_crop(24) | to_tensor",
                 {"all-off", "resize-off", "paper", "sophon"}),
            0);
  // What is sent after the resize is what others' crops are made from.
  EXPECT_GT(same("decode | resize([40, 40]) | random_crop(24) | to_tensor",
                 {"resize-off", "all-off", "paper", "sophon"}),
            42);
  EXPECT_GT(same(named_pipeline("imagenet-val").to_string(), {"resize-off", "sophon"}), 0);
  // With a crop that is drawn only the whole image is stable, and a policy of one cut never sends
  // that; one by price may, where it is cheap.
  const std::string train = named_pipeline("imagenet-train").to_string();
  EXPECT_EQ(same(train, {"resize-off", "all-off"}), 0);
  same(train, {"sophon", "paper"});
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

// Alone, a trainer gets all that its policy must have, however long that waits; beside others it
// may get less, and does the rest itself. That happens where two of them wait for the maker at the
// same time, which threads may just miss: they try until it has.
TEST_F(RemoteStream, IsTheSameWhereTheServerDoesLessThanItMust) {
  const std::vector<Seen> expected = local(photos_of(source_));
  serve::ServerOptions options = RunningServer::serving(source_);
  options.workshop.makers = 1;
  options.workshop.wait_seconds = options.workshop.most_wait_seconds = 1e-9;
  RunningServer server(options);
  for (const char* const policy : {"all-off", "resize-off"}) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto in_time = [&] { return std::chrono::steady_clock::now() < until; };
    while (server->stats().clients > 0 && in_time()) std::this_thread::yield();
    ASSERT_EQ(server->stats().clients, 0) << "those of before have left";
    Loader alone(photos_of(open_remote(server.url())), by_policy(policy));
    EXPECT_EQ(epochs(alone, 2), expected) << policy;
    EXPECT_EQ(alone.stats().fetch->ran_less, 0) << policy;
    std::atomic<std::int64_t> ran_less = 0;
    do {
      std::vector<std::thread> others;
      for (int i = 0; i < 3; ++i)
        others.emplace_back([&] {
          Loader loader(photos_of(open_remote(server.url())), by_policy(policy));
          EXPECT_EQ(epochs(loader, 2), expected) << policy;
          ran_less += loader.stats().fetch->ran_less;
        });
      for (std::thread& other : others) other.join();
    } while (ran_less == 0 && in_time());
    EXPECT_GT(ran_less, 0) << policy;
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

TEST_F(RemoteStream, CountsTheThreadsOfAllServers) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.workshop.makers = 1;
  std::vector<std::unique_ptr<RunningServer>> servers;
  for (int i = 0; i < 3; ++i) servers.push_back(std::make_unique<RunningServer>(options));
  Loader loader(photos_of(open_remote(test::url_of(servers))), by_policy("sophon"));
  const auto threads = [&] { return loader.stats().fetch->storage_threads; };
  EXPECT_EQ(threads(), 0) << "nobody was asked yet";
  EXPECT_TRUE(test::epochs_until(loader, [&] { return threads() == 3; })) << threads();
  servers[0]->stop();
  EXPECT_TRUE(test::epochs_until(loader, [&] { return threads() == 2; }))
      << threads() << ", of those that are up";
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

TEST_F(RemoteStream, WaitsForAServerThatHasAllTheTrainersItTakes) {
  serve::ServerOptions options = RunningServer::serving(source_);
  options.service.clients = 1;
  const RunningServer server(options);
  auto first = std::make_unique<Loader>(photos_of(open_remote(server.url())), by_policy("none"));
  first->begin();
  ASSERT_TRUE(first->next());
  RemoteOptions hurried;
  hurried.patience_s = 4;  // long beside what a refusal takes
  Loader refused(photos_of(open_remote(server.url(), hurried)), by_policy("none"));
  EXPECT_THAT([&] { epochs(refused, 1); },
              ThrowsMessage<Error>(AllOf(HasSubstr(server.address()), HasSubstr("--clients 1"))));
  Loader waits(photos_of(open_remote(server.url())), by_policy("none"));
  waits.begin();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (waits.stats().fetch->trouble.empty() && std::chrono::steady_clock::now() < until)
    std::this_thread::yield();
  EXPECT_THAT(waits.stats().fetch->trouble, HasSubstr("--clients 1"));
  first.reset();
  EXPECT_EQ(test::rest_of_epoch(waits), local(photos_of(source_), 1));
}

TEST_F(RemoteStream, RefusesAPolicyThatThereIsNot) {
  const RunningServer server(source_);
  EXPECT_THAT([&] { Loader(photos_of(open_remote(server.url())), by_policy("half")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("'half'"), HasSubstr("resize-off"))));
}

}  // namespace
}  // namespace cutwater::remote
