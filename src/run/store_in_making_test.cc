// SPDX-License-Identifier: Apache-2.0
// A store that is made while the first epoch runs: the same stream, and the files of materialize().
#include "run/store_in_making.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "run/test_loader.h"
#include "source/test_folder.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;

using test::faulty;
using test::FaultySource;
using test::MemorySource;
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
  std::string at(const std::string& name) const { return folder.path(name); }

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

  // What has been put aside so far lies in a file without a name: another way to it, if it is on
  // the disk of `place`.
  static Fd spool_in(const std::string& place) {
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      const std::string file = fs::read_symlink(entry.path(), gone).string();
      if (file.starts_with(place + "/") && file.ends_with("(deleted)"))
        return Fd(::open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
    }
    return Fd();
  }

  TestFolder folder;
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
  const LoaderStats before = loader.stats();
  test::epochs(loader, 3);
  EXPECT_EQ(source->reads().size(), reads);
  // But the store is. Some of the three epochs had been made before.
  const LoaderStats after = loader.stats();
  EXPECT_GE(after.reads, before.reads + 2 * kSamples);
  EXPECT_GE(after.bytes_read, before.bytes_read + 2 * kSamples * 20 * 13 * 3);
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
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
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
  What what = what_of();
  const std::vector<Seen> expected = plain(what, 3);
  for (const std::size_t limit : {std::size_t{22'000}, std::size_t{4} << 20}) {
    const auto source = faulty(kSamples, {});
    what.source = source;
    HowFast how = storing(at("store"));
    how.threads = 1;  // several may read a sample twice
    how.cache.cache = memory_cache(limit);
    {
      Loader loader(what, how);
      EXPECT_EQ(test::epochs(loader, 3), expected);
      EXPECT_TRUE(loader.finish_store(kLong));
      const LoaderStats stats = loader.stats();
      EXPECT_EQ(source->reads().size(), static_cast<std::size_t>(kSamples));
      EXPECT_EQ(stats.cache->why, "that of the store " + at("store"));
      // Two epochs with a cache, and a part of a third that was made ahead.
      const std::int64_t cached = stats.cache->entries, stored = kSamples - cached;
      ASSERT_GT(cached, 5);
      EXPECT_EQ(stored > 0, limit == 22'000);
      EXPECT_EQ(stats.cache->misses, stats.reads);
      EXPECT_GE(stats.cache->misses, kSamples + 2 * stored);
      EXPECT_LE(stats.cache->misses, kSamples + 3 * stored);
      EXPECT_GE(stats.cache->hits, 2 * cached);
      EXPECT_LE(stats.cache->hits, 3 * cached);
      EXPECT_EQ(stats.cache->forms[0].hits, stats.cache->hits);
      EXPECT_GE(stats.bytes_read, static_cast<std::uint64_t>(kSamples * 4 + 2 * stored * 780));
      EXPECT_EQ(stats.bytes_read == static_cast<std::uint64_t>(kSamples * 4), stored == 0);
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

TEST_F(StoreInMakingTest, DataThatIsChangedInMidEpochMakesNoStore) {
  std::vector<std::string> paths;
  for (SampleId id = 0; id < kSamples; ++id) {
    paths.push_back(at("sample-" + std::to_string(id)));
    std::ofstream(paths.back()) << "abcd";
  }
  What what = what_of();
  what.source = open_files(paths);
  Loader loader(what, storing(at("store")));
  loader.begin();
  (void)loader.next();
  std::ofstream(at("new")) << "of another length";
  fs::rename(at("new"), paths[7]);
  test::rest_of_epoch(loader);
  EXPECT_TRUE(loader.finish_store(kLong));
  EXPECT_EQ(loader.stats().store->state, "failed");
  EXPECT_THAT(loader.stats().store->reason,
              HasSubstr("the data set was changed while its store was being made"));
  EXPECT_FALSE(is_store(at("store")));
  EXPECT_EQ(test::sorted_ids(test::epochs(loader, 1)), test::counted_to(kSamples));
}

TEST_F(StoreInMakingTest, WhatWasPutAsideAndIsDamagedIsMadeAgain) {
  const What what = what_of();
  const std::vector<Seen> expected = plain(what, 3);
  {
    HowFast how = storing(at("store"));
    how.threads = 1;  // so that the first sample is all there when there is a batch
    Loader loader(what, how);
    loader.begin();
    std::vector<Seen> got = {test::seen(*loader.next())};
    {
      const Fd spool = spool_in(folder.path());
      ASSERT_GE(spool.get(), 0);
      ASSERT_EQ(::pwrite(spool.get(), "damage", 6, 300), 6);  // among the first one's pixels
    }
    for (Seen& batch : test::rest_of_epoch(loader)) got.push_back(std::move(batch));
    for (Seen& batch : test::epochs(loader, 2)) got.push_back(std::move(batch));
    EXPECT_EQ(got, expected);
    EXPECT_TRUE(loader.finish_store(kLong));
    EXPECT_EQ(loader.stats().store->state, "finished") << loader.stats().store->reason;
    EXPECT_GE(loader.stats().store->damaged, 1);
  }
  materialize(what.source, what.pipeline, 2, at("other"));
  EXPECT_EQ(files_of(at("store")), files_of(at("other")));
}

TEST_F(StoreInMakingTest, AStoreThatIsDamagedOnceItIsFinishedIsReadAround) {
  const What what = what_of({0, 7});
  const std::vector<Seen> expected = plain(what, 3);
  Loader loader(what, storing(at("store")));
  std::vector<Seen> got = test::epochs(loader, 1);
  ASSERT_TRUE(loader.finish_store(kLong));
  EXPECT_EQ(loader.stats().store->damaged, 0);
  for (const auto& file : fs::directory_iterator(at("store")))
    if (file.path().extension() == ".tar") {
      std::fstream shard(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      shard << std::string(fs::file_size(file.path()), '?');
    }
  for (Seen& batch : test::epochs(loader, 2)) got.push_back(std::move(batch));
  EXPECT_EQ(got, expected);
  EXPECT_GE(loader.stats().store->damaged, kSamples - 2);
}

TEST_F(StoreInMakingTest, WhatFailsWhileItIsWrittenStaysFailed) {
  const auto source = faulty(kSamples, {});
  const What what = what_from(source, 4, kChain);
  const auto pool = BufferPool::create(std::size_t{1} << 20);
  const MemorySource samples(kSamples);
  const auto sample = [&](SampleId id) { return samples.read(id, *pool).value(); };
  KeeperWork work;
  {
    StoreInMaking making(what, {at("store"), "source", ""}, true, 2);
    for (SampleId id = 1; id < kSamples; ++id) making.keep(sample(id), 0, 0, work);
    FaultySource::Hold hold(*source, {0});  // which has not come by
    making.epoch_over();
    source->wait_for_reads(1);
    EXPECT_EQ(making.report().state, "writing");
    Sample wrong = sample(0);
    wrong.fields[0].name = std::string(300, 'x');
    making.keep(wrong, 0, 0, work);
    hold.release();
    EXPECT_TRUE(making.wait(kLong));
    EXPECT_EQ(making.report().state, "failed");
    EXPECT_THAT(making.report().reason, HasSubstr("too long a name"));
  }
  EXPECT_FALSE(is_store(at("store")));
}

TEST_F(StoreInMakingTest, AStoreThatWasBegunIsGoneOnWithAsItWas) {
  const What what = what_of();
  const auto begin = [&] {
    MaterializeOptions options{codec_named("zstd:1"), 1};
    options.on_progress = [](const MaterializeProgress& progress) {
      if (progress.done > 0) throw Error(Code::kCancelled, "enough");
    };
    EXPECT_THROW(materialize(what.source, what.pipeline, 1, at("store"), options), Error);
    ASSERT_TRUE(fs::exists(at("store/building.json")));
  };
  begin();
  EXPECT_THAT([&] { Loader(what, storing(at("store"), "window")); },
              ThrowsMessage<Error>(HasSubstr("cut: there 'pixels', now 'window'")));
  EXPECT_THAT([&] { Loader(what, storing(at("store"), "", "lz4")); },
              ThrowsMessage<Error>(HasSubstr("codec: there 'zstd:1', now 'lz4'")));
  What other = what;
  other.pipeline = Pipeline::parse("pixels(40, 31) | jitter", test::test_table());
  EXPECT_THAT([&] { Loader(other, storing(at("store"), "")); },
              ThrowsMessage<Error>(HasSubstr("there is a store of something else")));
  {
    Loader loader(what, storing(at("store"), ""));
    EXPECT_EQ(loader.stats().store->cut, "pixels");
    EXPECT_EQ(loader.stats().store->codec, "zstd:1");
    test::epochs(loader, 1);
  }
  materialize(what.source, what.pipeline, 1, at("other"), {codec_named("zstd:1")});
  EXPECT_EQ(files_of(at("store")), files_of(at("other")));
}

TEST_F(StoreInMakingTest, AFolderThatIsThereHoldsWhatIsPutAside) {
  fs::create_directory(at("store"));
  Loader loader(what_of(), storing(at("store")));
  loader.begin();
  (void)loader.next();
  EXPECT_GE(spool_in(at("store")).get(), 0);
}

}  // namespace
}  // namespace cutwater
