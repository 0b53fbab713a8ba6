// SPDX-License-Identifier: Apache-2.0
// The chain itself: cuts, names, fingerprints, draws. pipeline_run_test.cc executes it.
#include "cutwater/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/test_ops.h"
#include "ops/all_ops.h"

namespace cutwater {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

Pipeline real(std::string_view text) { return Pipeline::parse(text, all_ops()); }
Pipeline toy(std::string_view text) { return Pipeline::parse(text, test::test_table()); }

std::vector<std::string> cut_names(const Pipeline& pipeline) {
  std::vector<std::string> names;
  for (Cut cut = 0; cut <= pipeline.last_cut(); ++cut) names.push_back(pipeline.cut_name(cut));
  return names;
}

TEST(Pipeline, WithoutOpsHasOneStableCut) {
  const Pipeline empty = toy("");
  EXPECT_EQ(empty.last_cut(), 0);
  EXPECT_EQ(empty.frontier(), 0);
  EXPECT_TRUE(empty.stable(0));
  EXPECT_EQ(empty.to_string(), "");
  EXPECT_THAT(cut_names(empty), ElementsAre("source"));
}

TEST(Pipeline, NamesItsCutsAndFindsThem) {
  const Pipeline pipeline = real("decode | resize(8) | center_crop(6) | resize(4) | resize(2)");
  EXPECT_THAT(cut_names(pipeline), ElementsAre("source", "entropy", "decode", "resize",
                                               "center_crop", "resize#2", "resize#3"));
  for (Cut cut = 0; cut <= pipeline.last_cut(); ++cut) {
    EXPECT_EQ(pipeline.cut_named(pipeline.cut_name(cut)), cut);
    EXPECT_EQ(pipeline.cut_named(std::to_string(cut)), cut);
  }
  for (const char* name : {"resize#4", "resize#1", "7", "-1", "", "1x", "99999999999999999999"})
    EXPECT_THAT([&] { (void)pipeline.cut_named(name); },
                ThrowsMessage<Error>(StrEq("no cut '" + std::string(name) +
                                           "' in this pipeline (known: 0..6, source entropy decode "
                                           "resize center_crop resize#2 resize#3)")));
}

TEST(Pipeline, IsStableUpToTheFirstDraw) {
  const std::pair<const char*, Cut> table[] = {
      {"decode", 2},
      {"decode | resize(8) | to_tensor", 4},
      {"decode | resize(8) | random_horizontal_flip | to_tensor", 3},
      {"decode | random_horizontal_flip | random_vertical_flip", 2},
      {"decode | random_crop(4)", 2},
      {"decode | random_crop(4, padding=2)", 3},  // padding does not draw
  };
  for (const auto& [text, frontier] : table) {
    const Pipeline pipeline = real(text);
    EXPECT_EQ(pipeline.frontier(), frontier) << text;
    for (Cut cut = 0; cut <= pipeline.last_cut(); ++cut)
      EXPECT_EQ(pipeline.stable(cut), cut <= frontier) << text;
  }
}

TEST(Pipeline, ExpandsPaddingIntoAStepOfItsOwn) {
  const Pipeline pipeline =
      real("decode | random_crop(4, padding=[1, 2], fill=9, padding_mode=edge)");
  ASSERT_EQ(pipeline.ops().size(), 2U);
  EXPECT_THAT(cut_names(pipeline),
              ElementsAre("source", "entropy", "decode", "pad", "random_crop"));
  EXPECT_EQ(pipeline.steps()[2].op.to_string(),
            "pad(padding=[1, 2], fill=[9], padding_mode=\"edge\")");
  EXPECT_EQ(pipeline.steps()[3].op.to_string(),
            "random_crop(size=4, fill=[9], padding_mode=\"edge\")");
  EXPECT_EQ(pipeline.steps()[2].position, 2);
  EXPECT_EQ(pipeline.steps()[2].part, 0);
  EXPECT_EQ(pipeline.steps()[3].position, 2);
  EXPECT_EQ(pipeline.steps()[3].part, 1);
  EXPECT_EQ(pipeline.to_string(),
            "decode | random_crop(size=4, padding=[1, 2], fill=[9], padding_mode=\"edge\")")
      << "what the user wrote";
}

TEST(Pipeline, RefusesAnOpThatCannotFollowWhenItIsBuilt) {
  EXPECT_THAT([] { real("resize(8)"); },
              ThrowsMessage<Error>(
                  StrEq("resize: needs an image (uint8 pixels, rows x columns x channels), got "
                        "uint8 ?; put decode before it")));
  EXPECT_THAT([] { real("decode | to_tensor | resize(8)"); },
              ThrowsMessage<Error>(HasSubstr("got float32 3x?x? planes; put it before to_tensor")));
  EXPECT_THAT([] { real("decode | to_tensor | to_dtype(uint8) | grayscale"); },
              ThrowsMessage<Error>(HasSubstr("grayscale: needs an image")));
  EXPECT_THAT([] { real("decode | decode"); },
              ThrowsMessage<Error>(HasSubstr("decode comes first, and once")));
  const Pipeline before = real("decode");
  EXPECT_THROW(before.then("normalize", {{"mean", 0.5}, {"std", 0.5}}), Error);
  EXPECT_EQ(before.last_cut(), 2) << "then() leaves its own pipeline alone";
  EXPECT_EQ(before.then("to_tensor", {}).to_string(), "decode | to_tensor");
}

TEST(Pipeline, KnowsItsFieldsAtEachCut) {
  const Pipeline pipeline = real("decode | center_crop([4, 6]) | to_tensor | to_dtype(float16)");
  const TensorSpec specs[] = {
      {DType::kU8, {kUnknown}},
      {DType::kU8, {kUnknown, kUnknown, kUnknown, 3, kUnknown}, Layout::kPacked},
      {DType::kU8, {kUnknown, kUnknown, 3}, Layout::kPixels},
      {DType::kU8, {4, 6, 3}, Layout::kPixels},
      {DType::kF32, {3, 4, 6}, Layout::kPlanes},
      {DType::kF16, {3, 4, 6}, Layout::kPlanes}};
  for (Cut cut = 0; cut <= pipeline.last_cut(); ++cut)
    EXPECT_THAT(pipeline.fields_at(cut), ElementsAre(Pair("image", specs[cut]))) << cut;
}

// Draw keys hold the position in 12 bits: beyond, two ops would share their draws.
TEST(Pipeline, HasAsManyOpsAsDrawKeysCanTellApart) {
  Pipeline pipeline = toy("");
  const Op op = make_op(test::test_table(), "typed", {});
  for (int i = 0; i < 4095; ++i) pipeline = pipeline.then(op);
  EXPECT_THAT([&] { (void)pipeline.then(op); },
              ThrowsMessage<Error>(StrEq("a pipeline has at most 4095 ops")));
}

// Caches and servers on other machines hold these: a change of them is a change of format.
TEST(Fingerprint, IsPinned) {
  EXPECT_EQ(real("").fingerprint(), "af412bde4274c7d1aea6bff48d6064db");
  EXPECT_EQ(real("decode | resize(size=256) | center_crop(size=224)").fingerprint(),
            "0704780149fa1f73ce94de77b3da6966");
}

TEST(Fingerprint, OfACutDependsOnTheStepsBeforeItOnly) {
  const Pipeline shorter = real("decode | resize(8)"),
                 longer = real("decode | resize(8) | center_crop(4)"),
                 other = real("decode | resize(9) | center_crop(4)");
  for (Cut cut = 0; cut <= 3; ++cut) EXPECT_EQ(shorter.fingerprint(cut), longer.fingerprint(cut));
  EXPECT_EQ(longer.fingerprint(2), other.fingerprint(2));
  EXPECT_NE(longer.fingerprint(3), other.fingerprint(3));
  EXPECT_NE(longer.fingerprint(4), other.fingerprint(4));
}

TEST(Fingerprint, ChangesWithEachParameter) {
  const std::vector<std::string> texts = {
      "typed",          "typed | typed",      "typed(truth=true)",  "typed(whole=2)",
      "typed(maybe=0)", "typed(real=0.25)",   "typed(list=[1, 1])", "typed(list=[])",
      "typed(size=3)",  "typed(size=[2, 2])", "typed(dtype=int16)", "opaque",
      "jitter",         "jitter(7)",
  };
  std::set<std::string> prints;
  for (const std::string& text : texts) prints.insert(toy(text).fingerprint());
  EXPECT_EQ(prints.size(), texts.size());
  EXPECT_EQ(toy("typed(real=0.5, whole=1)").fingerprint(), toy("typed").fingerprint())
      << "how it is written does not matter";
}

std::int64_t added(const Pipeline& pipeline, SampleId id, std::uint64_t seed, std::uint32_t epoch,
                   std::size_t which = 0) {
  Result<Draws> draws = pipeline.draw(test::stored_sample(id), seed, epoch);
  return std::get<std::int64_t>(pipeline.describe(draws.value()).at(which).values.at(0).second);
}

TEST(Draws, BelongToSeedEpochSampleAndPosition) {
  const Pipeline pipeline = toy("pixels(2, 2) | jitter | jitter");
  std::set<std::int64_t> values;
  int count = 0;
  for (const SampleId id : {0L, 1L, 1L << 40})
    for (const std::uint64_t seed : {0UL, 1UL, ~0UL})
      for (const std::uint32_t epoch : {0U, 1U, ~0U})
        for (const std::size_t which : {0U, 1U}) {
          values.insert(added(pipeline, id, seed, epoch, which));
          EXPECT_EQ(added(pipeline, id, seed, epoch, which),
                    added(pipeline, id, seed, epoch, which));
          ++count;
        }
  EXPECT_EQ(values.size(), static_cast<std::size_t>(count));
}

TEST(Draws, StayWhenWhatDoesNotDrawChanges) {
  const Pipeline pipeline = toy("pixels(2, 2) | opaque | jitter"),
                 other = toy("pixels(4, 4) | window(height=3) | jitter");
  for (SampleId id = 0; id < 20; ++id) EXPECT_EQ(added(pipeline, id, 7, 1), added(other, id, 7, 1));
}

// A decoded sample: these tests need no codec.
Sample decoded_sample(SampleId id, std::int64_t height, std::int64_t width) {
  Sample sample;
  sample.id = id;
  sample.cut = 2;
  const TensorSpec spec{DType::kU8, {height, width, 3}, Layout::kPixels};
  Buffer pixels(spec.bytes());
  std::ranges::fill(pixels.span(), static_cast<std::uint8_t>(id));
  sample.fields.push_back({"image", Tensor(spec, std::move(pixels))});
  return sample;
}

// With padding, random_crop is two steps and the flip's step number moves; its draw must not.
TEST(Draws, AreKeyedByPositionNotByStep) {
  const Pipeline plain = real("decode | random_crop(4) | random_horizontal_flip"),
                 padded = real("decode | random_crop(4, padding=2) | random_horizontal_flip");
  int flips = 0;
  for (SampleId id = 0; id < 64; ++id) {
    const Sample sample = decoded_sample(id, 8, 8);
    Result<Draws> a = plain.draw(sample, 3, 5), b = padded.draw(sample, 3, 5);
    const NamedDraw flip = plain.describe(a.value()).at(1);
    EXPECT_EQ(flip.values, padded.describe(b.value()).at(1).values);
    flips += std::get<bool>(flip.values[0].second) ? 1 : 0;
  }
  EXPECT_GT(flips, 10);
  EXPECT_LT(flips, 54);
}

TEST(Draws, SeeTheShapeThatComesInToTheirOp) {
  const Pipeline pipeline = real("decode | random_crop([4, 4], padding=[0, 3])");
  std::set<std::int64_t> tops, lefts;
  for (SampleId id = 0; id < 300; ++id) {
    Result<Draws> draws = pipeline.draw(decoded_sample(id, 4, 6), 1, 0);
    const NamedValues values = pipeline.describe(draws.value()).at(0).values;
    tops.insert(std::get<std::int64_t>(values[0].second));
    lefts.insert(std::get<std::int64_t>(values[1].second));
  }
  EXPECT_THAT(tops, ElementsAre(0, 1, 2, 3, 4, 5, 6)) << "4 rows and 3 on both sides";
  EXPECT_THAT(lefts, ElementsAre(0, 1, 2));
}

TEST(Draws, CanBeRead) {
  const Pipeline pipeline = real("decode | random_crop(4) | to_tensor | normalize(0, 1)");
  Result<Draws> draws = pipeline.draw(decoded_sample(0, 4, 4), 1, 0);
  const std::vector<NamedDraw> named = pipeline.describe(draws.value());
  ASSERT_EQ(named.size(), 1U);
  EXPECT_EQ(named[0].op, "random_crop");
  EXPECT_EQ(named[0].position, 2);
  const NamedValues expected = {{"top", std::int64_t{0}},
                                {"left", std::int64_t{0}},
                                {"height", std::int64_t{4}},
                                {"width", std::int64_t{4}}};
  EXPECT_EQ(named[0].values, expected);
  EXPECT_TRUE(pipeline.describe(draws.value(), 3).empty()) << "from a later cut on";
}

TEST(Draws, FailWithSampleAndOp) {
  Result<Draws> small = real("decode | random_crop(8)").draw(decoded_sample(41, 4, 4), 0, 0);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.failure().code, Code::kBadSample);
  EXPECT_EQ(
      small.failure().message(),
      "sample 41, random_crop: window 8x8 does not fit image 4x4; pad_if_needed=True pads it");

  Result<Draws> silent = toy("on_sound").draw(test::stored_sample(3), 0, 0);
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.failure().message(), "sample 3, on_sound: the source has no field 'sound'");
}

}  // namespace
}  // namespace cutwater
