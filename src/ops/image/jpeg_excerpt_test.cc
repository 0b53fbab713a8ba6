// SPDX-License-Identifier: Apache-2.0
// Excerpts of JPEGs: their pixels are those of the file, or they are refused.
#include "ops/image/jpeg_excerpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "cutwater/error.h"
#include "ops/image/test_jpeg.h"

namespace cutwater::image {
namespace {

constexpr std::size_t kJpegAt = 24;

std::optional<Data> excerpt_of(const Data& file, const Region& region, Hint* hint = nullptr,
                               const DecodeOptions& options = {}) {
  static const auto pool = BufferPool::create(std::size_t{1} << 30);
  const std::optional<Tensor> made = encoded_image(file, options).excerpt(region, hint, *pool);
  if (!made) return std::nullopt;
  EXPECT_EQ(made->spec(), (TensorSpec{DType::kU8, {made->spec().shape[0]}}));
  const TensorView bytes = made->view();
  EXPECT_LT(bytes.spec().bytes(), file.size());
  return Data(bytes.bytes(), bytes.bytes() + bytes.spec().bytes());
}

// So much that any part of the file is smaller than all of it.
Data with_comment(const Data& file) { return with_segment(file, 0xFE, Data(3000, 'x')); }

Data jpeg_in(const Data& excerpt) { return {excerpt.begin() + kJpegAt, excerpt.end()}; }

std::int64_t field(const Data& excerpt, std::size_t at, std::size_t bytes) {
  std::int64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | excerpt[at + i];
  return value;
}

// The contents of a file's DHT segments, in order of their names.
std::map<int, Data> code_tables(const Data& file) {
  std::map<int, Data> tables;
  std::size_t at = 2;
  while (file[at + 1] != 0xDA) {
    const std::size_t end = at + 2 + (std::size_t{file[at + 2]} << 8 | file[at + 3]);
    if (file[at + 1] == 0xC4)
      for (std::size_t table = at + 4; table < end;) {
        std::size_t next = table + 17;
        for (std::size_t i = 1; i <= 16; ++i) next += file[table + i];
        tables[file[table]] = Data(file.begin() + static_cast<std::ptrdiff_t>(table),
                                   file.begin() + static_cast<std::ptrdiff_t>(next));
        table = next;
      }
    at = end;
  }
  return tables;
}

// A gray picture that grows brighter from left to right, in Huffman codes of its own.
Data ramp(int width, int height, std::mt19937& random) {
  Data pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) pixels.push_back(static_cast<std::uint8_t>(x / 8 * 8));
  return encode({.width = width, .height = height, .optimized = true}, pixels, random);
}

std::string reason_of(const Data& excerpt, const Region& region,
                      const DecodeOptions& options = {}) {
  try {
    ours(excerpt, region, nullptr, options);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kBadSample) << error.what();
    return error.failure().reason;
  }
}

// A part of a region that is not empty.
Region part_of(const Region& region, std::mt19937& random) {
  const auto top = below(random, static_cast<int>(region.height));
  const auto left = below(random, static_cast<int>(region.width));
  return {region.top + top, region.left + left,
          1 + below(random, static_cast<int>(region.height) - top),
          1 + below(random, static_cast<int>(region.width) - left)};
}

TEST(JpegExcerpt, HasThePixelsOfItsRegionForEveryLayout) {
  std::mt19937 random(1);
  for (int i = 0; i < 900; ++i) {
    Picture picture = random_picture(random);
    picture.progressive = i % 5 == 0;
    SCOPED_TRACE(testing::Message() << i << ": " << picture);
    const Data file = with_comment(encode(picture, random)), whole = reference(file);
    for (int k = 0; k < 4; ++k) {
      Region region = random_region(picture, random);
      if (k == 1) region.height = region.width = 1;
      if (k == 2) region = picture.whole();
      const std::optional<Data> excerpt = excerpt_of(file, region);
      ASSERT_TRUE(excerpt);
      ASSERT_TRUE(is_jpeg_excerpt(*excerpt));
      ASSERT_EQ(encoded_image(*excerpt).upright(), encoded_image(file).upright());
      ASSERT_EQ(ours(*excerpt, region), part(whole, picture.width, region));
      const Region within = part_of(region, random);
      ASSERT_EQ(ours(*excerpt, within), part(whole, picture.width, within));
    }
  }
}

