// SPDX-License-Identifier: Apache-2.0
// A data set in parts on several servers: the stream is that of all its files in one list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kPolicies[] = {"sophon", "none", "all-off", "resize-off", "paper"};

// Classes 0 and 1 in one part, 1 and 2 in the other.
class RemoteParts : public testing::Test {
 protected:
  RemoteParts() {
    const TestFolder all;
    const auto photos = test::photo_folder(all, 42);
    for (SampleId id = 0; id < photos->size(); ++id) {
      const std::filesystem::path path = photos->path(id);
      const std::string name = path.parent_path().filename() / path.filename();
      const std::int64_t label = photos->label(id);
      const bool into_a = label == 0 || (label == 1 && id % 2 == 0);
      const TestFolder& part = into_a ? folder_a_ : folder_b_;
      std::filesystem::copy_file(path, part.file(name),
                                 std::filesystem::copy_options::overwrite_existing);
    }
    a_ = open_folder(folder_a_.path());
    b_ = open_folder(folder_b_.path());
    std::vector<std::string> paths;
    std::vector<std::int64_t> labels;
    for (const auto& part : {a_, b_})
      for (SampleId id = 0; id < part->size(); ++id) {
        paths.push_back(part->path(id));
        labels.push_back(part->label(id) + (part == b_ ? 1 : 0));
      }
    whole_ = open_files(paths, labels, {"class0", "class1", "class2"});
  }
  std::vector<Seen> local() const {
    Loader loader(photos_of(whole_), test::with_threads(2));
    return epochs(loader, 2);
  }

  const TestFolder folder_a_, folder_b_;
  std::shared_ptr<const Source> a_, b_, whole_;
};

TEST_F(RemoteParts, AreTheWholeByEveryPolicy) {
  const std::vector<Seen> expected = local();
  const RunningServer a(a_), b(b_);
  for (const char* const policy : kPolicies) {
    RemoteOptions slow;
    slow.link = std::make_shared<Link>(2e7);
    Loader loader(photos_of(open_remote(a.url() + "+" + b.url(), slow)), by_policy(policy));
    EXPECT_EQ(epochs(loader, 2), expected) << policy;
    EXPECT_EQ(loader.stats().fetch->damaged, 0);
  }
}

TEST_F(RemoteParts, AreTheWholeInReadyOrderAndFromOneServer) {
  serve::ServerOptions options = RunningServer::serving(a_, "a");
  options.data.push_back({"b", b_});
  const RunningServer both(options);
  What what = photos_of(open_remote(both.url("a") + "+" + both.url("b")));
  what.order = Order::kReady;
  Loader loader(what, by_policy("sophon"));
  EXPECT_EQ(test::samples_of(epochs(loader, 2)), test::samples_of(local()));
}

TEST_F(RemoteParts, TellWhatTheWholeIs) {
  const RunningServer a(a_), b(b_);
  const auto joined = open_remote(a.url() + "+" + b.url());
  EXPECT_EQ(joined->size(), whole_->size());
  EXPECT_THAT(joined->classes(), ElementsAre("class0", "class1", "class2"));
  joined->load_listing();
  EXPECT_EQ(paths_of(*joined), paths_of(*whole_));
  EXPECT_EQ(labels_of(*joined), labels_of(*whole_));
  const auto pool = BufferPool::create(1 << 20);
  for (SampleId id = 0; id < joined->size(); ++id) {
    EXPECT_EQ(image_of(*joined, id), image_of(*whole_, id));
    Result<Sample> sample = joined->read(id, *pool);
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample.value().id, id);
    std::int64_t label = -1;
    std::memcpy(&label, sample.value().find(kLabelField)->view().bytes(), sizeof label);
    EXPECT_EQ(label, whole_->label(id));
  }
  EXPECT_EQ(open_remote(a.url() + "+" + b.url())->identity(), joined->identity());
  EXPECT_NE(open_remote(b.url() + "+" + a.url())->identity(), joined->identity());
}

TEST_F(RemoteParts, GoOnByAnotherServerOfAPart) {
  const std::vector<Seen> expected = local();
  const RunningServer stays(a_), b(b_);
  RunningServer goes(RunningServer::abrupt(RunningServer::serving(a_)));
  Loader loader(photos_of(open_remote("grpc://" + goes.address() + "," + stays.address() +
                                      "/data+" + b.url())),
                by_policy("all-off"));
  std::vector<Seen> all = epochs(loader, 1);
  goes.stop();
  for (Seen& batch : epochs(loader, 1)) all.push_back(std::move(batch));
  EXPECT_EQ(all, expected);
}

// The other part goes on meanwhile; that is no sign of life of this one.
TEST_F(RemoteParts, AreNotWaitedForLongerThanPatienceLasts) {
  RunningServer a(RunningServer::abrupt(RunningServer::serving(a_)));
  const RunningServer b(b_);
  RemoteOptions hurried;
  hurried.patience_s = 3;
  Loader loader(photos_of(open_remote(a.url() + "+" + b.url(), hurried)), by_policy("none"));
  epochs(loader, 1);
  const std::string url = a.url();
  a.stop();
  EXPECT_THAT([&] { epochs(loader, 2); },
              ThrowsMessage<Error>(AllOf(HasSubstr("no server of " + url), HasSubstr("fallback"))));
}

TEST_F(RemoteParts, AreOfOneDataSet) {
  const RunningServer a(a_), b(b_);
  EXPECT_THAT([&] { open_remote(a.url() + "+" + a.url()); },
              ThrowsMessage<Error>(AllOf(HasSubstr("have the same samples"), HasSubstr("comma"))));
  RemoteOptions other_path;
  other_path.fallback = whole_;
  EXPECT_THAT([&] { open_remote(a.url() + "+" + b.url(), other_path); },
              ThrowsMessage<Error>(AllOf(HasSubstr("fallback"), HasSubstr("several servers"))));

  const RunningServer flat(open_files(paths_of(*b_)));
  EXPECT_THAT([&] { open_remote(a.url() + "+" + flat.url()); },
              ThrowsMessage<Error>(AllOf(HasSubstr(flat.url()), HasSubstr("another kind"))));

  const Pipeline pipeline = Pipeline::parse(test::kTrain, all_ops());
  const TestFolder place;
  materialize(b_, pipeline, pipeline.cut_named("decode"), place.path("store"));
  const RunningServer store(open_store(place.path("store")));
  EXPECT_THAT([&] { open_remote(a.url() + "+" + store.url()); },
              ThrowsMessage<Error>(AllOf(HasSubstr(store.url()), HasSubstr("same cut"))));
}

}  // namespace
}  // namespace cutwater::remote
