// SPDX-License-Identifier: Apache-2.0
// Chains of real ops: fused or not, in one run or cut anywhere, the bytes are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "cutwater/pipeline.h"
#include "ops/all_ops.h"
#include "ops/presets.h"
#include "ops/test_images.h"

namespace cutwater {
namespace {

using test::Data;

Pipeline parsed(std::string_view text) { return Pipeline::parse(text, all_ops()); }

// The bytes at `to`, or why there are none.
std::string bytes_or_reason(const Pipeline& pipeline, Sample sample, Cut to, const Draws& draws,
                            bool fuse) {
  static const auto pool = BufferPool::create(64 << 20);
  RunContext how;
  how.pool = pool;
  how.fuse = fuse;
  const Cut from = sample.cut;
  Result<Sample> made = pipeline.run(std::move(sample), from, to, draws, how);
  if (!made) return "refused: " + made.failure().message();
  const Data bytes = test::bytes_of(made.value());
  return to_string(made.value().find(kImageField)->spec()) + ":" +
         std::string(bytes.begin(), bytes.end());
}

void expect_fusion_changes_nothing(const Pipeline& pipeline, const TensorSpec& spec, SampleId id) {
  const Data pixels = test::noise(spec.bytes(), static_cast<unsigned>(id));
  Result<Draws> draws = pipeline.draw(test::sample_of(id, 2, spec, pixels), 5, 0);
  if (!draws) return;  // too small for its window
  const auto run = [&](bool fuse) {
    return bytes_or_reason(pipeline, test::sample_of(id, 2, spec, pixels), pipeline.last_cut(),
                           draws.value(), fuse);
  };
  ASSERT_EQ(run(true), run(false)) << pipeline.to_string() << " on " << to_string(spec);
}

// From the stored bytes on, or from one of the cuts inside decode and behind it.
TEST(Fusion, TheWholeImageChainIsOnePass) {
  for (const std::string_view text : {
           "decode | random_resized_crop(6) | random_horizontal_flip | to_tensor | normalize(0.4, "
           "0.2)",
           "decode | random_resized_crop([5, 9], interpolation=bicubic, pillow=12) | to_tensor",
           "decode | resize(9) | center_crop(6) | to_tensor | normalize([0.1, 0.2, 0.3], 0.5)",
           "decode | resize([9, 4], nearest) | random_crop([3, 2]) | random_horizontal_flip",
           "decode | random_crop(6) | center_crop(5) | random_horizontal_flip | to_tensor",
           "decode | center_crop(7) | resize(12, lanczos) | random_crop(5) | to_tensor",
           "decode | random_resized_crop(6) | random_horizontal_flip | to_tensor(true) | "
           "normalize([0.1, 0.2, 0.3], 0.5)",
       }) {
    const Pipeline pipeline = parsed(text);
    for (const Cut from : {0, 1, 2}) {
      const std::vector<Group> groups = pipeline.groups(from, pipeline.last_cut(), true);
      ASSERT_EQ(groups.size(), 1U) << text << " from " << from;
      EXPECT_NE(groups[0].fusion, nullptr);
    }
    for (SampleId id = 0; id < 16; ++id) {
      const Data file = test::stored_bmp(11 + id % 5, 13 + id, static_cast<unsigned>(id));
      const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(file.size())}};
      const Draws draws =
          std::move(pipeline.draw(test::sample_of(id, 0, stored, file), 1, 2)).value();
      const auto run = [&](bool fuse) {
        return bytes_or_reason(pipeline, test::sample_of(id, 0, stored, file), pipeline.last_cut(),
                               draws, fuse);
      };
      ASSERT_EQ(run(true), run(false)) << text;
    }
  }
}

TEST(Fusion, CropsThatReachOutsideRunOpByOp) {
  const Pipeline pipeline = parsed("decode | resize([5, 6]) | center_crop([9, 4]) | to_tensor");
  for (SampleId id = 0; id < 8; ++id)
    expect_fusion_changes_nothing(pipeline, test::image_spec(7 + id, 8), id);
}

TEST(Fusion, BothFlipsAreFused) {
  for (const char* p : {"0", "1"})
    expect_fusion_changes_nothing(parsed("decode | random_horizontal_flip(" + std::string(p) +
                                         ") | to_tensor | normalize(0.4, 0.3)"),
                                  test::image_spec(5, 7), 1);
}

TEST(Fusion, GoesAsFarAsItCanAndNeverAcrossTheCut) {
  const Pipeline pipeline = parsed(
      "decode | random_horizontal_flip | to_tensor | normalize(0.5, 0.5) | to_dtype(float16)");
  const auto names = [&](Cut from, Cut to) {
    std::string text;
    for (const Group& group : pipeline.groups(from, to, true))
      text += (text.empty() ? "" : " ") + pipeline.name_of(group);
    return text;
  };
  EXPECT_EQ(names(0, 6), "decode+random_horizontal_flip+to_tensor+normalize to_dtype");
  EXPECT_EQ(names(1, 6), "decode+random_horizontal_flip+to_tensor+normalize to_dtype");
  EXPECT_EQ(names(2, 6), "random_horizontal_flip+to_tensor+normalize to_dtype");
  EXPECT_EQ(names(0, 4), "decode+random_horizontal_flip+to_tensor");
  EXPECT_EQ(names(0, 1), "entropy");
  EXPECT_EQ(names(3, 4), "to_tensor");
}