// EXCERPT.md, read by hand.
TEST(JpegExcerpt, HasTheFieldsThatItsDocumentTells) {
  std::mt19937 random(2);
  const Picture picture{.width = 261, .height = 143, .layout = kLayouts[5]};
  const Data file = with_orientation(encode(picture, random), 6);
  const Data excerpt = excerpt_of(file, {40, 100, 30, 110}).value();
  EXPECT_EQ(std::string(excerpt.begin(), excerpt.begin() + 8), "cw.exct1");
  EXPECT_EQ(field(excerpt, 8, 4), static_cast<std::int64_t>(excerpt.size()));
  EXPECT_EQ(field(excerpt, 12, 2), 261);
  EXPECT_EQ(field(excerpt, 14, 2), 143);
  EXPECT_EQ(field(excerpt, 16, 2), 96);
  EXPECT_EQ(field(excerpt, 18, 2), 32);
  EXPECT_EQ(field(excerpt, 20, 1), 6);
  EXPECT_EQ(field(excerpt, 21, 3), 0);
  const Header inner = read_header(jpeg_in(excerpt), {});
  EXPECT_EQ(inner.width, 224 - 96);
  EXPECT_EQ(inner.height, 80 - 32);

  const Data corner = excerpt_of(file, {130, 250, 13, 11}).value();
  const Header last = read_header(jpeg_in(corner), {});
  EXPECT_EQ(last.width, 261 - field(corner, 16, 2)) << "the image's own edge";
  EXPECT_EQ(last.height, 143 - field(corner, 18, 2));
}

// Away from the edges of the window, which are none of the image's, any decoder gives the pixels.
TEST(JpegExcerpt, ContainsAPlainJpeg) {
  std::mt19937 random(3);
  for (const JpegLayout& layout : kLayouts) {
    SCOPED_TRACE(layout.name);
    const Picture picture{.width = 301, .height = 283, .layout = layout};
    const Data file = encode(picture, random);
    const Region region{100, 70, 90, 120};
    const Data excerpt = excerpt_of(file, region).value(), jpeg = jpeg_in(excerpt);
    const Region there{region.top - field(excerpt, 18, 2), region.left - field(excerpt, 16, 2),
                       region.height, region.width};
    EXPECT_EQ(part(reference(jpeg), read_header(jpeg, {}).width, there),
              part(reference(file), picture.width, region));
  }
}

TEST(JpegExcerpt, KeepsTheOrientation) {
  std::mt19937 random(4);
  const Picture picture{.width = 87, .height = 61, .layout = kLayouts[5]};
  const Data upright = with_comment(encode(picture, random));
  DecodeOptions turning;
  turning.exif = true;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Data file = with_orientation(upright, orientation);
    const TensorSpec spec = encoded_image(file, turning).upright();
    for (int i = 0; i < 20; ++i) {
      const Region region = part_of({0, 0, spec.shape[0], spec.shape[1]}, random);
      const Data excerpt = excerpt_of(file, region, nullptr, turning).value();
      EXPECT_EQ(encoded_image(excerpt, turning).upright(), spec);
      EXPECT_EQ(ours(excerpt, region, nullptr, turning), ours(file, region, nullptr, turning));
    }
  }
}

TEST(JpegExcerpt, RefusesWhatItDoesNotHave) {
  std::mt19937 random(5);
  const Picture picture{.width = 200, .height = 200, .layout = kLayouts[5]};
  const Data excerpt = excerpt_of(encode(picture, random), {64, 64, 32, 32}).value();
  EXPECT_EQ(reason_of(excerpt, {64, 64, 32, 32}), "");
  EXPECT_EQ(reason_of(excerpt, picture.whole()),
            "this is an excerpt of an image, rows 48..111, columns 48..111 of it; it was made for "
            "other draws than those that need rows 0..199, columns 0..199");
  for (const Region& region : {Region{64, 0, 32, 32}, Region{0, 64, 32, 32}, Region{64, 64, 50, 32},
                               Region{64, 64, 32, 60}, Region{199, 199, 1, 1}, Region{48, 64, 1, 1},
                               Region{64, 111, 1, 1}})
    EXPECT_THAT(reason_of(excerpt, region), testing::HasSubstr("this is an excerpt of an image"));
  EXPECT_EQ(excerpt_of(excerpt, {64, 64, 32, 32}), std::nullopt) << "is one already";
}

