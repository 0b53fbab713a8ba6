// SPDX-License-Identifier: Apache-2.0
// Pipeline::run, with ops that tell what was asked of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/test_ops.h"
#include "cutwater/pipeline.h"

namespace cutwater {
namespace {

using test::op_log;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PipelineRun : public testing::Test {
 protected:
  PipelineRun() {
    op_log = {};
    how_.pool = pool_;
  }
  static Pipeline toy(std::string_view text) { return Pipeline::parse(text, test::test_table()); }

  static Draws draws_of(const Pipeline& pipeline, const Sample& sample) {
    return std::move(pipeline.draw(sample, 1, 0)).value();
  }
  Result<Sample> run_all(const Pipeline& pipeline, SampleId id = 5) {
    Sample sample = test::stored_sample(id);
    const Draws draws = draws_of(pipeline, sample);
    return pipeline.run(std::move(sample), 0, pipeline.last_cut(), draws, how_);
  }

  std::shared_ptr<BufferPool> pool_ = BufferPool::create(1 << 20);
  RunContext how_;
};

TEST_F(PipelineRun, TakesTheSampleToItsCut) {
  Result<Sample> made = run_all(toy("pixels(3, 4) | window(top=1, left=2, height=2, width=2)"));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made.value().cut, 2);
  EXPECT_EQ(made.value().id, 5);
  const Tensor& image = *made.value().find("image");
  EXPECT_EQ(image.spec(), (TensorSpec{DType::kU8, {2, 2, 3}}));
  EXPECT_THAT(test::bytes_of(image), ElementsAre(11, 2, 0, 11, 3, 0, 12, 2, 0, 12, 3, 0));
}

TEST_F(PipelineRun, NoStepsGiveTheSampleBack) {
  const Pipeline pipeline = toy("pixels(3, 4)");
  Sample sample = test::stored_sample(1, {1, 2, 3});
  const Draws draws = draws_of(pipeline, sample);
  Result<Sample> same = pipeline.run(std::move(sample), 0, 0, draws, how_);
  EXPECT_THAT(test::bytes_of(*same.value().find("image")), ElementsAre(1, 2, 3));
  EXPECT_TRUE(op_log.events.empty());
}

// An op is asked for what the ops after it need, and for no more.
TEST_F(PipelineRun, MakesOnlyTheNeededRegion) {
  struct {
    const char* text;
    Region made;
  } const table[] = {
      {"pixels(100, 90)", {0, 0, 100, 90}},
      {"pixels(100, 90) | window(10, 20, 30, 40)", {10, 20, 30, 40}},
      {"pixels(100, 90) | window(10, 20, 30, 40) | window(1, 2, 3, 4)", {11, 22, 3, 4}},
      {"pixels(100, 90) | jitter | window(10, 20, 30, 40)", {10, 20, 30, 40}},
      {"pixels(100, 90) | window(10, 20, 30, 40) | jitter", {10, 20, 30, 40}},
      {"pixels(100, 90) | opaque | window(10, 20, 30, 40)", {0, 0, 100, 90}},
      {"pixels(100, 90) | window(10, 20, 30, 40) | opaque | window(1, 1, 1, 1)", {10, 20, 30, 40}},
  };
  for (const auto& row : table) {
    op_log = {};
    ASSERT_TRUE(run_all(toy(row.text)).ok());
    ASSERT_EQ(op_log.regions.size(), 1U) << row.text;
    EXPECT_EQ(op_log.regions[0], row.made) << row.text;
  }
}

TEST_F(PipelineRun, TheCutItselfIsMadeWhole) {
  const Pipeline pipeline = toy("pixels(100, 90) | window(10, 20, 30, 40)");
  Sample sample = test::stored_sample(0);
  const Draws draws = draws_of(pipeline, sample);
  Result<Sample> half = pipeline.run(std::move(sample), 0, 1, draws, how_);
  ASSERT_TRUE(half.ok());
  EXPECT_THAT(op_log.regions, ElementsAre(Region{0, 0, 100, 90}));
  Result<Sample> rest = pipeline.run(std::move(half).value(), 1, 2, draws, how_);
  EXPECT_EQ(test::bytes_of(*rest.value().find("image")),
            test::bytes_of(*run_all(pipeline).value().find("image")));
}

TEST_F(PipelineRun, RefusesCutsThatDoNotFit) {
  const Pipeline pipeline = toy("pixels(3, 4) | opaque");
  const std::pair<Cut, Cut> table[] = {{1, 2}, {-1, 1}, {0, 3}, {0, -1}, {2, 1}};
  for (const auto& [from, to] : table) {
    Sample sample = test::stored_sample(9);
    const Draws draws = draws_of(pipeline, sample);
    const Result<Sample> refused = pipeline.run(std::move(sample), from, to, draws, how_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.failure().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.failure().message(),
              "sample 9: cannot run cuts " + std::to_string(from) + ".." + std::to_string(to) +
                  " of a pipeline with cuts 0..2 on a sample that stands at cut 0");
  }
  const Result<Sample> undrawn = pipeline.run(test::stored_sample(9), 0, 2, Draws{}, how_);
  EXPECT_FALSE(undrawn.ok()) << "draws of another pipeline";
}

TEST_F(PipelineRun, FailuresCarryOpAndSample) {
  struct {
    const char* text;
    Code code;
    const char* message;
  } const table[] = {
      {"pixels(2, 2) | refuses | opaque", Code::kBadSample, "sample 77, refuses: cannot be"},
      {"pixels(2, 2) | refuses(false)", Code::kInternal, "sample 77, refuses: a surprise"},
  };
  for (const auto& row : table) {
    const Result<Sample> failed = run_all(toy(row.text), 77);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.failure().code, row.code);
    EXPECT_EQ(failed.failure().sample, 77);
    EXPECT_EQ(failed.failure().op, "refuses");
    EXPECT_EQ(failed.failure().message(), row.message);
  }
  const Pipeline mute = toy("on_sound");
  const Result<Sample> silent =
      mute.run(test::stored_sample(4), 0, 1, Draws{std::vector<DrawnValues>(1)}, how_);
  EXPECT_EQ(silent.failure().message(), "sample 4, on_sound: the source has no field 'sound'");
}