// Every chain of up to three ops that can be built at all.
class EveryShortChain : public testing::Test {
 protected:
  static constexpr const char* kOps[] = {"resize([4, 5])",
                                         "resize(3, bicubic)",
                                         "center_crop(4)",
                                         "five_crop(2)",
                                         "random_crop(3, padding=1)",
                                         "random_resized_crop(4)",
                                         "random_horizontal_flip",
                                         "random_vertical_flip",
                                         "pad(2, padding_mode=reflect)",
                                         "grayscale",
                                         "to_tensor",
                                         "normalize(0.5, 0.25)",
                                         "to_dtype(float16)",
                                         "to_dtype(uint8)"};

  template <class Visit>
  void visit_chains(const Pipeline& pipeline, int more, const Visit& visit) {
    if (pipeline.last_cut() > 2) visit(pipeline);
    if (more == 0) return;
    for (const char* op : kOps) {
      std::optional<Pipeline> longer;
      try {
        longer = parsed(pipeline.to_string() + " | " + op);
      } catch (const Error&) {
        continue;  // cannot follow
      }
      visit_chains(*longer, more - 1, visit);
    }
  }
};

TEST_F(EveryShortChain, IsTheSameFused) {
  int chains = 0;
  visit_chains(parsed("decode"), 3, [&](const Pipeline& pipeline) {
    ++chains;
    for (const TensorSpec& image :
         {test::image_spec(1, 1), test::image_spec(6, 3), test::image_spec(9, 7)})
      expect_fusion_changes_nothing(pipeline, image, chains);
  });
  EXPECT_GT(chains, 500);
}

TEST(Cuts, TheBytesAtACutDoNotDependOnWhatFollows) {
  for (const std::string_view text : {
           "decode | resize(9) | center_crop(6) | to_tensor | normalize(0.5, 0.5)",
           "decode | random_resized_crop(6) | random_horizontal_flip | to_tensor | normalize(0.4, "
           "0.2)",
           "decode | random_crop(8, padding=3, padding_mode=reflect) | random_vertical_flip | "
           "grayscale",
           "decode(exif=true) | pad([1, 2]) | resize([5, 4], lanczos) | five_crop(3) | to_tensor | "
           "normalize([0.1, 0.2, 0.3], 0.5) | to_dtype(float16)",
           "decode | grayscale(3) | random_crop([20, 5], pad_if_needed=true) | center_crop(7) | "
           "to_dtype(int16, true)",
       }) {
    const Pipeline pipeline = parsed(text);
    for (SampleId id = 0; id < 4; ++id) {
      const Data file = test::stored_bmp(11 + id, 13, static_cast<unsigned>(id));
      const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(file.size())}};
      const Draws draws =
          std::move(pipeline.draw(test::sample_of(id, 0, stored, file), 1, 2)).value();
      const Cut last = pipeline.last_cut();
      for (const bool fuse : {true, false}) {
        const std::string expected =
            bytes_or_reason(pipeline, test::sample_of(id, 0, stored, file), last, draws, fuse);
        ASSERT_THAT(expected, Not(testing::StartsWith("refused")));
        for (Cut cut = 1; cut < last; ++cut) {
          RunContext how;
          how.pool = BufferPool::create(1 << 20);
          how.fuse = fuse;
          Result<Sample> half =
              pipeline.run(test::sample_of(id, 0, stored, file), 0, cut, draws, how);
          EXPECT_EQ(bytes_or_reason(pipeline, std::move(half).value(), last, draws, fuse), expected)
              << text << " cut at " << cut;
        }
      }
    }
  }
}

// A cache holds the sample at a cut; what is drawn after it must not depend on that.
TEST(Cuts, TheDrawsAreTheSameFromAnyCut) {
  const Pipeline pipeline =
      parsed("decode | resize(9) | random_crop(6, padding=2) | random_horizontal_flip");
  const Data file = test::stored_bmp(11, 13, 1);
  const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(file.size())}};
  const Draws all = std::move(pipeline.draw(test::sample_of(3, 0, stored, file), 1, 2)).value();
  RunContext how;
  how.pool = BufferPool::create(1 << 20);
  for (Cut cut = 1; cut <= pipeline.frontier(); ++cut) {
    Result<Sample> half = pipeline.run(test::sample_of(3, 0, stored, file), 0, cut, all, how);
    const Draws later = std::move(pipeline.draw(half.value(), 1, 2)).value();
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_EQ(pipeline.describe(later)[i].values, pipeline.describe(all)[i].values);
  }
}

TEST(Presets, AreReadableAndFused) {
  for (const auto& [name, text] : presets()) {
    const Pipeline pipeline = named_pipeline(name);
    EXPECT_EQ(pipeline.fingerprint(), parsed(text).fingerprint());
    const auto groups = pipeline.groups(0, pipeline.last_cut(), true);
    EXPECT_NE(groups.front().fusion, nullptr) << name;
  }
  EXPECT_EQ(named_pipeline("decode | to_tensor").to_string(), "decode | to_tensor");
  EXPECT_THAT([] { named_pipeline("imagenet-tain"); },
              testing::ThrowsMessage<Error>(testing::StrEq(
                  "no preset 'imagenet-tain' (known: imagenet-train imagenet-val imagenet "
                  "cubepp-jpg cubepp-png)")));
}

}  // namespace
}  // namespace cutwater