TEST(JpegExcerpt, IsOnlyMadeWhereItIsSmaller) {
  std::mt19937 random(6);
  Picture picture{.width = 64, .height = 64, .layout = kLayouts[5], .optimized = true};
  const Data file = encode(picture, random);
  EXPECT_EQ(excerpt_of(file, picture.whole()), std::nullopt) << "its codes are the shortest";
  EXPECT_TRUE(excerpt_of(file, {0, 0, 20, 20}));
  EXPECT_EQ(excerpt_of(file, {0, 0, 0, 5}), std::nullopt) << "nothing is needed";
  picture.optimized = false;
  EXPECT_TRUE(excerpt_of(encode(picture, random), picture.whole())) << "shorter codes";
}

TEST(JpegExcerpt, OtherFilesHaveNone) {
  std::mt19937 random(7);
  const Picture picture{.width = 100, .height = 100, .layout = kLayouts[5]};
  const Region region{10, 10, 20, 20};
  const Data sound = encode(picture, random);
  EXPECT_TRUE(excerpt_of(sound, region));
  Picture arithmetic = picture, cmyk = picture;
  arithmetic.arithmetic = true;
  cmyk.layout.colors = Colors::kCmyk;
  EXPECT_EQ(excerpt_of(encode(arithmetic, random), region), std::nullopt);
  EXPECT_EQ(excerpt_of(encode(cmyk, random), region), std::nullopt);
  const Data cut_short(sound.begin(), sound.end() - 2);  // libjpeg forgives a missing end
  EXPECT_EQ(excerpt_of(cut_short, region), std::nullopt);
}

// Scans that refine were cut off: libjpeg guesses smoother pixels.
TEST(JpegExcerpt, ProgressiveFilesWithoutTheirLastScansHaveNone) {
  std::mt19937 random(8);
  Picture picture{.width = 100, .height = 100, .layout = kLayouts[5]};
  picture.progressive = true;
  const Data file = encode(picture, random);
  const Region region{10, 10, 20, 20};
  ASSERT_TRUE(excerpt_of(file, region));
  constexpr std::array<std::uint8_t, 2> kScan = {0xFF, 0xDA}, kEnd = {0xFF, 0xD9};
  auto last = std::find_end(file.begin(), file.end(), kScan.begin(), kScan.end());
  Data without(file.begin(), last);
  without.insert(without.end(), kEnd.begin(), kEnd.end());
  EXPECT_EQ(excerpt_of(without, region), std::nullopt);
}

// Whatever decoding makes of a damaged file: there is no excerpt, or it has those pixels.
TEST(JpegExcerpt, DamagedFilesHaveNoneOrTheSamePixels) {
  std::mt19937 random(9);
  int made = 0;
  for (int i = 0; i < 3000; ++i) {
    Picture picture = random_picture(random);
    picture.progressive = i % 4 == 0;
    Data file = with_comment(encode(picture, random));
    for (int flips = 1 + below(random, 3); flips > 0; --flips)
      file[3006 + random() % (file.size() - 3006)] ^=
          static_cast<std::uint8_t>(1 << below(random, 8));
    try {
      DecodeOptions small;
      small.max_pixels = 1 << 16;
      const TensorSpec spec = encoded_image(file, small).upright();
      const Region within = part_of({0, 0, spec.shape[0], spec.shape[1]}, random);
      const std::optional<Data> excerpt = excerpt_of(file, within, nullptr, small);
      if (!excerpt) continue;
      ++made;
      ASSERT_EQ(ours(*excerpt, within), ours(file, within)) << i;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Code::kBadSample) << error.what();
    }
  }
  EXPECT_GT(made, 300);
}

