// SPDX-License-Identifier: Apache-2.0
#include "run/slab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cutwater/error.h"

namespace cutwater {
namespace {

using ::testing::ElementsAre;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

class SlabTest : public testing::Test {
 protected:
  static void put(Slab& slab, std::int64_t index, SampleId id, const char* text,
                  std::int64_t label) {
    std::memcpy(slab.slot(index, id, "image", kImage).bytes(), text, 4);
    std::memcpy(slab.slot(index, id, "label", kLabel).bytes(), &label, sizeof label);
    slab.ids[static_cast<std::size_t>(index)] = id;
    slab.positions[static_cast<std::size_t>(index)] = 100 + id;
  }
  static std::string image(const Slab& slab, std::size_t index) {
    return std::string(reinterpret_cast<const char*>(slab.fields()[0].bytes.data()) + 4 * index, 4);
  }
  static std::int64_t label(const Slab& slab, std::size_t index) {
    std::int64_t value = 0;
    std::memcpy(&value, slab.fields()[1].bytes.data() + sizeof value * index, sizeof value);
    return value;
  }

  static inline const TensorSpec kImage{DType::kU8, {2, 2}}, kLabel{DType::kI64, {}};
  std::shared_ptr<BufferPool> pool_ = BufferPool::create(1 << 20);
};

TEST_F(SlabTest, StartsWithoutMemory) {
  const Slab slab(3, *pool_);
  EXPECT_EQ(slab.slots(), 3);
  EXPECT_EQ(slab.bytes(), 0U);
  EXPECT_EQ(pool_->used_bytes(), 0U);
  EXPECT_THAT(slab.ids, ElementsAre(-1, -1, -1));
  EXPECT_THAT(slab.positions, ElementsAre(-1, -1, -1));
}

TEST_F(SlabTest, SlotsOfAFieldFollowEachOther) {
  Slab slab(3, *pool_);
  const std::uint8_t* const first = slab.slot(0, 7, "image", kImage).bytes();
  EXPECT_EQ(slab.slot(1, 8, "image", kImage).bytes(), first + 4);
  EXPECT_EQ(slab.slot(2, 9, "image", kImage).bytes(), first + 8);
  EXPECT_EQ(slab.slot(0, 7, "image", kImage).bytes(), first) << "asked again";
  slab.slot(0, 7, "label", kLabel);
  EXPECT_EQ(slab.bytes(), 3U * 4 + 3 * 8);
  ASSERT_EQ(slab.fields().size(), 2U);
  EXPECT_EQ(slab.fields()[0].name, "image");
  EXPECT_EQ(slab.fields()[1].name, "label");
}

TEST_F(SlabTest, RefusesAnotherShapeAndNamesBothSamplesInOrder) {
  const char* const message =
      "samples 3 and 9 cannot be in one batch: image is uint8 2x2 and uint8 2x3; give them one "
      "shape "
      "(resize(size=[h, w]), a crop), or use batch_size=1";
  Slab slab(2, *pool_), other(2, *pool_);
  slab.slot(0, 3, "image", kImage);
  EXPECT_THAT(
      [&] {
        slab.slot(1, 9, "image", {DType::kU8, {2, 3}});
      },
      ThrowsMessage<Error>(StrEq(message)));
  // The message is the same whichever came first.
  other.slot(0, 9, "image", {DType::kU8, {2, 3}});
  EXPECT_THAT([&] { other.slot(1, 3, "image", kImage); }, ThrowsMessage<Error>(StrEq(message)));
  EXPECT_THROW(slab.slot(1, 9, "image", {DType::kI16, {2, 2}}), Error) << "or another type";
}

TEST_F(SlabTest, RefusesABatchThatCanNeverFit) {
  Slab slab(1000, *pool_);
  EXPECT_THAT(
      [&] {
        slab.slot(0, 0, "image", {DType::kF32, {3, 224, 224}});
      },
      ThrowsMessage<Error>(StrEq("a batch of 1000 x float32 3x224x224 takes 602112000 bytes, more "
                                 "than memory_limit 1048576; raise memory_limit or lower "
                                 "batch_size")));
  EXPECT_EQ(pool_->used_bytes(), 0U);
}

TEST_F(SlabTest, CopiesASlotWithAllThatBelongsToIt) {
  Slab slab(3, *pool_), other(2, *pool_);
  put(slab, 0, 5, "abcd", 50);
  put(slab, 2, 6, "efgh", 60);
  slab.copy_slot(2, other, 1);
  EXPECT_EQ(image(other, 1), "efgh");
  EXPECT_EQ(label(other, 1), 60);
  EXPECT_EQ(other.ids[1], 6);
  EXPECT_EQ(other.positions[1], 106);

  slab.copy_slot(2, slab, 1);  // within one slab
  EXPECT_EQ(image(slab, 1), "efgh");
  EXPECT_EQ(slab.ids[1], 6);
  EXPECT_EQ(image(slab, 0), "abcd");
  EXPECT_EQ(slab.ids[0], 5);
}

TEST_F(SlabTest, GivenToTheUserItIsNotCountedButComesBack) {
  {
    Slab slab(3, *pool_);
    put(slab, 0, 5, "abcd", 50);
    EXPECT_GT(pool_->used_bytes(), 0U);
    slab.give_to_user();
    EXPECT_EQ(pool_->used_bytes(), 0U);
    EXPECT_EQ(pool_->idle_bytes(), 0U);
  }
  EXPECT_EQ(pool_->used_bytes(), 0U);
  EXPECT_GT(pool_->idle_bytes(), 0U);
}

TEST_F(SlabTest, HasSlotsOfEmptyTensors) {
  Slab slab(2, *pool_), other(2, *pool_);
  EXPECT_EQ(slab.slot(1, 0, "image", {DType::kU8, {0}}).spec().bytes(), 0U);
  slab.copy_slot(1, other, 0);
  ASSERT_EQ(other.fields().size(), 1U);
  EXPECT_EQ(other.fields()[0].spec, (TensorSpec{DType::kU8, {0}}));
}

}  // namespace
}  // namespace cutwater
