// SPDX-License-Identifier: Apache-2.0
#include "serve/sample_maker.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/test_server.h"

namespace cutwater::serve {
namespace {

constexpr int kPhotos = 12;

class SampleMakerTest : public testing::Test {
 protected:
  // Whose samples are always sent in this way.
  std::shared_ptr<Stream> stream(
      const Way& way, const char* text = "decode() | random_resized_crop(24) | to_tensor()") const {
    const Pipeline pipeline = Pipeline::parse(text, all_ops());
    auto stream = std::make_shared<Stream>(Stream{source_, pipeline, 3, nullptr, true});
    stream->book = std::make_shared<WayBook>(pipeline, std::vector<Way>{{}, way});
    return stream;
  }
  static Answer answer(const SampleMaker& maker, const std::shared_ptr<const Stream>& stream,
                       SampleId id, std::uint32_t epoch = 0, double price = 0) {
    Result<Draft> draft = maker.begin({0, id, epoch, price, stream}, true);
    EXPECT_TRUE(draft);
    return maker.finish(draft.value());
  }
  std::vector<std::uint8_t> sent(const std::shared_ptr<const Stream>& stream, SampleId id,
                                 std::uint32_t epoch) const {
    return bytes_of(answer(maker_, stream, id, epoch), id);
  }
  static std::vector<std::uint8_t> bytes_of(Answer answer, SampleId id) {
    EXPECT_EQ(answer.way, 1u) << "of sample " << id;
    std::vector<std::uint8_t> bytes(answer.form.value().size());
    answer.form.value().copy_to(bytes);
    return bytes;
  }

  // Another file under the same name.
  void replace(SampleId id, const image::Picture& picture, std::mt19937& random) const {
    const std::vector<std::uint8_t> file = image::encode(picture, random);
    std::ofstream(source_->path(id), std::ios::binary)
        << std::string_view(reinterpret_cast<const char*>(file.data()), file.size());
  }

  const TestFolder folder_;
  const std::shared_ptr<const Source> source_ = test::photo_folder(folder_, kPhotos);
  static MakerOptions with_cache() {
    MakerOptions options;
    options.cache = memory_cache(std::size_t{64} << 20);
    return options;
  }