TEST(JpegExcerpt, AnIndexMakesTheSameBytes) {
  std::mt19937 random(10);
  for (int i = 0; i < 100; ++i) {
    Picture picture = random_picture(random);
    picture.width += 300;
    const Data file = with_comment(encode(picture, random));
    Hint hint;
    for (int k = 0; k < 4; ++k) {
      const Region region = random_region(picture, random);
      const Data excerpt = excerpt_of(file, region, &hint).value();
      EXPECT_EQ(excerpt, excerpt_of(file, region));
      EXPECT_EQ(ours(excerpt, region), ours(file, region));
      if (!hint.learned.empty()) hint.known = std::exchange(hint.learned, {});
    }
    EXPECT_EQ(hint.known.empty(), picture.restart_interval != 0);
    Hint unused;
    const Data excerpt = excerpt_of(file, picture.whole()).value();
    ours(excerpt, picture.whole(), &unused);
    EXPECT_TRUE(unused.learned.empty()) << "an excerpt is decoded once";
  }
}

// Bits are copied: what an excerpt's codes are, its file's were.
TEST(JpegExcerpt, HasTheCodesOfABaselineFile) {
  std::mt19937 random(12);
  const Picture picture{.width = 600, .height = 500, .layout = kLayouts[5]};
  const Data file = encode(picture, random);
  const Data jpeg = jpeg_in(excerpt_of(file, {100, 100, 200, 200}).value());
  EXPECT_EQ(code_tables(jpeg), code_tables(file));
  EXPECT_EQ(code_tables(file).size(), 4U);
}

// Three tables of a kind are more than the standard calls baseline.
TEST(JpegExcerpt, CopiesFilesOfThreeTables) {
  std::mt19937 random(15);
  for (const JpegLayout& layout : {kLayouts[3], kLayouts[5], kLayouts[19]}) {
    const Picture picture{.width = 400, .height = 300, .layout = layout, .third_table = true};
    const Data file = encode(picture, random);
    const Region region{100, 70, 90, 120};
    const Data excerpt = excerpt_of(file, region).value();
    EXPECT_EQ(ours(excerpt, region), part(reference(file), picture.width, region));
    EXPECT_EQ(code_tables(jpeg_in(excerpt)), code_tables(file));
    EXPECT_EQ(code_tables(file).size(), 6U);
  }
}

// A ramp, in codes of its own: from block to block it rises by the same, and falls by all of it
// from row to row. A part of it falls by less, for which the file has no code: it gets a longer
// one.
TEST(JpegExcerpt, HasMoreCodesWhereTheFilesDoNotDo) {
  std::mt19937 random(13);
  const Data file = with_comment(ramp(256, 64, random));
  const Data whole = reference(file);
  const Region part_of_it{0, 64, 64, 24};
  Hint hint;
  for (int i = 0; i < 2; ++i) {
    const Data excerpt = excerpt_of(file, part_of_it, &hint).value();
    EXPECT_EQ(ours(excerpt, part_of_it), part(whole, 256, part_of_it));
    std::map<int, Data> tables = code_tables(jpeg_in(excerpt)), of_file = code_tables(file);
    EXPECT_EQ(tables[0x10], of_file[0x10]);
    const Data &dc = tables[0], &dc_of_file = of_file[0];
    ASSERT_EQ(dc.size(), 17U + 12);
    EXPECT_LT(dc_of_file.size(), dc.size());
    EXPECT_TRUE(std::equal(dc_of_file.begin() + 17, dc_of_file.end(), dc.begin() + 17));
    if (!hint.learned.empty()) hint.known = std::exchange(hint.learned, {});
  }
}

// It may lead to other bits of the same data, and to none beyond.
TEST(JpegExcerpt, ADamagedIndexNeverLeavesTheData) {
  std::mt19937 random(14);
  constexpr std::size_t kIndexHeader = 9;
  for (int i = 0; i < 60; ++i) {
    Picture picture = random_picture(random);
    picture.width += 300;
    picture.restart_interval = 0;
    const Data file = with_comment(encode(picture, random));
    Hint good;
    excerpt_of(file, picture.whole(), &good);
    ASSERT_GT(good.learned.size(), kIndexHeader);
    for (int k = 0; k < 40; ++k) {
      Hint hint{good.learned, {}};
      for (int flips = 1 + below(random, 4); flips > 0; --flips)
        hint.known[kIndexHeader + random() % (hint.known.size() - kIndexHeader)] ^=
            static_cast<std::uint8_t>(1 << random() % 8);
      const Region region = random_region(picture, random);
      std::optional<Data> excerpt;
      ASSERT_NO_THROW(excerpt = excerpt_of(file, region, &hint)) << picture;
      if (excerpt) reason_of(*excerpt, region);  // pixels, or a bad sample
    }
  }
}