TEST_F(PipelineRun, AsksForItsMemoryOnceBeforeTheFirstOp) {
  std::vector<std::size_t> asked;
  how_.reserve = [&](std::size_t bytes) {
    asked.push_back(bytes);
    op_log.events.emplace_back("reserve");
  };
  ASSERT_TRUE(run_all(toy("pixels(100, 90) | opaque | window(0, 0, 10, 10)")).ok());
  EXPECT_THAT(op_log.events, ElementsAre("reserve", "pixels", "opaque", "window"));
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_GE(asked[0], 2U * 100 * 90 * 3 + 1000) << "input and output of opaque, scratch of pixels";
  EXPECT_LE(asked[0], 3U * 100 * 90 * 3 + 1000);

  asked.clear();
  ASSERT_TRUE(run_all(toy("pixels(100, 90) | window(0, 0, 10, 10)")).ok());
  EXPECT_LT(asked.at(0), 100U * 90 * 3) << "what is not made takes no memory";
}

TEST_F(PipelineRun, ARefusedReserveRunsNothing) {
  how_.reserve = [](std::size_t) { throw Error(Code::kCancelled, "closed"); };
  const Result<Sample> failed = run_all(toy("pixels(2, 2)"), 8);
  EXPECT_EQ(failed.failure().code, Code::kCancelled);
  EXPECT_EQ(failed.failure().message(), "sample 8, pixels: closed");
  EXPECT_TRUE(op_log.events.empty());
}

class OneSlot : public SlotProvider {
 public:
  TensorSpan slot(std::string_view field, const TensorSpec& spec) override {
    op_log.events.push_back("slot " + std::string(field) + " " + to_string(spec));
    bytes.assign(spec.bytes(), 0);
    return {spec, bytes.data()};
  }
  std::vector<std::uint8_t> bytes;
};

TEST_F(PipelineRun, TheLastOpWritesTheSlot) {
  const Pipeline pipeline = toy("pixels(9, 9) | opaque | window(1, 2, 2, 2) | jitter");
  const std::vector<std::uint8_t> expected =
      test::bytes_of(*run_all(pipeline).value().find("image"));
  op_log = {};
  OneSlot slot;
  how_.slots = &slot;
  Result<Sample> made = run_all(pipeline);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT(op_log.events,
              ElementsAre("pixels", "opaque", "window", "slot image uint8 2x2x3", "jitter"));
  EXPECT_EQ(slot.bytes, expected);
  EXPECT_FALSE(made.value().find("image")->owns_bytes());
  EXPECT_EQ(made.value().find("image")->view().bytes(), slot.bytes.data());
}

class NoSlot : public SlotProvider {
 public:
  TensorSpan slot(std::string_view, const TensorSpec&) override {
    throw Error(Code::kInvalidArgument, "does not fit the batch");
  }
};

TEST_F(PipelineRun, ASlotMayBeRefused) {
  NoSlot slot;
  how_.slots = &slot;
  const Result<Sample> failed = run_all(toy("pixels(2, 2) | jitter"), 6);
  EXPECT_EQ(failed.failure().message(), "sample 6, jitter: does not fit the batch");
}

TEST_F(PipelineRun, GivesItsMemoryBack) {
  {
    Result<Sample> made = run_all(toy("pixels(50, 50) | opaque | opaque | window(0, 0, 4, 4)"));
    EXPECT_LE(pool_->used_bytes(), 2 * 4096U)
        << "the result only, in a block of at most twice its size";
  }
  EXPECT_EQ(pool_->used_bytes(), 0U);
  ASSERT_FALSE(run_all(toy("pixels(50, 50) | refuses")).ok());
  EXPECT_EQ(pool_->used_bytes(), 0U);
}

TEST_F(PipelineRun, CountsTheCallsOfEachOp) {
  const Pipeline pipeline = toy("pixels(2, 2) | opaque | jitter");
  std::vector<OpTime> times(3);
  how_.times = &times;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run_all(pipeline).ok());
  for (const OpTime& time : times) EXPECT_EQ(time.calls, 4U);
}

TEST_F(PipelineRun, GroupsAreSingleOpsWhereNothingFuses) {
  const Pipeline pipeline = toy("pixels(2, 2) | opaque | jitter");
  const std::vector<Group> groups = pipeline.groups(1, 3, true);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(pipeline.name_of(groups[0]), "opaque");
  EXPECT_EQ(groups[0].begin, 1);
  EXPECT_EQ(groups[1].end, 3);
  EXPECT_EQ(groups[1].fusion, nullptr);
}

TEST_F(PipelineRun, OpsThatHaveNoExcerptsMakeNone) {
  const Pipeline pipeline = toy("pixels(3, 4) | window(top=1, left=2, height=2, width=2)");
  const Sample sample = test::stored_sample(1);
  const Draws draws = draws_of(pipeline, sample);
  EXPECT_FALSE(pipeline.excerpt(sample, draws, how_));
  EXPECT_EQ(pipeline.excerpt_share(sample, draws), 1);
  EXPECT_FALSE(toy("").excerpt(sample, Draws{}, how_));
  EXPECT_TRUE(op_log.events.empty());
}

}  // namespace
}  // namespace cutwater
