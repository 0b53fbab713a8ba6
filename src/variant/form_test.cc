// SPDX-License-Identifier: Apache-2.0
#include "variant/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cutwater/error.h"

namespace cutwater {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor tensor_of(const TensorSpec& spec, std::uint32_t seed) {
  std::mt19937 random(seed);
  Buffer bytes(spec.bytes());
  std::uint8_t value = 0;
  for (std::uint8_t& byte : bytes.span())
    byte = value = static_cast<std::uint8_t>(value + random() % 3);
  return {spec, std::move(bytes)};
}

Sample sample_of(SampleId id, Cut cut, std::uint32_t seed = 1) {
  Sample sample;
  sample.id = id;
  sample.cut = cut;
  const TensorSpec specs[] = {
      {DType::kU8, {37, 41, 3}, Layout::kPixels},      {DType::kI64, {}},
      {DType::kF32, {3, 20, 17}, Layout::kPlanesLast}, {DType::kU8, {0}},
      {DType::kU8, {700, 16, 16, 3}, Layout::kPacked}, {DType::kI16, {2, 1, 5, 4, 3, 1}}};
  for (const TensorSpec& spec : specs)
    sample.fields.push_back({"field" + std::to_string(seed), tensor_of(spec, seed)}), ++seed;
  return sample;
}

Buffer form_of(const Sample& sample, const Codec& codec, Checksum checksum = Checksum::kNone) {
  const FormWriter writer(sample, codec, checksum);
  Buffer bytes(writer.size());
  writer.write(bytes.span());
  return bytes;
}

void expect_same(const Sample& a, const Sample& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.cut, b.cut);
  ASSERT_EQ(a.fields.size(), b.fields.size());
  for (std::size_t i = 0; i < a.fields.size(); ++i) {
    EXPECT_EQ(a.fields[i].name, b.fields[i].name);
    const TensorSpec& spec = a.fields[i].tensor.spec();
    ASSERT_EQ(spec, b.fields[i].tensor.spec());
    const auto bytes = [&](const Sample& sample) {
      return std::span(sample.fields[i].tensor.view().bytes(), spec.bytes());
    };
    EXPECT_TRUE(std::ranges::equal(bytes(a), bytes(b))) << i;
  }
}

class FormTest : public testing::Test {
 protected:
  Sample read(std::span<const std::uint8_t> bytes, Checksum checksum = Checksum::kNone,
              std::size_t most = SIZE_MAX) {
    const auto reserve = [this](std::size_t count) { reserved.push_back(count); };
    return read_form({bytes, nullptr, pool.get(), reserve, most, checksum}, 7, 3);
  }

  std::shared_ptr<BufferPool> pool = BufferPool::create(std::size_t{1} << 20);
  std::vector<std::size_t> reserved;
  const Sample sample = sample_of(7, 3);
};

TEST_F(FormTest, ComesBackInEveryCodec) {
  for (const char* name : {"none", "lz4", "zstd:1", "zstd:19", "shuffle-zstd:3", "delta-zstd:1"})
    for (const Checksum checksum : {Checksum::kNone, Checksum::kXxh3}) {
      const Buffer bytes = form_of(sample, codec_named(name), checksum);
      expect_same(read(bytes.view(), checksum), sample);
    }
  expect_same(read(form_of(Sample{7, 3, {}}, {}).view()), Sample{7, 3, {}});
}

TEST_F(FormTest, IsTheSameInOnePieceAndInTwo) {
  for (const char* name : {"none", "lz4", "delta-zstd:1"})
    for (const Checksum checksum : {Checksum::kNone, Checksum::kXxh3}) {
      const auto its_sample = std::make_shared<Sample>(sample_of(5, 2));
      const Codec codec = codec_named(name);
      const Buffer whole = form_of(*its_sample, codec, checksum);
      const SharedBytes shared = shared_form(its_sample, codec, checksum, *pool);
      Buffer together(shared.size());
      shared.copy_to(together.span());
      EXPECT_TRUE(std::ranges::equal(together.view(), whole.view())) << name;
      if (!codec.is_none()) continue;
      const Tensor& largest = its_sample->fields[0].tensor;
      EXPECT_EQ(shared.runs[1].data(), largest.view().bytes()) << "not copied";
      EXPECT_EQ(shared.runs[1].size(), largest.spec().bytes());
    }
}

TEST_F(FormTest, RawTensorsAreLent) {
  const Buffer bytes = form_of(sample, {});
  const auto hold = std::make_shared<int>(1);
  Sample lent = read_form({bytes.view(), hold, nullptr}, 7, 3);
  EXPECT_EQ(hold.use_count(), 2);
  for (const Field& field : lent.fields) {
    const std::uint8_t* const data = field.tensor.view().bytes();
    EXPECT_FALSE(field.tensor.owns_bytes());
    EXPECT_TRUE(data >= bytes.data() && data <= bytes.data() + bytes.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % kBufferAlignment, 0u);
  }
  lent = {};
  EXPECT_EQ(hold.use_count(), 1);
}