TEST(JpegExcerpt, TheShareIsNear) {
  std::mt19937 random(11);
  const Picture picture{.width = 600, .height = 500, .layout = kLayouts[5], .quality = 75};
  const Data file = encode(picture, random);
  for (const Region& region :
       {Region{0, 0, 500, 600}, Region{100, 200, 200, 100}, Region{9, 9, 1, 1}}) {
    const double share = encoded_image(file).excerpt_share(region);
    const double real = static_cast<double>(excerpt_of(file, region).value().size()) /
                        static_cast<double>(file.size());
    EXPECT_NEAR(share, real, 0.06);
  }
  Picture cmyk = picture;
  cmyk.layout.colors = Colors::kCmyk;
  EXPECT_EQ(encoded_image(encode(cmyk, random)).excerpt_share({0, 0, 9, 9}), 1);
  EXPECT_EQ(encoded_image(file).excerpt_share({0, 0, 0, 9}), 1);
}

TEST(JpegExcerpt, EveryTruncationIsRefused) {
  std::mt19937 random(12);
  const Region region{8, 8, 20, 20};
  const Data excerpt =
      excerpt_of(encode({.width = 90, .height = 90, .layout = kLayouts[5]}, random), region)
          .value();
  for (std::size_t size = 8; size < excerpt.size(); ++size) {
    Data shorter(excerpt.begin(), excerpt.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(reason_of(shorter, region), testing::HasSubstr("cut short"));
    if (size < 12) continue;
    const auto claimed = static_cast<std::uint32_t>(size);  // the rest is noticed as well
    std::memcpy(shorter.data() + 8, &claimed, sizeof claimed);
    EXPECT_NE(reason_of(shorter, region), "") << size;
  }
}

TEST(JpegExcerpt, AHeaderThatLiesIsRefused) {
  std::mt19937 random(13);
  const Region region{40, 40, 20, 20};
  const Data sound =
      excerpt_of(encode({.width = 90, .height = 91, .layout = kLayouts[5]}, random), region)
          .value();
  const auto with = [&](std::size_t at, unsigned value) {
    Data lying = sound;
    lying[at] = static_cast<std::uint8_t>(value);
    lying[at + 1] = static_cast<std::uint8_t>(value >> 8);
    return reason_of(lying, {0, 0, 1, 1});
  };
  EXPECT_NE(with(12, 0), "");
  EXPECT_THAT(with(12, 33), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(14, 33), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(12, 65535), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(16, 33), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(16, 80), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(18, 64000), testing::HasSubstr("does not lie in its image"));
  EXPECT_THAT(with(20, 0), testing::HasSubstr("orientation 0"));
  EXPECT_THAT(with(20, 9), testing::HasSubstr("orientation 9"));
  EXPECT_THAT(with(21, 1), testing::HasSubstr("reserved"));
  Data png = sound;
  std::memcpy(png.data() + kJpegAt, "\x89PNG\r\n\x1A\n", 8);
  EXPECT_NE(reason_of(png, {0, 0, 1, 1}), "");
}

TEST(JpegExcerpt, LimitsAreThoseOfTheImage) {
  std::mt19937 random(14);
  const Region region{8, 8, 4, 4};
  const Data file = encode({.width = 100, .height = 100, .layout = kLayouts[5]}, random);
  const Data excerpt = excerpt_of(file, region).value();
  DecodeOptions few_pixels, few_bytes;
  few_pixels.max_pixels = 9999;
  few_bytes.max_bytes = 100;
  EXPECT_EQ(reason_of(excerpt, region, few_pixels), reason_of(file, region, few_pixels));
  EXPECT_NE(reason_of(excerpt, region, few_pixels), "");
  EXPECT_THAT(reason_of(excerpt, region, few_bytes), testing::HasSubstr("max_bytes"));
}

// Every byte with some other values, and several at once: a refusal or pixels.
TEST(JpegExcerpt, DamageGivesARefusalOrPixels) {
  std::mt19937 random(15);
  DecodeOptions small;
  small.max_pixels = 1 << 16;
  const Region region{16, 16, 9, 9};
  const auto decoded = [&](const Data& excerpt) {
    if (reason_of(excerpt, region, small) == "") reason_of(excerpt, {30, 30, 9, 9}, small);
  };
  for (const std::size_t which : {0U, 3U, 5U, 20U}) {
    const Data sound =
        excerpt_of(encode({.width = 99, .height = 98, .layout = kLayouts[which]}, random), region)
            .value();
    for (std::size_t at = 8; at < sound.size(); ++at)
      for (const int change : {0x01, 0x80, 1 + below(random, 255)}) {
        Data excerpt = sound;
        excerpt[at] = static_cast<std::uint8_t>(excerpt[at] ^ change);
        if (at >= 12 && at < 16) continue;  // the size of an image that the region may not be in
        decoded(excerpt);
      }
    for (int i = 0; i < 2000; ++i) {
      Data excerpt = sound;
      for (int flips = 2 + below(random, 6); flips > 0; --flips)
        excerpt[16 + random() % (excerpt.size() - 16)] = static_cast<std::uint8_t>(random());
      decoded(excerpt);
    }
  }
}

// Symbols as often as Fibonacci's numbers: Huffman's own codes would be longer than JPEG allows.
TEST(JpegWriter, CodesAreNeverLongerThanSixteenBits) {
  constexpr int kSymbols = 26, kBlocksAcross = 90;
  JpegPart part;
  part.image.width = kBlocksAcross * 8;
  part.quantizers[0].fill(1);
  std::vector<unsigned> symbols;
  for (std::int64_t k = 0, often = 1, before = 0; k < kSymbols; ++k) {
    for (std::int64_t i = 0; i < often; ++i)
      symbols.push_back(static_cast<unsigned>(1 + k % 10));  // sizes 1..10…
    for (auto it = symbols.end() - often; it != symbols.end(); ++it)
      *it |= static_cast<unsigned>(k / 10) << 4;  // …after 0, 1 or 2 zeros
    before = std::exchange(often, often + before);
  }
  std::mt19937 random(16);
  std::shuffle(symbols.begin(), symbols.end(), random);
  std::int64_t blocks = 0;
  for (auto next = symbols.begin(); next != symbols.end() || blocks % kBlocksAcross != 0;
       ++blocks) {
    ASSERT_TRUE(part.symbols.make_room(1));
    ASSERT_TRUE(part.symbols.put_dc(0, below(random, 100)));
    JpegSymbols::Appender out(part.symbols);
    for (int i = 0; i < 20 && next != symbols.end(); ++i, ++next) {
      const int largest = (1 << (*next & 15)) - 1;
      const int value = below(random, 2) == 0 ? largest : -largest;
      out.put(JpegSymbols::ac_item(0, (*next >> 4) + 1, value));
    }
    out.put(JpegSymbols::ac_item(0, AcTable::kEndOfBlock, 0));
  }
  part.image.height = blocks / kBlocksAcross * 8;
  part.mcus = part.image.all_mcus();
  Data file;
  ASSERT_TRUE(write_baseline(part, std::numeric_limits<std::size_t>::max(), file));
  JpegPlanes planes;
  const Region whole{0, 0, part.image.height, part.image.width};
  EXPECT_TRUE(decode_baseline(file, whole, nullptr, planes)) << "as our decoder wants it";
  EXPECT_EQ(ours(file, whole), reference(file));
  JpegPart again;
  ASSERT_TRUE(read_baseline_part(file, whole, nullptr, again));
  Data rewritten;
  ASSERT_TRUE(write_baseline(again, std::numeric_limits<std::size_t>::max(), rewritten));
  EXPECT_EQ(rewritten, file);
}

}  // namespace
}  // namespace cutwater::image
