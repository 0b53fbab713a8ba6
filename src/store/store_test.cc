// SPDX-License-Identifier: Apache-2.0
// Stores: the samples that come out are those that went in, whatever happened in between.
#include "cutwater/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cutwater/loader.h"
#include "run/test_slow_source.h"
#include "store/disk.h"
#include "store/layout.h"
#include "store/meta.h"
#include "store/test_store.h"

namespace cutwater {
namespace {

using test::chain;
using test::content_of;
using test::files_of;
using test::from_store;
using test::MemorySource;
using test::set_content;
using test::some_samples;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

constexpr char kChain[] = "pixels(6, 5) | window(1, 1, 4, 3) | jitter";

MaterializeOptions with_codec(const std::string& codec, int threads = 2) {
  MaterializeOptions options;
  options.codec = codec_named(codec);
  options.threads = threads;
  return options;
}

TEST(Store, GivesTheSamplesThatWentIn) {
  const auto source = some_samples(53, {0, 17, 52});
  const Pipeline pipeline = chain(kChain);
  for (const char* codec : {"none", "lz4", "zstd:3", "shuffle-zstd:1", "delta-zstd:1"})
    for (Cut cut = 0; cut <= 2; ++cut) {
      const TestFolder folder;
      const StoreInfo info =
          materialize(source, pipeline, cut, folder.path("s"), with_codec(codec));
      EXPECT_EQ(info.samples, 53);
      EXPECT_EQ(info.bad.size(), 3U);
      const auto store = open_store(folder.path("s"));
      EXPECT_EQ(store->size(), 53);
      EXPECT_EQ(store->cut(), cut);
      EXPECT_EQ(store->identity(), source->identity());
      for (SampleId id = 0; id < 53; ++id) {
        EXPECT_EQ(from_store(*store, id), test::expected(*source, pipeline, cut, id));
        EXPECT_EQ(store->label(id), 10 * id);
      }
      EXPECT_THAT(verify_store(folder.path("s")), IsEmpty());
      EXPECT_NO_THROW(check_store_is_of(info, *source, pipeline));
    }
}

TEST(Store, HasTheSameBytesWhateverTheThreads) {
  const auto source = some_samples(200, {3, 150});
  const TestFolder folder;
  for (const char* codec : {"none", "zstd:3"}) {
    const std::string one = folder.path(std::string("one-") + codec);
    const std::string five = folder.path(std::string("five-") + codec);
    materialize(source, chain(kChain), 2, one, with_codec(codec, 1));
    materialize(source, chain(kChain), 2, five, with_codec(codec, 5));
    EXPECT_EQ(files_of(one), files_of(five));
  }
}

// Work that ends at any moment leaves a folder that the next call goes on with.
TEST(Store, GoesOnWhereItEnded) {
  const auto source = some_samples(100, {8});
  const TestFolder folder;
  materialize(source, chain(kChain), 2, folder.path("whole"), with_codec("lz4"));
  const auto whole = files_of(folder.path("whole"));
  for (std::int64_t limit = 0; limit < 100; limit += 9) {
    const std::string path = folder.path("cut short " + std::to_string(limit));
    MaterializeOptions options = with_codec("lz4", 1);
    int calls = 0;
    options.on_progress = [&](const MaterializeProgress& progress) {
      if (progress.done >= limit && ++calls > 2) throw Error(Code::kCancelled, "enough");
    };
    try {
      materialize(source, chain(kChain), 2, path, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kCancelled);
      if (!std::filesystem::exists(path)) continue;  // before anything was written
      for (const auto& [name, content] : files_of(path))
        EXPECT_FALSE(name.ends_with(".tmp")) << name;
    }
    MaterializeProgress last;
    MaterializeOptions again = with_codec("lz4");
    again.on_progress = [&](const MaterializeProgress& progress) { last = progress; };
    materialize(source, chain(kChain), 2, path, again);
    EXPECT_EQ(last.done, 100);
    EXPECT_EQ(files_of(path), whole);
  }
}

TEST(Store, MakesAgainWhatIsLeftOfAShardInTheMiddle) {
  const auto source = some_samples(64);
  const TestFolder folder;
  materialize(source, chain(kChain), 2, folder.path("whole"), with_codec("none"));
  const auto whole = files_of(folder.path("whole"));
  const std::string path = folder.path("broken");
  // The folder as a killed process leaves it: some shards with their parts, some without, and
  // temporary files of both.
  MaterializeOptions stopped = with_codec("none", 1);
  stopped.on_progress = [&](const MaterializeProgress& progress) {
    if (progress.done == 64) throw Error(Code::kCancelled, "enough");
  };
  EXPECT_THROW(materialize(source, chain(kChain), 2, path, stopped), Error);
  ASSERT_TRUE(files_of(path).contains("building.json"));
  ASSERT_TRUE(files_of(path).contains("shard-000000.part"));
  std::filesystem::remove(path + "/shard-000001.part");
  set_content(path + "/shard-000002.tar", "short");
  set_content(path + "/shard-000003.part", "not a part");
  set_content(path + "/shard-000004.tar.tmp", "unfinished");
  std::filesystem::remove(path + "/shard-000004.part");
  MaterializeProgress last;
  MaterializeOptions again = with_codec("none");
  again.on_progress = [&](const MaterializeProgress& progress) { last = progress; };
  materialize(source, chain(kChain), 2, path, again);
  EXPECT_EQ(last.resumed, 64 - 4 * 4) << "samples of the shards that were whole";
  EXPECT_EQ(files_of(path), whole);
  materialize(source, chain(kChain), 2, path, again);
  EXPECT_EQ(last.resumed, 64) << "a finished store is left as it is";
  EXPECT_EQ(files_of(path), whole);
}

TEST(Store, IsRefusedWhereItIsOfSomethingElse) {
  const auto source = some_samples(20);
  const TestFolder folder;
  const std::string path = folder.path("s");
  const auto again = [&](std::shared_ptr<const Source> data, const std::string& text, Cut cut,
                         const std::string& codec) {
    return [=] { materialize(data, chain(text), cut, path, with_codec(codec)); };
  };
  again(source, kChain, 2, "none")();
  const auto stale = [&](const auto& attempt, const std::string& part) {
    EXPECT_THAT(failure_of(attempt), FailsWith(Code::kStale, part));
  };
  stale(again(source, kChain, 1, "none"), "cut: there 'window', now 'pixels'");
  stale(again(source, kChain, 2, "lz4"), "codec: there 'none', now 'lz4'");
  stale(again(source, "pixels(6, 5) | window(0, 1, 4, 3) | jitter", 2, "none"),
        "pipeline: there 'pixels(height=6, width=5) | window(top=1");
  stale(again(some_samples(21), kChain, 2, "none"), "data set");
  EXPECT_NO_THROW(again(source, "pixels(6, 5) | window(1, 1, 4, 3) | opaque", 2, "none")());

  const StoreInfo info = store_info(path);
  stale([&] { check_store_is_of(info, *some_samples(21), chain(kChain)); }, "the data set");
  stale([&] { check_store_is_of(info, *source, chain("pixels(6, 5) | opaque")); },
        "this one is 'pixels(height=6, width=5) | opaque'");
  What what{open_store(path), chain("pixels(6, 5) | opaque | jitter"), 4};
  stale([&] { Loader loader(what); },
        "of another pipeline, 'pixels(height=6, width=5) | window(top=1");
}

TEST(Store, RefusesWhatCannotBePrepared) {
  const auto source = some_samples(20);
  const TestFolder folder;
  const auto attempt = [&](const std::string& text, Cut cut, const std::string& path) {
    return [=] { materialize(source, chain(text), cut, path, with_codec("none")); };
  };
  EXPECT_THAT(attempt(kChain, 3, folder.path("a")),
              ThrowsMessage<Error>(AllOf(HasSubstr("cut 3 ('jitter') lies past the frontier"),
                                         HasSubstr("cut 2 ('window')"))));
  EXPECT_THAT(attempt("jitter", 1, folder.path("b")),
              ThrowsMessage<Error>(HasSubstr("draws in its first op")));
  EXPECT_NO_THROW(attempt("jitter", 0, folder.path("c"))());
  folder.file("full/notes.txt", "mine");
  EXPECT_THAT(attempt(kChain, 2, folder.path("full")),
              ThrowsMessage<Error>(HasSubstr("has something else in it ('notes.txt')")));
  EXPECT_THAT(failure_of(attempt("pixels(6, 5) | refuses", 2, folder.path("d"))),
              FailsWith(Code::kBadSample, "cannot be"));
  EXPECT_FALSE(is_store(folder.path("full")));
  EXPECT_THAT(failure_of([&] { open_store(folder.path("full")); }),
              FailsWith(Code::kNotFound, "there is no store here"));
}

TEST(Store, HasOneWriterAtATime) {
  const auto source = some_samples(20);
  const TestFolder folder;
  folder.folder("s");
  {
    const FolderLock other(folder.path("s"));
    EXPECT_THAT(failure_of([&] {
                  materialize(source, chain(kChain), 2, folder.path("s"), with_codec("none"));
                }),
                FailsWith(Code::kIo, "another process is writing this store"));
  }
  EXPECT_NO_THROW(materialize(source, chain(kChain), 2, folder.path("s"), with_codec("none")));
}

TEST(Store, CanBeMadeOfAStore) {
  const auto source = some_samples(30, {4});
  const TestFolder folder;
  materialize(source, chain(kChain), 1, folder.path("a"), with_codec("zstd:1"));
  materialize(open_store(folder.path("a")), chain(kChain), 2, folder.path("b"), with_codec("none"));
  materialize(source, chain(kChain), 2, folder.path("c"), with_codec("none"));
  EXPECT_EQ(files_of(folder.path("b")), files_of(folder.path("c")));
  const auto shorter = [&] {
    materialize(open_store(folder.path("c")), chain("pixels(6, 5)"), 1, folder.path("d"));
  };
  EXPECT_THAT(shorter, ThrowsMessage<Error>(HasSubstr("the source stands at cut 2 already")));
}

// A sample of several tensors, one of them without elements, none of them called image.
class ManyFields final : public MemorySource {
 public:
  using MemorySource::MemorySource;
  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    Sample sample;
    sample.id = id;
    const auto add = [&](const char* name, const TensorSpec& spec) {
      Buffer bytes = into.allocate(spec.bytes());
      for (std::uint8_t& byte : bytes.span()) byte = static_cast<std::uint8_t>(id + 1);
      sample.fields.push_back({name, Tensor(spec, std::move(bytes))});
    };
    add("sound", {DType::kF32, {2, id + 1}});
    sample.fields.push_back({"label", Tensor::scalar(label(id))});
    add("boxes", {DType::kI16, {id % 3, 4}});
    add("mask", {DType::kU8, {id + 5, 2, 3, 1}, Layout::kPacked});
    return sample;
  }
};

class OneEmptyField final : public MemorySource {
 public:
  using MemorySource::MemorySource;
  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    Sample sample;
    sample.id = id;
    const TensorSpec spec{DType::kI16, {id % 2, 4}};
    Buffer bytes = into.allocate(spec.bytes());
    for (std::uint8_t& byte : bytes.span()) byte = 7;
    sample.fields.push_back({"boxes", Tensor(spec, std::move(bytes))});
    return sample;
  }
};