TEST_F(FormTest, MemoryForDecodedTensorsIsAskedForOnce) {
  const Buffer bytes = form_of(sample, codec_named("zstd:1"));
  (void)read(bytes.view());
  const std::size_t large = 37 * 41 * 3 + 3 * 20 * 17 * 4 + 700;  // labels and the like stay raw
  EXPECT_EQ(reserved, std::vector<std::size_t>{large});
  EXPECT_LT(bytes.size(), form_of(sample, {}).size());
  EXPECT_THAT([&] { (void)read(bytes.view(), Checksum::kNone, large - 1); },
              ThrowsMessage<Error>(HasSubstr("too many bytes")));
}

TEST_F(FormTest, ACodecThatGrowsATensorIsNotUsed) {
  Sample noise;
  noise.id = 7;
  noise.cut = 3;
  std::mt19937 random(1);
  Tensor tensor = tensor_of({DType::kU8, {5000}}, 1);
  for (std::uint8_t& byte : std::span(tensor.span().bytes(), 5000))
    byte = static_cast<std::uint8_t>(random());
  noise.fields.push_back({"image", std::move(tensor)});
  const Buffer bytes = form_of(noise, codec_named("lz4"));
  EXPECT_EQ(bytes.size(), form_of(noise, {}).size());
  const Sample back = read(bytes.view());
  expect_same(back, noise);
  EXPECT_FALSE(back.fields[0].tensor.owns_bytes());
}

TEST_F(FormTest, OfAnotherSampleOrCutIsRefused) {
  const Buffer bytes = form_of(sample, {});
  for (const auto& [id, cut] : {std::pair{SampleId{8}, Cut{3}}, {SampleId{7}, Cut{2}}}) {
    const SampleId sample_id = id;
    const Cut at = cut;
    EXPECT_THAT(
        [&] {
          (void)read_form({bytes.view(), nullptr, pool.get()}, sample_id, at);
        },
        ThrowsMessage<Error>(HasSubstr("another sample or cut")));
  }
}

TEST_F(FormTest, AFlippedBitIsFoundByTheChecksum) {
  Buffer bytes = form_of(sample, codec_named("lz4"), Checksum::kXxh3);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += 5) {
    bytes.data()[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_THROW((void)read(bytes.view(), Checksum::kXxh3), Error) << bit;
    bytes.data()[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  expect_same(read(bytes.view(), Checksum::kXxh3), sample);
  EXPECT_THROW((void)read(form_of(sample, {}).view(), Checksum::kXxh3), Error);
}

TEST_F(FormTest, OfATensorThatCannotBeIsRefused) {
  const TensorSpec specs[] = {{DType::kU8, {0, 0, 3}, Layout::kPixels},
                              {DType::kF32, {0, 300, 300}, Layout::kPlanesLast},
                              {DType::kF32, {0, 3}, Layout::kPlanes}};
  for (const TensorSpec& spec : specs) {
    Sample empty{7, 3, {}};
    empty.fields.push_back({"image", Tensor(spec, Buffer())});
    const Buffer bytes = form_of(empty, {});
    EXPECT_THAT([&] { (void)read(bytes.view()); },
                ThrowsMessage<Error>(HasSubstr("there cannot be a tensor of " + to_string(spec))));
  }
}

TEST_F(FormTest, EndsInANamedErrorOrASampleWhateverTheBytes) {
  for (const char* name : {"none", "zstd:1", "shuffle-zstd:1", "delta-zstd:1", "lz4"}) {
    const Buffer sound = form_of(sample, codec_named(name));
    std::mt19937 random(3);
    for (int trial = 0; trial < 3000; ++trial) {
      Buffer bytes = sound.copy();
      // Mostly the head and the records: there lie the lies that matter.
      const std::size_t reach = trial % 4 == 0 ? bytes.size() : 550;
      for (unsigned flips = 1 + random() % 3; flips > 0; --flips)
        bytes.data()[random() % reach] = static_cast<std::uint8_t>(random());
      try {
        const Sample read_back = read(bytes.view(), Checksum::kNone, 1 << 20);
        for (const Field& field : read_back.fields) {
          const std::uint8_t* const data = field.tensor.view().bytes();
          std::uint64_t sum = 0;  // every byte can be read
          for (std::size_t i = 0; i < field.tensor.spec().bytes(); ++i) sum += data[i];
          EXPECT_LE(sum, 255 * field.tensor.spec().bytes());
        }
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::kBadSample) << error.what();
      }
    }
    for (std::size_t size = 0; size < sound.size(); size += 1 + size / 40) {
      Buffer part(size);
      std::copy_n(sound.data(), size, part.data());
      EXPECT_THROW((void)read(part.view()), Error) << size;
    }
  }
}

}  // namespace
}  // namespace cutwater
