// SPDX-License-Identifier: Apache-2.0
// A store that is made while the first epoch runs: the same stream, and the files of materialize().
#include "run/store_in_making.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "run/test_loader.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

using test::faulty;
using test::Seen;
using test::what_from;
using test::with_threads;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::string_view kChain = "pixels(40, 30) | window(1, 1, 20, 13) | jitter | opaque";
constexpr std::int64_t kSamples = 41;
constexpr std::chrono::hours kLong{1};

class StoreInMakingTest : public testing::Test {
 protected:
  StoreInMakingTest() {
    std::string name = (fs::temp_directory_path() / "cutwater-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~StoreInMakingTest() override { fs::remove_all(folder); }

  std::string at(const std::string& name) const { return (folder / name).string(); }

  What what_of(std::set<SampleId> bad = {}, OnError policy = OnError::kSkip) const {
    What what = what_from(faulty(kSamples, std::move(bad)), 4, kChain);
    what.shuffle = true;
    what.seed = 5;
    what.bad_samples.policy = policy;
    return what;
  }

  static HowFast storing(const std::string& path, std::string cut = "window",
                         std::string codec = "") {
    HowFast how = with_threads(3);
    how.store = {path, std::move(cut), std::move(codec)};
    return how;
  }

  static std::map<std::string, std::string> files_of(const std::string& store) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(store)) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
  }

  static std::vector<Seen> plain(const What& what, int epochs) {
    Loader loader(what, with_threads(2));
    return test::epochs(loader, epochs);
  }

  fs::path folder;
};

TEST_F(StoreInMakingTest, IsTheStoreThatMaterializeWouldHaveWritten) {
  for (const std::set<SampleId>& bad : {std::set<SampleId>{}, {0, 7, 40}})
    for (const char* codec : {"none", "zstd:1"})
      for (const char* cut : {"source", "pixels", "window"}) {
        const What what = what_of(bad);
        const std::vector<Seen> expected = plain(what, 3);
        const std::string made = at("made"), other = at("other");
        {
          Loader loader(what, storing(made, cut, codec));
          std::vector<Seen> got = test::epochs(loader, 1);
          EXPECT_TRUE(loader.finish_store(kLong));
          EXPECT_EQ(loader.stats().store->state, "finished") << loader.stats().store->reason;
          for (Seen& batch : test::epochs(loader, 2)) got.push_back(std::move(batch));
          EXPECT_EQ(got, expected);
        }
        materialize(what.source, what.pipeline, what.pipeline.cut_named(cut), other,
                    {codec_named(codec)});
        EXPECT_EQ(files_of(made), files_of(other));
        Loader again(what, storing(made, "", ""));
        EXPECT_EQ(again.stats().store->state, "source");
        EXPECT_EQ(test::epochs(again, 3), expected);
        fs::remove_all(made);
        fs::remove_all(other);
      }
}

TEST_F(StoreInMakingTest, OnceItIsThereTheSourceIsNotReadAgain) {
  const auto source = faulty(kSamples, {});
  What what = what_of();
  what.source = source;
  Loader loader(what, storing(at("store")));
  test::epochs(loader, 1);
  ASSERT_TRUE(loader.finish_store(kLong));
  const std::size_t reads = source->reads().size();
  test::epochs(loader, 3);
  EXPECT_EQ(source->reads().size(), reads);
}

TEST_F(StoreInMakingTest, TheDestructorFinishesItAndCloseDoesNot) {
  { Loader(what_of(), storing(at("unused"))); }
  EXPECT_FALSE(fs::exists(at("unused")));
  {
    Loader loader(what_of(), storing(at("store")));
    test::epochs(loader, 1);
  }
  EXPECT_TRUE(is_store(at("store")));
  {
    Loader loader(what_of(), storing(at("left")));
    loader.begin();
    (void)loader.next();
    loader.close();
  }
  EXPECT_FALSE(fs::exists(at("left")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST_F(StoreInMakingTest, SamplesThatNeverComeByAreMadeForIt) {
  What what = what_of();
  what.shuffle = false;
  what.drop_last = true;  // the last one is in no batch
  {
    Loader loader(what, storing(at("store")));
    test::epochs(loader, 1);
  }
  ASSERT_TRUE(is_store(at("store")));
  materialize(what.source, what.pipeline, 2, at("other"));
  EXPECT_EQ(files_of(at("store")), files_of(at("other")));
}

TEST_F(StoreInMakingTest, GoesTogetherWithACache) {
  const What what = what_of();
  const std::vector<Seen> expected = plain(what, 3);
  for (const std::size_t limit : {std::size_t{20'000}, std::size_t{4} << 20}) {
    HowFast how = storing(at("store"));
    how.cache.cache = memory_cache(limit);
    {
      Loader loader(what, how);
      EXPECT_EQ(test::epochs(loader, 3), expected);
      EXPECT_GT(loader.stats().cache->entries, 0);
      EXPECT_TRUE(loader.finish_store(kLong));
    }
    EXPECT_TRUE(is_store(at("store")));
    fs::remove_all(at("store"));
    how.cache.cut = "pixels";
    EXPECT_THAT(
        [&] { Loader(what, how); },
        ThrowsMessage<Error>(HasSubstr("samples are kept at its cut 'window', not at 'pixels'")));
  }
}

TEST_F(StoreInMakingTest, WhatIsThereAndIsNotThisStoreIsRefused) {
  const What what = what_of();
  fs::create_directory(at("full"));
  std::ofstream(at("full/letter")) << "dear";
  EXPECT_THAT([&] { Loader(what, storing(at("full"))); },
              ThrowsMessage<Error>(HasSubstr("neither a store nor an empty folder")));
  EXPECT_THAT([&] { Loader(what, storing(at("no/where"))); },
              ThrowsMessage<Error>(HasSubstr("no folder to make the store in")));
  EXPECT_THAT([&] { Loader(what, storing(at("new"), "jitter")); },
              ThrowsMessage<Error>(HasSubstr("store: cut 3 ('jitter') lies past the frontier")));

  materialize(what.source, what.pipeline, 2, at("store"));
  EXPECT_THAT([&] { Loader(what, storing(at("store"), "pixels")); },
              ThrowsMessage<Error>(HasSubstr("has the cut 'window', not 'pixels'")));
  EXPECT_THAT([&] { Loader(what, storing(at("store"), "", "lz4")); },
              ThrowsMessage<Error>(HasSubstr("has the codec 'none', not 'lz4'")));
  What other = what;
  other.pipeline = Pipeline::parse("pixels(40, 31) | jitter", test::test_table());
  EXPECT_THAT([&] { Loader(other, storing(at("store"), "")); },
              ThrowsMessage<Error>(HasSubstr("the store is of something else")));
}

// Something in its place when it is to be written: training goes on, and says why there is no
// store.
TEST_F(StoreInMakingTest, AStoreThatCannotBeWrittenEndsNothing) {
  const What what = what_of();
  const std::vector<Seen> expected = plain(what, 3);
  Loader loader(what, storing(at("store")));
  std::ofstream(at("store")) << "in the way";
  EXPECT_EQ(test::epochs(loader, 3), expected);
  EXPECT_TRUE(loader.finish_store(kLong));
  EXPECT_EQ(loader.stats().store->state, "failed");
  EXPECT_THAT(loader.stats().store->reason, HasSubstr(at("store")));
}

}  // namespace
}  // namespace cutwater
