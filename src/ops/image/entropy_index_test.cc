// SPDX-License-Identifier: Apache-2.0
// The entropy index: whatever it holds, no pixel changes; what it has learned, it knows.
#include "ops/image/entropy_index.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <utility>

#include "ops/image/jpeg_baseline.h"
#include "ops/image/test_jpeg.h"

namespace cutwater::image {
namespace {

constexpr std::size_t kHeader = 9;  // version and content

// Several checkpoints in a row for most layouts.
Picture wide_picture(std::mt19937& random) {
  Picture picture = random_picture(random);
  picture.width = 1 + below(random, 900);
  picture.height = 1 + below(random, 90);
  picture.restart_interval = 0;
  return picture;
}

// Decodes with what is known, and learns.
Data decoded(const Data& file, const Region& region, Hint& hint) {
  const Data pixels = ours(file, region, &hint);
  if (!hint.learned.empty()) hint.known = std::exchange(hint.learned, {});
  return pixels;
}

Hint full_hint(const Data& file, const Picture& picture) {
  Hint hint;
  decoded(file, picture.whole(), hint);
  return hint;
}

TEST(EntropyIndexedJpeg, PixelsAreTheSameWhateverIsKnown) {
  std::mt19937 random(1);
  for (int i = 0; i < 80; ++i) {
    const Picture picture = wide_picture(random);
    SCOPED_TRACE(testing::Message() << i << ": " << picture);
    const Data file = encode(picture, random), whole = reference(file);
    Hint hint;
    for (int k = 0; k < 10; ++k) {
      const Region region = random_region(picture, random);
      const std::size_t known = hint.known.size();
      ASSERT_EQ(ours(file, region, &hint), part(whole, picture.width, region));
      if (hint.learned.empty()) continue;
      ASSERT_GT(hint.learned.size(), known) << "what was known is still there";
      hint.known = std::exchange(hint.learned, {});
    }
    // The lowest row needs all others; then there is nothing left to learn.
    const Region lowest{picture.height - 1, 0, 1, 1};
    ASSERT_EQ(decoded(file, lowest, hint), part(whole, picture.width, lowest));
    for (int k = 0; k < 6; ++k) {
      const Region region = random_region(picture, random);
      ASSERT_EQ(ours(file, region, &hint), part(whole, picture.width, region));
      ASSERT_TRUE(hint.learned.empty());
    }
    ASSERT_EQ(hint.known, full_hint(file, picture).known) << "the way there does not matter";
  }
}

TEST(EntropyIndexedJpeg, FilesWithRestartsAndFilesThatAreNotOursTeachNothing) {
  std::mt19937 random(2);
  for (const bool progressive : {false, true}) {
    Picture picture = wide_picture(random);
    picture.restart_interval = progressive ? 0 : 3;
    picture.progressive = progressive;
    picture.odd = false;
    const Data file = encode(picture, random);
    Hint hint;
    EXPECT_EQ(ours(file, picture.whole(), &hint), reference(file)) << picture;
    EXPECT_TRUE(hint.learned.empty());
  }
}

// The index names the content: one of another file, or damaged in its name, is as good as none.
TEST(EntropyIndexedJpeg, HintsOfOtherFilesAreIgnored) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    const Picture picture = wide_picture(random);
    const Data file = encode(picture, random), other = encode(picture, random);
    const Data whole = reference(file);
    const Data good = full_hint(file, picture).known;
    std::vector<Data> bad = {full_hint(other, picture).known, Data(1 + random() % 100, 0xFF),
                             Data(1 + random() % 100, 1)};
    for (int k = 0; k < 10; ++k) {
      bad.emplace_back(good.begin(),
                       good.begin() + static_cast<std::ptrdiff_t>(random() % good.size()));
      bad.push_back(good);
      bad.back()[random() % kHeader] ^= static_cast<std::uint8_t>(1 << random() % 8);
    }
    for (const Data& known : bad) {
      Hint hint{known, {}};
      const Region region = random_region(picture, random);
      ASSERT_EQ(ours(file, region, &hint), part(whole, picture.width, region));
      if (region.top == 0 && region.height == picture.height) {
        ASSERT_EQ(hint.learned, good) << "learned anew";
      }
    }
  }
}

// With the content's name intact, a damaged index can only lead to another place of the same data:
// wrong pixels perhaps, never anything worse.
TEST(EntropyIndexedJpeg, DamagedCheckpointsNeverLeaveTheData) {
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    const Picture picture = wide_picture(random);
    const Data file = encode(picture, random);
    const Data good = full_hint(file, picture).known;
    for (int k = 0; k < 40; ++k) {
      Hint hint{good, {}};
      for (int flips = 1 + below(random, 4); flips > 0; --flips)
        hint.known[kHeader + random() % (good.size() - kHeader)] ^=
            static_cast<std::uint8_t>(1 << random() % 8);
      EXPECT_NO_THROW(ours(file, random_region(picture, random), &hint)) << picture;
    }
  }
}

