// SPDX-License-Identifier: Apache-2.0
// The kernels of JPEG decoding on every SIMD level, beside plain formulas.
#include "ops/image/jpeg_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "ops/image/test_simd_levels.h"

namespace cutwater::image {
namespace {

using Data = std::vector<std::uint8_t>;
using Coefficients = std::vector<std::int16_t>;

std::uint8_t clamped(std::int64_t v) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>(v, 0, 255));
}

// ---- Inverse DCT ----

// One pass of libjpeg's slow integer DCT as its description has it: an even and an odd part, in
// numbers that never overflow.
void plain_pass(const std::int64_t* in, int step, int shift, std::int64_t* out) {
  const auto fix = [](double x) { return static_cast<std::int64_t>(x * 8192 + 0.5); };
  const auto x = [&](int i) { return in[i * step]; };
  const std::int64_t z = (x(2) + x(6)) * fix(0.541196100);
  const std::int64_t even2 = z - x(6) * fix(1.847759065), even3 = z + x(2) * fix(0.765366865);
  const std::int64_t sum = (x(0) + x(4)) << 13, difference = (x(0) - x(4)) << 13;
  const std::int64_t even[4] = {sum + even3, difference + even2, difference - even2, sum - even3};
  const std::int64_t z1 = -(x(7) + x(1)) * fix(0.899976223);
  const std::int64_t z2 = -(x(5) + x(3)) * fix(2.562915447);
  const std::int64_t z5 = (x(7) + x(3) + x(5) + x(1)) * fix(1.175875602);
  const std::int64_t z3 = z5 - (x(7) + x(3)) * fix(1.961570560);
  const std::int64_t z4 = z5 - (x(5) + x(1)) * fix(0.390180644);
  const std::int64_t odd[4] = {x(1) * fix(1.501321110) + z1 + z4, x(3) * fix(3.072711026) + z2 + z3,
                               x(5) * fix(2.053119869) + z2 + z4,
                               x(7) * fix(0.298631336) + z1 + z3};
  const std::int64_t half = std::int64_t{1} << (shift - 1);
  for (int i = 0; i < 4; ++i) {
    out[i * step] = (even[i] + odd[i] + half) >> shift;
    out[(7 - i) * step] = (even[i] - odd[i] + half) >> shift;
  }
}

// Samples of a block whose coefficients are in natural order.
std::array<std::uint8_t, 64> plain_dct(const std::int16_t* coefficients,
                                       const std::int16_t* quantizer) {
  std::array<std::int64_t, 64> a{}, b{};
  for (std::size_t n = 0; n < 64; ++n) a[n] = std::int64_t{coefficients[n]} * quantizer[n];
  for (std::size_t c = 0; c < 8; ++c) plain_pass(&a[c], 8, 11, &b[c]);
  for (std::size_t r = 0; r < 8; ++r) plain_pass(&b[8 * r], 1, 18, &a[8 * r]);
  std::array<std::uint8_t, 64> out{};
  for (std::size_t n = 0; n < 64; ++n) out[n] = clamped(a[n] + 128);
  return out;
}

struct Strip {
  std::int64_t groups;
  Coefficients blocks;  // one after the other, in natural order
  Coefficients quantizer;

  Coefficients grouped() const {
    Coefficients out(blocks.size());
    for (std::int64_t b = 0; b < groups * kGroupBlocks; ++b)
      for (std::int64_t n = 0; n < 64; ++n)
        out[static_cast<std::size_t>(block_place(b) + group_place(n))] =
            blocks[static_cast<std::size_t>(64 * b + n)];
    return out;
  }
  std::int64_t row_bytes() const { return groups * kGroupBlocks * 8 + 5; }
  Data samples(After after) const {
    Coefficients work = grouped();
    Data out(static_cast<std::size_t>(8 * row_bytes()), 77);
    inverse_dct(work.data(), quantizer.data(), groups, after, out.data(), row_bytes());
    EXPECT_EQ(work, after == After::kClear ? Coefficients(work.size(), 0) : grouped());
    return out;
  }
};

// `most`: of a coefficient times its quantizer. Some blocks have few coefficients, or one row.
Strip random_strip(std::mt19937& random, int most) {
  Strip strip{1 + static_cast<std::int64_t>(random() % 5), {}, Coefficients(64)};
  for (std::int16_t& q : strip.quantizer) q = static_cast<std::int16_t>(1 + random() % 255);
  strip.blocks.resize(static_cast<std::size_t>(strip.groups * kGroupValues));
  for (std::size_t begin = 0; begin < strip.blocks.size(); begin += 64) {
    const std::size_t end = std::array<std::size_t, 5>{0, 1, 8, 20, 64}[random() % 5];
    for (std::size_t n = 0; n < end; ++n) {
      const int highest = std::max(1, most / strip.quantizer[n]);
      strip.blocks[begin + n] = static_cast<std::int16_t>(
          static_cast<int>(random() % (2U * static_cast<unsigned>(highest) + 1)) - highest);
    }
  }
  return strip;
}

