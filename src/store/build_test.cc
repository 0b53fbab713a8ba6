// SPDX-License-Identifier: Apache-2.0
// What materialize foresees, refuses and stops at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "source/read_file.h"
#include "store/meta.h"
#include "store/shard_writer.h"
#include "store/test_store.h"

namespace cutwater {
namespace {

using test::chain;
using test::files_of;
using test::MemorySource;
using test::some_samples;
using testing::AllOf;

constexpr char kChain[] = "pixels(6, 5) | window(1, 1, 4, 3) | jitter";

MaterializeOptions with_codec(const std::string& codec) {
  MaterializeOptions options;
  options.codec = codec_named(codec);
  options.threads = 2;
  return options;
}

// One sample cannot be read, as the operating system says by this number; 0: all is well.
class SickStorage final : public MemorySource {
 public:
  static constexpr SampleId kSick = 33;  // none that the forecast looks at

  explicit SickStorage(int number) : MemorySource(100), number_(number) {}
  void heal() { number_ = 0; }

  Result<Sample> read(SampleId id, const ReadContext& into) const override {
    if (id != kSick || number_ == 0) return MemorySource::read(id, into);
    const auto fail = [&]() -> Sample { throw_system_error(number_, path(id), "read"); };
    return sample_or_failure(id, fail, [&] { return path(id); });
  }

 private:
  std::atomic<int> number_;
};

TEST(StoreBuild, StopsWhereTheStorageFailsAndGoesOnLater) {
  const TestFolder folder;
  materialize(std::make_shared<SickStorage>(0), chain(kChain), 2, folder.path("whole"),
              with_codec("none"));
  for (const int number : {EIO, ESTALE, ETIMEDOUT}) {
    const auto source = std::make_shared<SickStorage>(number);
    const std::string path = folder.path(std::to_string(number));
    const auto make = [&] { materialize(source, chain(kChain), 2, path, with_codec("none")); };
    EXPECT_THAT(failure_of(make), AllOf(FailsWith(Code::kIo, "it may be sound"),
                                        FailsWith(Code::kIo, "run the same again to go on")));
    EXPECT_FALSE(is_store(path));
    source->heal();
    make();
    EXPECT_EQ(files_of(path), files_of(folder.path("whole")));
  }
}

TEST(StoreBuild, LeavesOutWhatWillNeverBeRead) {
  for (const int number : {ENOENT, EACCES}) {
    const TestFolder folder;
    const StoreInfo info = materialize(std::make_shared<SickStorage>(number), chain(kChain), 2,
                                       folder.path("s"), with_codec("none"));
    ASSERT_EQ(info.bad.size(), 1U);
    EXPECT_EQ(info.bad[0].sample, SickStorage::kSick);
  }
}

TEST(StoreBuild, StopsAtADamagedStore) {
  const TestFolder folder;
  materialize(some_samples(100), chain(kChain), 1, folder.path("a"), with_codec("none"));
  const std::string shard = folder.path("a/shard-000004.tar");
  std::string content = test::content_of(shard);
  content[512 + 128] = static_cast<char>(content[512 + 128] ^ 1);
  test::set_content(shard, content);
  const auto make = [&] {
    materialize(open_store(folder.path("a")), chain(kChain), 2, folder.path("b"),
                with_codec("none"));
  };
  EXPECT_THAT(failure_of(make), FailsWith(Code::kIo, "its bytes in the store are damaged"));
}

TEST(StoreBuild, ForecastsNoRoomForBadSamples) {
  std::set<SampleId> bad;
  for (SampleId id = 200; id < 400; ++id) bad.insert(id);
  const TestFolder folder;
  StoreForecast forecast;
  MaterializeOptions options = with_codec("none");
  options.on_forecast = [&](const StoreForecast& made) { forecast = made; };
  const auto near = [&](const StoreInfo& info) {
    const double bytes = static_cast<double>(info.bytes);
    // The forecast has the index, too.
    EXPECT_NEAR(static_cast<double>(forecast.bytes), bytes + 400 * 92, bytes * 0.1);
  };
  near(materialize(some_samples(400, bad), chain(kChain), 2, folder.path("s"), options));

  // What is there already counts as it is.
  MaterializeOptions stopped = options;
  stopped.threads = 1;
  stopped.on_progress = [](const MaterializeProgress& progress) {
    if (progress.done == progress.samples) throw Error(Code::kCancelled, "enough");
  };
  const auto begin = [&] {
    materialize(some_samples(400, bad), chain(kChain), 2, folder.path("t"), stopped);
  };
  EXPECT_THAT(failure_of(begin), FailsWith(Code::kCancelled, "enough"));
  std::filesystem::remove(folder.path("t/shard-000001.part"));
  near(materialize(some_samples(400, bad), chain(kChain), 2, folder.path("t"), options));
}

TEST(StoreBuild, KnowsWhatTheCodecGives) {
  const TestFolder folder;
  const auto made = [&](const char* codec) {
    return materialize(some_samples(20, {3}), chain(kChain), 2, folder.path(codec),
                       with_codec(codec));
  };
  const StoreInfo none = made("none"), lz4 = made("lz4");
  EXPECT_EQ(none.payload_bytes, none.raw_bytes);
  EXPECT_GT(lz4.payload_bytes, lz4.raw_bytes) << "36 bytes in a frame";
  EXPECT_EQ(made("lz4").payload_bytes, lz4.payload_bytes) << "also where it is found";
}

TEST(StoreBuild, LimitsAllFieldsOfASampleTogether) {
  constexpr std::size_t kBytes = std::size_t{5} << 28;  // 1.25 GiB; never touched
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const TensorSpec spec{DType::kU8, {kBytes}};
  StorePlan plan;
  plan.cut = 1;
  Sample sample;
  sample.cut = 1;
  SampleMembers members(plan);
  const auto add = [&](const char* name) {
    plan.fields.emplace_back(name);
    sample.fields.push_back({name, Tensor::borrowed({spec, static_cast<std::uint8_t*>(memory)})});
  };
  add("one");
  EXPECT_EQ(members.of(sample, "path").size(), 1U);
  add("two");
  EXPECT_THAT(failure_of([&] { members.of(sample, "path"); }),
              FailsWith(Code::kInvalidArgument, "all fields together"));
  ::munmap(memory, kBytes);
}

TEST(StoreBuild, RefusesShardsThatCannotBeListed) {
  StorePlan plan;
  plan.fields = {"image"};
  plan.samples = 1'000'000;
  EXPECT_NO_THROW(check_can_list(plan));
  plan.samples = 2'000'000;
  EXPECT_THAT(failure_of([&] { check_can_list(plan); }),
              FailsWith(Code::kInvalidArgument, "would have 2000000 shards"));
  // As many as are let in can be listed and read.
  StoreMeta meta;
  meta.plan = plan;
  meta.plan.samples = 1000;
  meta.index = {~std::uint64_t{0} >> 1, std::string(32, 'f')};
  meta.shards.resize(1000, meta.index);
  EXPECT_LT(to_text(meta).size(), to_text(meta.plan).size() + 1000 * 192);
}

}  // namespace
}  // namespace cutwater