TEST(Store, HoldsAnyFields) {
  const std::vector<std::shared_ptr<const Source>> sources = {std::make_shared<ManyFields>(40),
                                                              std::make_shared<OneEmptyField>(40)};
  for (const auto& source : sources)
    for (const char* codec : {"none", "lz4", "shuffle-zstd:1", "delta-zstd:1"}) {
      const TestFolder folder;
      materialize(source, chain(""), 0, folder.path("s"), with_codec(codec));
      const auto store = open_store(folder.path("s"));
      for (SampleId id = 0; id < 40; ++id)
        EXPECT_EQ(from_store(*store, id), test::expected(*source, chain(""), 0, id));
    }
}

// Reads that go through the ring: the bytes are unpacked where the sample is made.
TEST(Store, IsReadInFlight) {
  const auto source = some_samples(60, {11});
  for (const char* codec : {"none", "zstd:1"}) {
    const TestFolder folder;
    materialize(source, chain(kChain), 2, folder.path("s"), with_codec(codec));
    const auto slow = std::make_shared<test::SlowSource>(open_store(folder.path("s")));
    const auto delivered = [&](std::shared_ptr<const Source> from) {
      What what{std::move(from), chain(kChain), 7, true, 5};
      what.bad_samples.policy = OnError::kSkip;
      HowFast how;
      how.memory_limit = std::size_t{1} << 20;
      Loader loader(what, how);
      std::string bytes;
      loader.begin();
      while (const std::optional<Batch> batch = loader.next())
        for (const Batch::FieldView& field : batch->fields)
          bytes.append(reinterpret_cast<const char*>(field.data), field.spec.bytes());
      return bytes;
    };
    EXPECT_EQ(delivered(slow), delivered(source));
  }
}

