// SPDX-License-Identifier: Apache-2.0
// Files that are replaced while they are served.
#include "serve/data_sets.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ops/all_ops.h"
#include "ops/image/test_jpeg.h"
#include "run/test_source.h"
#include "serve/sample_maker.h"
#include "source/test_folder.h"

namespace cutwater::serve {
namespace {

namespace pb = wire::pb;

// Whose stamp is what a test says.
class StampedSource final : public test::MemorySource {
 public:
  explicit StampedSource(std::function<std::string()> look)
      : MemorySource(3), look_(std::move(look)) {}
  std::string stamp() const override { return look_(); }

 private:
  const std::function<std::string()> look_;
};

class DataSetsTest : public testing::Test {
 protected:
  StampLooks by_clock() {
    StampLooks looks;
    looks.most_wait_s = 60;
    looks.now = [this] { return now_.load(); };
    return looks;
  }
  static std::string stamp_of(const DataSets& sets) {
    pb::DescribeRequest request;
    request.set_name("data");
    return sets.describe(request).stamp();
  }
  static std::shared_ptr<const Stream> stream_of(DataSets& sets, const Source& source,
                                                 const Pipeline& pipeline) {
    pb::Begin begin;
    begin.set_name("data");
    begin.set_version(wire::kVersion);
    begin.set_identity(source.identity());
    begin.set_pipeline(pipeline.to_string());
    begin.set_fingerprint(pipeline.fingerprint());
    begin.add_ways();
    begin.add_ways()->set_cut(pipeline.last_cut());
    begin.set_always(true);
    return sets.stream(begin);
  }
  // A JPEG in place of what was there; always other bytes, and another number of them.
  void photo(const std::string& name, int width, int height) {
    quality_ -= 20;
    const image::Picture picture{
        .width = width, .height = height, .layout = image::kLayouts[3], .quality = quality_};
    const std::vector<std::uint8_t> file = image::encode(picture, random_);
    folder_.file(name, {reinterpret_cast<const char*>(file.data()), file.size()});
  }

  const TestFolder folder_;
  std::atomic<double> now_ = 0;  // what their clock says

 private:
  std::mt19937 random_{7};
  int quality_ = 100;
};

TEST_F(DataSetsTest, ATrainerIsToldTheStampOfTheFilesAsTheyAreNow) {
  folder_.file("one.jpg", "first");
  DataSets sets({{"data", open_folder(folder_.path())}}, all_ops(), 1, by_clock());
  const std::string first = stamp_of(sets);
  EXPECT_EQ(first, open_folder(folder_.path())->stamp());
  folder_.file("one.jpg", "another");
  now_ = 0.5;
  EXPECT_EQ(stamp_of(sets), first) << "it is not looked at for everybody";
  now_ = 1;
  const std::string second = stamp_of(sets);
  EXPECT_NE(second, first);
  EXPECT_EQ(second, open_folder(folder_.path())->stamp());
}

TEST_F(DataSetsTest, WhatTakesLongIsLookedAtSeldom) {
  int looked = 0;
  const auto source = std::make_shared<StampedSource>([&] {
    now_ = now_.load() + 10;
    return std::to_string(++looked);
  });
  DataSets sets({{"data", source}}, all_ops(), 1, by_clock());
  for (const double now : {10.0, 209.0}) {
    now_ = now;
    EXPECT_EQ(stamp_of(sets), "1") << now;
  }
  now_ = 210;
  EXPECT_EQ(stamp_of(sets), "2") << "after twenty times as long";
}

TEST_F(DataSetsTest, NobodyWaitsForALookToTheEnd) {
  std::atomic<int> looked = 0;
  std::promise<void> open;
  const auto source =
      std::make_shared<StampedSource>([&looked, opened = open.get_future().share()] {
        const int look = ++looked;
        if (look > 1) opened.wait();
        return std::to_string(look);
      });
  StampLooks impatient = by_clock();
  impatient.most_wait_s = 0;
  DataSets sets({{"data", source}}, all_ops(), 1, impatient);
  for (const double now : {1.0, 1000.0}) {
    now_ = now;
    EXPECT_EQ(stamp_of(sets), "1") << "that is the last one that was seen";
  }
  open.set_value();
  while (stamp_of(sets) == "1") std::this_thread::yield();
  EXPECT_EQ(stamp_of(sets), "2") << "one looks, whoever asks meanwhile";
}

// Where every sample has the same shape, nothing but the key tells the old from the new.
TEST_F(DataSetsTest, AStreamThatBeginsIsMadeOfTheFilesAsTheyAreNow) {
  photo("one.jpg", 70, 60);
  const std::shared_ptr<const Source> source = open_folder(folder_.path());
  DataSets sets({{"data", source}}, all_ops(), 1, by_clock());
  const Pipeline pipeline = Pipeline::parse("decode() | resize(8) | center_crop(8)", all_ops());
  MakerOptions with_cache;
  with_cache.cache = memory_cache(std::size_t{64} << 20);
  const SampleMaker keeps(with_cache), forgets{MakerOptions()};
  const auto sent = [](const SampleMaker& maker, const std::shared_ptr<const Stream>& stream) {
    Answer answer = maker.finish(maker.begin({0, 0, 0, 0, stream}, true).value());
    EXPECT_EQ(answer.way, 1u);
    std::vector<std::uint8_t> bytes(answer.form.value().size());
    answer.form.value().copy_to(bytes);
    return bytes;
  };
  const auto before = stream_of(sets, *source, pipeline);
  const std::vector<std::uint8_t> old = sent(keeps, before);
  EXPECT_EQ(sent(forgets, before), old);
  photo("one.jpg", 70, 60);
  now_ = 1;
  const auto after = stream_of(sets, *source, pipeline);
  EXPECT_NE(after->data, before->data);
  const std::vector<std::uint8_t> made = sent(keeps, after);
  EXPECT_NE(made, old);
  EXPECT_EQ(made, sent(forgets, after));
}

}  // namespace
}  // namespace cutwater::serve