TEST(JpegKernels, InverseDctIsLibjpegs) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Strip strip =
        random_strip(random, i % 2 == 0 ? 60 : 350);  // nothing wraps or saturates before the end
    Data expected(static_cast<std::size_t>(8 * strip.row_bytes()), 77);
    for (std::int64_t b = 0; b < strip.groups * kGroupBlocks; ++b) {
      const auto block =
          plain_dct(&strip.blocks[static_cast<std::size_t>(64 * b)], strip.quantizer.data());
      for (std::int64_t y = 0; y < 8; ++y)
        std::copy_n(&block[static_cast<std::size_t>(8 * y)], 8,
                    expected.begin() + y * strip.row_bytes() + 8 * b);
    }
    for_each_simd_level([&] {
      ASSERT_EQ(strip.samples(After::kKeep), expected) << i;
      ASSERT_EQ(strip.samples(After::kClear), expected) << i;
    });
  }
}

// Beyond what pictures have, numbers wrap: on every level in the same way.
TEST(JpegKernels, InverseDctOfExtremeValuesIsOneThing) {
  std::mt19937 random(2);
  constexpr std::array<std::int16_t, 8> kExtremes = {32767, -32768, 16384, -16384,
                                                     8192,  -8193,  1,     0};
  for (int i = 0; i < 600; ++i) {
    Strip strip = random_strip(random, 40000);
    for (std::int16_t& q : strip.quantizer)
      if (i % 3 != 0)
        q = static_cast<std::int16_t>(i % 3 == 1 ? random() : kExtremes[random() % 8]);
    for (std::size_t at = 0; at < strip.blocks.size(); ++at) {
      const bool only_first_row = at / 64 % 3 == 0;
      if (random() % 3 == 0 && (!only_first_row || at % 64 < 8))
        strip.blocks[at] =
            random() % 2 == 0 ? static_cast<std::int16_t>(random()) : kExtremes[random() % 8];
    }
    std::vector<Data> results;
    for_each_simd_level([&] {
      results.push_back(strip.samples(After::kKeep));
      ASSERT_EQ(results.back(), results.front()) << i;
    });
  }
}

// ---- Color ----

std::array<std::uint8_t, 3> plain_rgb(int y, int cb, int cr) {
  const auto rounded = [](double factor, int v) {
    return (static_cast<std::int64_t>(factor * 65536 + 0.5) * v + 32768) >> 16;
  };
  const int b = cb - 128, r = cr - 128;
  // libjpeg adds the two parts of green before it rounds.
  const std::int64_t green = (-static_cast<std::int64_t>(0.34414 * 65536 + 0.5) * b -
                              static_cast<std::int64_t>(0.71414 * 65536 + 0.5) * r + 32768) >>
                             16;
  return {clamped(y + rounded(1.40200, r)), clamped(y + green), clamped(y + rounded(1.77200, b))};
}

struct Planes {
  Data a, b, c;
  explicit Planes(std::size_t size) : a(size), b(size), c(size) {}
};

void expect_rgb(const Planes& ycc, std::size_t count) {
  Planes rgb(count + kVectorSlack);
  ycc_to_rgb(ycc.a.data(), ycc.b.data(), ycc.c.data(), static_cast<std::int64_t>(count),
             rgb.a.data(), rgb.b.data(), rgb.c.data());
  for (std::size_t i = 0; i < count; ++i) {
    const std::array<std::uint8_t, 3> got = {rgb.a[i], rgb.b[i], rgb.c[i]};
    ASSERT_EQ(got, plain_rgb(ycc.a[i], ycc.b[i], ycc.c[i]))
        << int{ycc.a[i]} << " " << int{ycc.b[i]} << " " << int{ycc.c[i]};
  }
}

// Every pair of chroma values, with some lumas: the parts of the formula that round.
TEST(JpegKernels, ColorsAreLibjpegs) {
  constexpr std::array<int, 7> kLumas = {0, 1, 17, 128, 200, 254, 255};
  Planes ycc(256 * 256 + kVectorSlack);
  for (const int luma : kLumas) {
    for (std::size_t i = 0; i < 256 * 256; ++i) {
      ycc.a[i] = static_cast<std::uint8_t>(luma);
      ycc.b[i] = static_cast<std::uint8_t>(i / 256);
      ycc.c[i] = static_cast<std::uint8_t>(i % 256);
    }
    for_each_simd_level([&] { expect_rgb(ycc, 256 * 256); });
  }
}

