// SPDX-License-Identifier: Apache-2.0
// Pipeline::excerpt on chains of real ops: what is made of an excerpt is what is made of the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cutwater/pipeline.h"
#include "ops/all_ops.h"
#include "ops/image/test_jpeg.h"
#include "ops/presets.h"
#include "ops/test_images.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;
using test::Data;

class Excerpts : public testing::Test {
 protected:
  Excerpts() { how_.pool = BufferPool::create(std::size_t{1} << 28); }

  static Sample stored(SampleId id, const Data& file) {
    const TensorSpec spec{DType::kU8, {static_cast<std::int64_t>(file.size())}};
    Sample sample = test::sample_of(id, 0, spec, file);
    sample.fields.push_back({"label", Tensor::scalar(7)});
    return sample;
  }

  // The bytes at the last cut, or why there are none.
  std::string made_of(const Pipeline& pipeline, Sample sample, const Draws& draws, bool fuse) {
    how_.fuse = fuse;
    Result<Sample> made = pipeline.run(std::move(sample), 0, pipeline.last_cut(), draws, how_);
    if (!made) return "refused: " + made.failure().message();
    const Data bytes = test::bytes_of(made.value());
    return to_string(made.value().find(kImageField)->spec()) + ":" +
           std::string(bytes.begin(), bytes.end());
  }

  // Whether there is an excerpt; if so, everything is the same with it.
  bool is_the_same(const Pipeline& pipeline, SampleId id, const Data& file, bool unfused) {
    constexpr std::uint32_t kEpoch = 5;
    Result<Draws> draws = pipeline.draw(stored(id, file), 3, kEpoch);
    if (!draws) return false;
    const Sample whole = stored(id, file);
    std::optional<Sample> excerpt = pipeline.excerpt(whole, draws.value(), how_);
    const double share = pipeline.excerpt_share(whole, draws.value());
    EXPECT_GT(share, 0);
    EXPECT_LE(share, 1);
    if (!excerpt) return false;
    EXPECT_EQ(excerpt->id, id);
    EXPECT_EQ(excerpt->cut, 0);
    EXPECT_EQ(std::memcmp(excerpt->find("label")->view().bytes(),
                          whole.find("label")->view().bytes(), sizeof(std::int64_t)),
              0);
    EXPECT_LT(excerpt->find(kImageField)->spec().bytes(), file.size());
    Result<Draws> again = pipeline.draw(*excerpt, 3, kEpoch);
    EXPECT_TRUE(again.ok());
    for (std::size_t k = 0; k < draws.value().steps.size(); ++k)
      EXPECT_EQ(again.value().steps[k].bytes, draws.value().steps[k].bytes);
    EXPECT_FALSE(pipeline.excerpt(*excerpt, draws.value(), how_)) << "it is one already";
    for (int fuse = 1; fuse >= (unfused ? 0 : 1); --fuse)
      EXPECT_EQ(made_of(pipeline, lent(*excerpt), draws.value(), fuse == 1),
                made_of(pipeline, stored(id, file), draws.value(), fuse == 1))
          << pipeline.to_string() << " of sample " << id;
    return true;
  }

  RunContext how_;
};

TEST_F(Excerpts, GiveTheSameBytesForEveryChain) {
  std::mt19937 random(1);
  for (const std::string_view text : {
           "decode | random_resized_crop(24) | random_horizontal_flip | to_tensor | normalize(0.4, "
           "0.2)",
           "decode(exif=true) | random_resized_crop([15, 9], interpolation=bicubic)",
           "decode | resize(40) | center_crop(26) | to_tensor",
           "decode(exif=true) | random_crop(16) | random_vertical_flip",
           "decode | random_crop(70, padding=9, pad_if_needed=true) | to_tensor",
           "decode | center_crop(33) | grayscale",
           "decode | pad(3) | five_crop(11)",
           "decode",
       }) {
    const Pipeline pipeline = Pipeline::parse(text, all_ops());
    int made = 0;
    for (SampleId id = 0; id < 40; ++id) {
      image::Picture picture = image::random_picture(random);
      picture.progressive = id % 7 == 0;
      Data file = image::encode(picture, random);
      file = image::with_segment(file, 0xFE, Data(2000, 'x'));
      file = image::with_orientation(file, 1 + image::below(random, 8));
      made += is_the_same(pipeline, id, file, true) ? 1 : 0;
    }
    EXPECT_GT(made, 15) << text;
  }
}

TEST_F(Excerpts, OtherSamplesHaveNone) {
  const Pipeline pipeline = Pipeline::parse("decode | center_crop(3)", all_ops());
  const Data bmp = test::stored_bmp(20, 20, 1);
  const Draws draws = std::move(pipeline.draw(stored(1, bmp), 0, 0)).value();
  EXPECT_FALSE(pipeline.excerpt(stored(1, bmp), draws, how_));
  EXPECT_EQ(pipeline.excerpt_share(stored(1, bmp), draws), 1);
  EXPECT_FALSE(pipeline.excerpt(stored(1, {1, 2, 3}), draws, how_)) << "no image at all";
  EXPECT_EQ(pipeline.excerpt_share(stored(1, {1, 2, 3}), draws), 1);
  EXPECT_FALSE(pipeline.excerpt(stored(1, bmp), Draws{}, how_)) << "draws of another pipeline";
  Sample later = stored(1, bmp);
  later.cut = 1;
  EXPECT_FALSE(pipeline.excerpt(later, draws, how_));
  const Pipeline half = Pipeline::parse("entropy", all_ops());
  EXPECT_FALSE(
      half.excerpt(stored(1, bmp), std::move(half.draw(stored(1, bmp), 0, 0)).value(), how_));
}

// To the cut behind decode, all pixels are needed.
TEST_F(Excerpts, AreRefusedOnTheWayToOtherCuts) {
  std::mt19937 random(2);
  const Data file =
      image::encode({.width = 200, .height = 200, .layout = image::kLayouts[5]}, random);
  const Pipeline pipeline = Pipeline::parse("decode | center_crop(30)", all_ops());
  const Draws draws = std::move(pipeline.draw(stored(4, file), 0, 0)).value();
  std::optional<Sample> excerpt = pipeline.excerpt(stored(4, file), draws, how_);
  ASSERT_TRUE(excerpt);
  const Result<Sample> refused = pipeline.run(std::move(*excerpt), 0, 2, draws, how_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.failure().code, Code::kBadSample);
  EXPECT_THAT(refused.failure().message(),
              testing::HasSubstr("sample 4, decode: this is an excerpt of an image"));
}

// Every image of the sample data, through the presets.
TEST_F(Excerpts, GiveTheSameBytesForRealFiles) {
  const char* folder = std::getenv("DATA_DIR");
  if (folder == nullptr) GTEST_SKIP() << "set DATA_DIR to the folder of the sample data";
  SampleId id = 0;
  int made = 0;
  for (const char* name : {"imagenet", "photos", "detect", "odd"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(folder) / name)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      const Data file{std::istreambuf_iterator<char>(stream), {}};
      SCOPED_TRACE(entry.path());
      for (const char* preset : {"imagenet-train", "imagenet-val", "imagenet"})
        made += is_the_same(named_pipeline(preset), id, file, id % 8 == 0) ? 1 : 0;
      ++id;
    }
  EXPECT_GT(made, id / 2);
}

}  // namespace
}  // namespace cutwater