// ---- The bytes ----

constexpr std::uint64_t kContent = 0x0123456789abcdef;
constexpr std::int64_t kEndBit = 1 << 24;

JpegGeometry geometry_of(int width, int height) {
  JpegGeometry geometry;
  geometry.width = width;
  geometry.height = height;
  return geometry;
}

EntropyIndex random_index(const JpegGeometry& geometry, std::int64_t rows, std::mt19937& random) {
  EntropyIndex index(geometry);
  Checkpoint at;
  const std::int64_t count = rows * divide_up(geometry.mcus_across(), EntropyIndex::kStride);
  for (std::int64_t i = 0; i < count; ++i) {
    at.bit = std::min<std::int64_t>(at.bit + below(random, 5000), kEndBit);
    for (std::int16_t& dc : at.dc) dc = static_cast<std::int16_t>(random());
    index.add(at);
  }
  return index;
}

TEST(EntropyIndex, ReadsBackAndRefusesEveryOtherLength) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    const JpegGeometry geometry = geometry_of(1 + below(random, 800), 1 + below(random, 60));
    const std::int64_t rows = below(random, static_cast<int>(geometry.mcus_down()) + 1);
    const EntropyIndex index = random_index(geometry, rows, random);
    Data bytes = index.encode(kContent);
    EntropyIndex again(geometry);
    ASSERT_TRUE(again.decode(bytes, kContent, kEndBit));
    ASSERT_EQ(again.rows(), rows);
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t mcu = 0; mcu < geometry.mcus_across(); ++mcu)
        ASSERT_EQ(again.before(row, mcu), index.before(row, mcu));
    ASSERT_EQ(again.encode(kContent), bytes);

    for (std::size_t size = 0; size < bytes.size(); ++size) {
      ASSERT_FALSE(again.decode(Bytes(bytes).first(size), kContent, kEndBit));
      ASSERT_EQ(again.rows(), 0);
    }
    ASSERT_FALSE(again.decode(bytes, kContent + 1, kEndBit));
    if (rows > 0) {
      const std::int64_t last = index.before(rows - 1, geometry.mcus_across() - 1).bit;
      ASSERT_TRUE(again.decode(bytes, kContent, last));
      ASSERT_EQ(again.decode(bytes, kContent, last - 1), last == 0) << "beyond the data";
    }
    bytes.push_back(0);
    ASSERT_FALSE(again.decode(bytes, kContent, kEndBit));
  }
}

void put_varint(Data& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

// An index of one row and one checkpoint, of these numbers.
Data hostile(std::uint64_t rows, std::uint64_t step, std::uint64_t dc) {
  Data bytes = EntropyIndex(geometry_of(8, 8)).encode(kContent);
  bytes.resize(kHeader);
  put_varint(bytes, rows);
  put_varint(bytes, step);
  put_varint(bytes, dc);
  put_varint(bytes, 0);
  put_varint(bytes, 0);
  return bytes;
}

TEST(EntropyIndex, RefusesNumbersThatAreOutOfBounds) {
  EntropyIndex index(geometry_of(8, 8));
  constexpr std::uint64_t kBig[] = {
      1ULL << 25,       1ULL << 31,       1ULL << 32, 1ULL << 33,
      (1ULL << 62) + 1, (1ULL << 63) - 1, 1ULL << 63, std::numeric_limits<std::uint64_t>::max()};
  EXPECT_TRUE(index.decode(hostile(1, kEndBit, 65534), kContent, kEndBit)) << "32767";
  EXPECT_EQ(index.before(0, 0), (Checkpoint{kEndBit, {32767, 0, 0}}));
  EXPECT_TRUE(index.decode(hostile(1, 0, 65535), kContent, kEndBit)) << "-32768";
  EXPECT_FALSE(index.decode(hostile(1, kEndBit + 1, 0), kContent, kEndBit));
  EXPECT_FALSE(index.decode(hostile(1, 0, 65536), kContent, kEndBit)) << "32768";
  EXPECT_FALSE(index.decode(hostile(1, 0, 65537), kContent, kEndBit)) << "-32769";
  EXPECT_FALSE(index.decode(hostile(2, 0, 0), kContent, kEndBit)) << "more rows than there are";
  for (const std::uint64_t big : kBig) {
    EXPECT_FALSE(index.decode(hostile(big, 0, 0), kContent, kEndBit)) << big;
    EXPECT_FALSE(index.decode(hostile(1, big, 0), kContent, kEndBit)) << big;
    EXPECT_FALSE(index.decode(hostile(1, 0, big), kContent, kEndBit)) << big;
    EXPECT_EQ(index.rows(), 0);
  }
  Data endless = hostile(1, 0, 0);
  endless.resize(kHeader);
  endless.resize(kHeader + 40, 0x80);
  EXPECT_FALSE(index.decode(endless, kContent, kEndBit)) << "a varint without end";
}

}  // namespace
}  // namespace cutwater::image
