// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cutwater/error.h"
#include "cutwater/variant.h"

namespace cutwater {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Bytes = std::vector<std::uint8_t>;

const char* const kNames[] = {"none",           "lz4",          "zstd:1", "zstd:19",
                              "shuffle-zstd:1", "delta-zstd:3", "zstd:3"};

std::vector<TensorSpec> specs() {
  return {{DType::kU8, {0}},
          {DType::kU8, {1}},
          {DType::kU8, {7, 5, 3}, Layout::kPixels},
          {DType::kU8, {3, 33, 17}, Layout::kPlanes},
          {DType::kF32, {3, 9, 31}, Layout::kPlanes},
          {DType::kF32, {3, 9, 31}, Layout::kPlanesLast},
          {DType::kI16, {1001}},
          {DType::kI64, {}},
          {DType::kF64, {4, 0, 2}},
          {DType::kU8, {500, 10, 12, 3, 1}, Layout::kPacked}};
}

Bytes smooth_bytes(const TensorSpec& spec, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(spec.bytes());
  std::uint8_t value = 0;
  for (std::uint8_t& byte : bytes) byte = value = static_cast<std::uint8_t>(value + random() % 5);
  return bytes;
}

TEST(VariantCodec, EveryTensorComesBackFromEveryCodec) {
  Bytes encoded;
  for (const TensorSpec& spec : specs())
    for (const char* name : kNames) {
      const Codec codec = codec_named(name);
      const Bytes bytes = smooth_bytes(spec, 1);
      encode(codec, spec, bytes, encoded);
      Bytes decoded(bytes.size(), 0xAA);
      decode(codec, spec, encoded, decoded);
      EXPECT_EQ(decoded, bytes) << name << " of " << to_string(spec);
      const Bytes first = encoded;
      encode(codec, spec, bytes, encoded);
      EXPECT_EQ(encoded, first) << name << " is not deterministic";
    }
}

TEST(VariantCodec, NamesReadBack) {
  for (const char* name : kNames) EXPECT_EQ(to_string(codec_named(name)), name);
  EXPECT_EQ(to_string(codec_named("zstd")), "zstd:3");
}

TEST(VariantCodec, OtherNamesAreRefusedWithTheList) {
  for (const char* name : {"", "gzip", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:3x", "lz4:1",
                           "shuffle", "shuffle-lz4", "delta-", "zstd3", "NONE"})
    EXPECT_THAT([&] { (void)codec_named(name); },
                ThrowsMessage<Error>(HasSubstr("there are none, lz4, zstd:1")))
        << name;
}

TEST(VariantCodec, FiltersMakeTheirKindOfDataSmaller) {
  const TensorSpec image{DType::kU8, {64, 64, 3}, Layout::kPixels};
  Bytes pixels(image.bytes());
  std::mt19937 random(3);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] =
        static_cast<std::uint8_t>((i / 192) + (i % 192 < 96 ? i * 7 : i * 13) + random() % 2);
  const TensorSpec floats{DType::kF32, {4096}};
  Bytes values(floats.bytes());
  for (std::size_t i = 0; i < 4096; ++i) {
    const float value = 1.0F + static_cast<float>(random() % 1000) * 1e-6F;
    std::memcpy(values.data() + 4 * i, &value, 4);
  }
  const auto size = [](const char* codec, const TensorSpec& spec, const Bytes& bytes) {
    Bytes out;
    encode(codec_named(codec), spec, bytes, out);
    return out.size();
  };
  EXPECT_LT(size("delta-zstd:1", image, pixels), size("zstd:1", image, pixels));
  EXPECT_LT(size("shuffle-zstd:1", floats, values), size("zstd:1", floats, values));
}

// Damage either gives an error of the right kind or the right number of bytes, never more.
TEST(VariantCodec, DamagedFramesAreRefusedOrFillExactly) {
  const TensorSpec spec{DType::kU8, {40, 30, 3}, Layout::kPixels};
  const Bytes bytes = smooth_bytes(spec, 2);
  std::mt19937 random(5);
  Bytes encoded;
  int refused = 0;
  for (const char* name : kNames)
    for (int trial = 0; trial < 300; ++trial) {
      const Codec codec = codec_named(name);
      encode(codec, spec, bytes, encoded);
      if (trial % 3 == 0)
        encoded.resize(random() % encoded.size());
      else if (trial % 3 == 1)
        encoded.push_back(static_cast<std::uint8_t>(random()));
      else
        encoded[random() % encoded.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
      Bytes decoded(bytes.size());
      try {
        decode(codec, spec, encoded, decoded);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kBadSample);
        ++refused;
      }
    }
  EXPECT_GT(refused, 7 * 200);
}

TEST(VariantCodec, WhatWasDamagedSpoilsNothingThatFollows) {
  const TensorSpec spec{DType::kU8, {5000}}, nothing{DType::kU8, {0}};
  for (const char* name : kNames) {
    const Codec codec = codec_named(name);
    Bytes damaged, sound, into(spec.bytes());
    encode(codec, spec, smooth_bytes(spec, 1), damaged);
    damaged.resize(damaged.size() / 2);
    EXPECT_THROW(decode(codec, spec, damaged, into), Error) << name;
    encode(codec, nothing, {}, sound);
    EXPECT_NO_THROW(decode(codec, nothing, sound, {})) << name;
  }
}

TEST(VariantCodec, AFrameOfAnotherSizeIsRefused) {
  const TensorSpec small{DType::kU8, {100}}, large{DType::kU8, {200}};
  Bytes encoded, decoded(200);
  for (const char* name : kNames) {
    encode(codec_named(name), small, smooth_bytes(small, 1), encoded);
    EXPECT_THROW(decode(codec_named(name), large, encoded, decoded), Error) << name;
    encode(codec_named(name), large, smooth_bytes(large, 1), encoded);
    EXPECT_THROW(decode(codec_named(name), small, encoded, {decoded.data(), 100}), Error) << name;
  }
}

TEST(VariantCodec, WhatIsTriedFitsTheKind) {
  const auto names = [](const TensorSpec& spec) {
    std::vector<std::string> all;
    for (const Codec& codec : codecs_for(spec)) all.push_back(to_string(codec));
    return all;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(names({DType::kF32, {3, 4, 4}, Layout::kPlanes}),
              ElementsAre("none", "lz4", "zstd:1", "zstd:3", "shuffle-zstd:1"));
  EXPECT_THAT(names({DType::kU8, {4, 4, 3}, Layout::kPixels}),
              ElementsAre("none", "lz4", "zstd:1", "zstd:3", "delta-zstd:1"));
  EXPECT_THAT(names({DType::kU8, {400}}), ElementsAre("none", "lz4", "zstd:1", "zstd:3"));
}

}  // namespace
}  // namespace cutwater