TEST(Store, Forecasts) {
  const auto source = some_samples(400);
  const TestFolder folder;
  StoreForecast forecast;
  MaterializeOptions options = with_codec("none");
  options.on_forecast = [&](const StoreForecast& made) { forecast = made; };
  const StoreInfo info = materialize(source, chain(kChain), 2, folder.path("s"), options);
  EXPECT_EQ(forecast.samples, 400);
  EXPECT_NEAR(static_cast<double>(forecast.bytes), static_cast<double>(info.bytes),
              static_cast<double>(info.bytes) * 0.1);
  EXPECT_GT(forecast.free_bytes, 0U);
}

TEST(Store, AFlippedByteIsFound) {
  const auto source = some_samples(30, {4});
  const TestFolder folder;
  const std::string path = folder.path("s");
  materialize(source, chain(kChain), 2, path, with_codec("none"));
  for (const auto& [name, content] : files_of(path)) {
    const std::size_t step = std::max<std::size_t>(1, content.size() / 40);
    for (std::size_t at = 0; at < content.size(); at += step) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ 4);
      set_content(path + "/" + name, changed);
      EXPECT_FALSE(verify_store(path).empty()) << name << " at " << at;
      // What is read is right, or refused.
      try {
        const auto store = open_store(path);
        EXPECT_TRUE(name.ends_with(".tar")) << name << " at " << at;
        for (SampleId id = 0; id < 30; ++id) {
          const std::string got = from_store(*store, id);
          if (got != test::expected(*source, chain(kChain), 2, id)) {
            EXPECT_THAT(got, HasSubstr("damaged"));
          }
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kInvalidArgument);
      }
    }
    set_content(path + "/" + name, content);
  }
  EXPECT_THAT(verify_store(path), IsEmpty());
}

}  // namespace
}  // namespace cutwater