  const SampleMaker maker_{{}}, keeps_{with_cache()};
};

TEST_F(SampleMakerTest, SendsTheSameWhateverItHasLearned) {
  for (const Way& way : {Way{0, {}, true}, Way{3, {}, false}}) {
    const auto forgets = stream(way), learns = stream(way);
    learns->hints = std::make_shared<HintBook>(kPhotos, std::size_t{1} << 20);
    for (std::uint32_t epoch = 0; epoch < 4; ++epoch)
      for (SampleId id = 0; id < kPhotos; ++id)
        EXPECT_EQ(sent(learns, id, epoch), sent(forgets, id, epoch))
            << "sample " << id << ", epoch " << epoch;
    EXPECT_EQ(learns->hints->entries(), kPhotos);
    EXPECT_GE(learns->hints->uses(), 3 * kPhotos) << "in every epoch but the first";
  }
}

// What would cost too much to make is worth a copy.
TEST_F(SampleMakerTest, WhatIsKeptIsPricedAsACopy) {
  const char* const kStable = "decode() | resize(8) | center_crop(8)";
  const Way way{Pipeline::parse(kStable, all_ops()).last_cut(), {}, false};
  const auto always = stream(way, kStable), priced = stream(way, kStable);
  priced->always = false;
  for (int i = 0; i < 4; ++i) priced->book->learn(1, {1000, 1}, {400, 1});
  constexpr double kPrice = 1e6;  // bytes a second: more than a sample has
  for (SampleId id = 0; id < kPhotos; ++id) {
    EXPECT_EQ(answer(keeps_, priced, id, 0, kPrice).way, 0u) << "of sample " << id;
    const Answer made = answer(keeps_, always, id);
    EXPECT_EQ(made.cache, CacheUse::kMiss);
    Answer copied = answer(keeps_, priced, id, 1, kPrice);
    EXPECT_EQ(copied.cache, CacheUse::kHit);
    ASSERT_EQ(copied.way, 1u) << "of sample " << id;
    EXPECT_EQ(copied.offers[1].bytes, static_cast<double>(copied.form.value().size()));
    EXPECT_EQ(bytes_of(std::move(copied), id), bytes_of(answer(maker_, always, id), id));
  }
}

TEST_F(SampleMakerTest, AFreshCutIsMadeFromWhatIsKeptAtTheFrontier) {
  const Pipeline pipeline = stream({})->pipeline;
  const auto decoded = stream({pipeline.frontier(), {}, false});
  for (Cut cut = pipeline.frontier() + 1; cut <= pipeline.last_cut(); ++cut) {
    const auto fresh = stream({cut, {}, false});
    for (SampleId id = 0; id < kPhotos; ++id) {
      if (cut == pipeline.frontier() + 1) {
        EXPECT_EQ(answer(keeps_, fresh, id).cache, CacheUse::kNone) << "there is nothing to find";
        EXPECT_EQ(answer(keeps_, decoded, id).cache, CacheUse::kMiss);
      }
      for (const std::uint32_t epoch : {0, 1}) {
        Answer made = answer(keeps_, fresh, id, epoch);
        EXPECT_EQ(made.cache, CacheUse::kHit);
        EXPECT_EQ(bytes_of(std::move(made), id), sent(fresh, id, epoch)) << "sample " << id;
      }
    }
  }
}

// A file may be replaced while a stream of it goes on: its draws are then those of the new one, and
// their boxes would lie outside of what was kept of the old one.
TEST_F(SampleMakerTest, WhatIsKeptOfAFileOfAnotherSizeIsAsIfItWereNot) {
  const Pipeline pipeline = stream({})->pipeline;
  const auto decoded = stream({pipeline.frontier(), {}, false});
  const auto fresh = stream({pipeline.last_cut(), {}, false});
  std::mt19937 random(7);
  constexpr SampleId kMadeFrom = 0, kSentAsKept = 1;
  for (const auto& [width, height] : {std::pair(300, 280), {20, 16}, {16, 20}}) {
    for (const SampleId id : {kMadeFrom, kSentAsKept}) {
      (void)answer(keeps_, decoded, id);
      EXPECT_EQ(answer(keeps_, decoded, id).cache, CacheUse::kHit);
      replace(id, {.width = width, .height = height, .layout = image::kLayouts[3]}, random);
    }
    for (const std::uint32_t epoch : {0, 1, 2, 3}) {
      Answer made = answer(keeps_, fresh, kMadeFrom, epoch);
      EXPECT_EQ(made.cache, CacheUse::kNone) << width << "x" << height;
      EXPECT_EQ(bytes_of(std::move(made), kMadeFrom), sent(fresh, kMadeFrom, epoch))
          << width << "x" << height << ", epoch " << epoch;
    }
    Answer made = answer(keeps_, decoded, kSentAsKept);
    EXPECT_EQ(made.cache, CacheUse::kMiss) << width << "x" << height;
    EXPECT_EQ(bytes_of(std::move(made), kSentAsKept), sent(decoded, kSentAsKept, 0));
    EXPECT_EQ(answer(keeps_, decoded, kSentAsKept).cache, CacheUse::kHit) << "of the new one";
  }
}

// What is on trial is no answer, but it reads as much.
TEST_F(SampleMakerTest, NothingIsTriedFromWhatIsKeptOfAFileOfAnotherSize) {
  const auto fresh = stream({stream({})->pipeline.last_cut(), {}, false});
  const auto decoded = stream({fresh->pipeline.frontier(), {}, false});
  (void)answer(keeps_, decoded, 0);
  std::mt19937 random(7);
  replace(0, {.width = 300, .height = 280, .layout = image::kLayouts[3]}, random);
  fresh->always = false;
  const Draft draft = keeps_.begin({0, 0, 0, 1e12, fresh}, true).value();
  ASSERT_EQ(draft.on_trial, 1u);
  EXPECT_GT(keeps_.try_another(draft, false), 0);
  EXPECT_EQ(answer(keeps_, decoded, 0).cache, CacheUse::kMiss);
}

// A way that is only guessed might never be chosen, and a server that is always busy would never
// know. Of what is known, nobody waits for more.
TEST_F(SampleMakerTest, WhatIsOnlyGuessedIsTriedAlsoWhereOthersWait) {
  const auto priced = stream({3, {}, false});
  priced->always = false;
  const auto begun = [&](SampleId id) {
    constexpr double kPrice = 1e12;
    return maker_.begin({0, id, 0, kPrice, priced}, true).value();
  };
  const Draft drafts[] = {begun(0), begun(1)};
  for (const Draft& draft : drafts) {
    EXPECT_EQ(draft.way, 0u);
    ASSERT_EQ(draft.on_trial, 1u);
    EXPECT_TRUE(priced->book->is_guessed(1, draft.facts));
    EXPECT_GT(maker_.try_another(draft, true), 0);
  }
  EXPECT_FALSE(priced->book->is_guessed(1, drafts[0].facts)) << "the first finds nothing warm";
  EXPECT_EQ(maker_.try_another(drafts[1], true), 0);
  EXPECT_GT(maker_.try_another(drafts[1], false), 0);
}

TEST_F(SampleMakerTest, TrainersOfADataSetShareWhatIsLearned) {
  DataSets sets({{"data", source_}}, all_ops(), 1);
  const auto stream_of = [&](const char* text) {
    const Pipeline pipeline = Pipeline::parse(text, all_ops());
    wire::pb::Begin begin;
    begin.set_name("data");
    begin.set_version(wire::kVersion);
    begin.set_identity(source_->identity());
    begin.set_pipeline(pipeline.to_string());
    begin.set_fingerprint(pipeline.fingerprint());
    begin.add_ways();
    begin.add_ways()->set_excerpt(true);
    begin.set_always(true);
    return sets.stream(begin);
  };
  const auto one = stream_of("decode() | random_resized_crop(24) | to_tensor()");
  const auto other = stream_of("decode() | random_crop(20) | to_tensor()");
  for (SampleId id = 0; id < kPhotos; ++id) (void)sent(one, id, 0);
  const std::int64_t before = one->hints->uses();
  for (SampleId id = 0; id < kPhotos; ++id) {
    auto alone = std::make_shared<Stream>(*other);
    alone->hints = nullptr;
    EXPECT_EQ(sent(other, id, 0), sent(alone, id, 0)) << "sample " << id;
  }
  EXPECT_EQ(other->hints->uses() - before, kPhotos);
}

}  // namespace
}  // namespace cutwater::serve