TEST(JpegKernels, ColorsOfEveryCount) {
  std::mt19937 random(3);
  Planes ycc(200 + kVectorSlack);
  for (Data* plane : {&ycc.a, &ycc.b, &ycc.c})
    for (std::uint8_t& v : *plane) v = static_cast<std::uint8_t>(random());
  for (std::size_t count = 0; count <= 200; ++count)
    for_each_simd_level([&] { expect_rgb(ycc, count); });
}

// ---- Upsampling ----

TEST(JpegKernels, UpsamplingIsLibjpegs) {
  std::mt19937 random(4);
  constexpr std::int64_t kMost = 200;
  for (std::int64_t count = 0; count <= kMost; ++count) {
    Data rows[2];
    for (Data& row : rows) {
      row.resize(kMost + 2 + kVectorSlack);
      for (std::uint8_t& v : row)
        v = static_cast<std::uint8_t>(random() % 3 == 0 ? 255 * (random() % 2) : random());
    }
    const std::uint8_t *near = rows[0].data() + 1, *far = rows[1].data() + 1;
    Data wide, both, high[2];
    const auto column = [&](std::int64_t x) { return 3 * near[x] + far[x]; };
    for (std::int64_t i = 0; i < count; ++i) {
      wide.push_back(static_cast<std::uint8_t>((3 * near[i] + near[i - 1] + 1) >> 2));
      wide.push_back(static_cast<std::uint8_t>((3 * near[i] + near[i + 1] + 2) >> 2));
      both.push_back(static_cast<std::uint8_t>((3 * column(i) + column(i - 1) + 8) >> 4));
      both.push_back(static_cast<std::uint8_t>((3 * column(i) + column(i + 1) + 7) >> 4));
      for (int bias : {1, 2})
        high[bias - 1].push_back(static_cast<std::uint8_t>((column(i) + bias) >> 2));
    }
    for_each_simd_level([&] {
      Data out(2 * kMost + kVectorSlack);
      const auto made = [&](std::int64_t size) { return Data(out.begin(), out.begin() + size); };
      upsample_2x1(near, count, out.data());
      ASSERT_EQ(made(2 * count), wide);
      upsample_2x2(near, far, count, out.data());
      ASSERT_EQ(made(2 * count), both);
      for (int bias : {1, 2}) {
        upsample_1x2(near, far, count, bias, out.data());
        ASSERT_EQ(made(count), high[bias - 1]);
      }
    });
  }
}

// ---- Unstuffing ----

void expect_unstuffed(const Data& data) {
  std::size_t read = 0;
  Data expected;
  while (read < data.size()) {
    if (data[read] == 0xFF && (read + 1 == data.size() || data[read + 1] != 0)) break;
    expected.push_back(data[read]);
    read += data[read] == 0xFF ? 2 : 1;
  }
  for_each_simd_level([&] {
    Data out(data.size() + kVectorSlack);
    const Unstuffed got = unstuff(data.data(), data.size(), out.data());
    out.resize(got.written);
    ASSERT_EQ(got.read, read);
    ASSERT_EQ(out, expected);
  });
}

TEST(JpegKernels, UnstuffsUpToTheFirstMarkerWhereverItIs) {
  std::mt19937 random(5);
  for (std::size_t size = 0; size < 200; ++size) {
    Data data(size);
    for (std::uint8_t& v : data) v = static_cast<std::uint8_t>(random() % 255);
    expect_unstuffed(data);
    for (std::size_t at = 0; at < size; ++at) {  // a marker, an FF at the end, a stuffed one
      Data marked = data;
      marked[at] = 0xFF;
      expect_unstuffed(marked);
      if (at + 1 < size) marked[at + 1] = 0;
      expect_unstuffed(marked);
    }
  }
}

TEST(JpegKernels, UnstuffsWhatIsFullOfStuffing) {
  std::mt19937 random(6);
  for (int i = 0; i < 3000; ++i) {
    const unsigned density = 2 + random() % 30;
    Data data;
    for (std::size_t left = random() % 300; left > 0; --left) {
      data.push_back(random() % density == 0 ? 0xFF : static_cast<std::uint8_t>(random()));
      if (data.back() == 0xFF && random() % 100 != 0) data.push_back(0);
    }
    expect_unstuffed(data);
  }
}

// ---- Expanding ----

TEST(JpegKernels, BlocksExpandToWhatTheirMasksSay) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    const std::size_t blocks = 1 + random() % 29;
    const auto groups = static_cast<std::size_t>(groups_of(static_cast<std::int64_t>(blocks)));
    Data masks(8 * blocks), dcs(2 * blocks), values;
    std::vector<Coefficients> expected(blocks, Coefficients(64));
    for (std::size_t b = 0; b < blocks; ++b) {
      std::uint64_t mask = random();
      for (std::uint64_t thinner = random() % 5; thinner > 0; --thinner) mask &= random();
      if (random() % 20 == 0) mask = random() % 2 == 0 ? 0 : ~std::uint64_t{0};
      const bool wide = (mask & 1) != 0;
      const auto dc = static_cast<std::int16_t>(random());
      std::memcpy(&masks[8 * b], &mask, 8);
      std::memcpy(&dcs[2 * b], &dc, 2);
      expected[b][0] = dc;
      for (std::size_t n = 1; n < 64; ++n) {
        if ((mask >> n & 1) == 0) continue;
        const auto value = static_cast<std::int16_t>(random());
        expected[b][n] = wide ? value : static_cast<std::int8_t>(value);
        values.push_back(static_cast<std::uint8_t>(value));
        if (wide) values.push_back(static_cast<std::uint8_t>(value >> 8));
      }
    }
    const std::size_t size = values.size();
    values.resize(size + 64, 0xEE);
    for_each_simd_level([&] {
      EXPECT_EQ(value_bytes(masks.data(), static_cast<std::int64_t>(blocks)), size);
      EXPECT_EQ(value_bytes(masks.data(), 0), 0u);
      Coefficients out(groups * kGroupValues, 0x5555);
      const std::uint8_t* end = expand_blocks(masks.data(), dcs.data(), values.data(),
                                              static_cast<std::int64_t>(blocks), out.data());
      ASSERT_EQ(end, values.data() + size);
      for (std::size_t b = 0; b < blocks; ++b)
        for (std::int64_t n = 0; n < 64; ++n)
          ASSERT_EQ(out[static_cast<std::size_t>(block_place(static_cast<std::int64_t>(b)) +
                                                 group_place(n))],
                    expected[b][static_cast<std::size_t>(n)])
              << "block " << b << " of " << blocks << ", coefficient " << n;
    });
  }
}

// What is packed has values of two bytes only where one needs them, no zeros, and expands to what
// it was.
TEST(JpegKernels, BlocksArePackedAndExpandAgain) {
  std::mt19937 random(8);
  for (int i = 0; i < 400; ++i) {
    const std::int64_t blocks = 1 + static_cast<std::int64_t>(random() % 13);
    const auto count = static_cast<std::size_t>(blocks);
    Coefficients in(static_cast<std::size_t>(groups_of(blocks) * kGroupValues));
    const unsigned density = 1 + random() % 70, range = random() % 3;
    Data masks(8 * count), dcs(2 * count), values;
    for (std::int64_t b = 0; b < blocks; ++b) {
      std::uint64_t mask = 0;
      std::vector<std::int16_t> present;
      bool wide = false;
      for (std::int64_t n = 0; n < 64; ++n) {
        if (random() % density != 0) continue;
        constexpr std::int16_t kEdges[] = {127, 128, -128, -129, 32767, -32768, 255, -1};
        const std::int16_t value = range == 0   ? static_cast<std::int16_t>(random() % 256 - 128)
                                   : range == 1 ? kEdges[random() % 8]
                                                : static_cast<std::int16_t>(random());
        in[static_cast<std::size_t>(block_place(b) + group_place(n))] = value;
        if (n == 0 || value == 0) continue;
        mask |= std::uint64_t{1} << n;
        wide = wide || value < -128 || value > 127;
        present.push_back(value);
      }
      mask |= wide ? 1 : 0;
      std::memcpy(&masks[static_cast<std::size_t>(8 * b)], &mask, 8);
      std::memcpy(&dcs[static_cast<std::size_t>(2 * b)],
                  &in[static_cast<std::size_t>(block_place(b))], 2);
      for (const std::int16_t value : present) {
        values.push_back(static_cast<std::uint8_t>(value));
        if (wide) values.push_back(static_cast<std::uint8_t>(value >> 8));
      }
    }
    for_each_simd_level([&] {
      Data got_masks(masks.size()), got_dcs(dcs.size()), got(kMostValueBytes * count);
      const std::uint8_t* end =
          pack_blocks(in.data(), blocks, got_masks.data(), got_dcs.data(), got.data());
      got.resize(static_cast<std::size_t>(end - got.data()));
      EXPECT_EQ(got_masks, masks);
      EXPECT_EQ(got_dcs, dcs);
      EXPECT_EQ(got, values);
    });
  }
}

}  // namespace
}  // namespace cutwater::image
