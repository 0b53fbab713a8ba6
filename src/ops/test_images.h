// SPDX-License-Identifier: Apache-2.0
// For tests of ops: random tensors, a stored image, and example parameters of every op.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/buffer.h"
#include "cutwater/sample.h"
#include "cutwater/tensor.h"

namespace cutwater::test {

using Data = std::vector<std::uint8_t>;

inline Data noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Data data(size);
  for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
  return data;
}

inline TensorSpec image_spec(std::int64_t height, std::int64_t width, std::int64_t channels = 3) {
  return {DType::kU8, {height, width, channels}, Layout::kPixels};
}

// A 24-bit BMP of random pixels.
inline Data stored_bmp(std::int64_t height, std::int64_t width, unsigned seed) {
  Data file = {'B', 'M'};
  const auto number = [&](std::int64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  const std::int64_t row = (width * 3 + 3) / 4 * 4;
  for (const std::int64_t value :
       {54 + row * height, std::int64_t{0}, std::int64_t{54}, std::int64_t{40}, width, height})
    number(value, 4);
  number(1, 2);
  number(24, 2);
  for (int i = 0; i < 6; ++i) number(0, 4);
  const Data pixels = noise(static_cast<std::size_t>(row * height), seed);
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

// Bytes in memory of exactly their size, so that a sanitizer sees any read beyond.
class Exact {
 public:
  explicit Exact(const Data& data)
      : bytes_(new std::uint8_t[std::max<std::size_t>(data.size(), 1)]) {
    std::copy(data.begin(), data.end(), bytes_.get());
  }
  std::uint8_t* data() { return bytes_.get(); }

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
};

// The rows of a part, without gaps.
inline Data part_of(const TensorSpec& spec, const Data& image, const Region& part) {
  const auto pixel = spec.shape[2] * static_cast<std::int64_t>(size_of(spec.dtype));
  Data out;
  for (std::int64_t y = part.top; y < part.top + part.height; ++y) {
    const auto row = image.begin() + (y * spec.shape[1] + part.left) * pixel;
    out.insert(out.end(), row, row + part.width * pixel);
  }
  return out;
}

inline Region random_part(const TensorSpec& spec, std::mt19937& random) {
  const auto upto = [&](std::int64_t most) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  };
  const std::int64_t top = upto(spec.shape[0] - 1), left = upto(spec.shape[1] - 1);
  return {top, left, 1 + upto(spec.shape[0] - top - 1), 1 + upto(spec.shape[1] - left - 1)};
}

inline Sample sample_of(SampleId id, Cut cut, const TensorSpec& spec, const Data& bytes) {
  Buffer storage(bytes.size());
  std::copy(bytes.begin(), bytes.end(), storage.data());
  Sample sample;
  sample.id = id;
  sample.cut = cut;
  sample.fields.push_back({std::string(kImageField), Tensor(spec, std::move(storage))});
  return sample;
}

inline Data bytes_of(const Sample& sample) {
  const Tensor& tensor = *sample.find(kImageField);
  const std::uint8_t* const bytes = tensor.view().bytes();
  return {bytes, bytes + tensor.spec().bytes()};
}

// What a tensor between two ops can be.
enum class Kind : std::uint8_t { kFile, kEncoded, kImage, kStack, kFloats, kBytePlanes };
inline constexpr Kind kKinds[] = {Kind::kFile,  Kind::kEncoded, Kind::kImage,
                                  Kind::kStack, Kind::kFloats,  Kind::kBytePlanes};

struct Input {
  TensorSpec spec;
  Data bytes;
};

inline std::vector<Input> inputs_of(Kind kind) {
  std::vector<Input> inputs;
  const auto add = [&](const TensorSpec& spec) {
    inputs.push_back({spec, noise(spec.bytes(), static_cast<unsigned>(inputs.size() + 1))});
  };
  switch (kind) {
    case Kind::kFile:
    case Kind::kEncoded:
      for (const auto& [height, width] :
           {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 7}, {20, 9}}) {
        Data file = stored_bmp(height, width, 3);
        TensorSpec spec{DType::kU8, {static_cast<std::int64_t>(file.size())}};
        if (kind == Kind::kEncoded)
          spec = {DType::kU8, {spec.shape[0], height, width, 3, 1}, Layout::kPacked};
        inputs.push_back({spec, file});
      }
      break;
    case Kind::kImage:
      for (const std::int64_t channels : {1, 3})
        for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                            {1, 9},
                                            {8, 1},
                                            {9, 4},
                                            {13, 17},
                                            {6, 6}})
          add(image_spec(height, width, channels));
      break;
    case Kind::kStack: add({DType::kU8, {5, 4, 3, 3}, Layout::kPixels}); break;
    case Kind::kFloats:
      add({DType::kF32, {3, 5, 7}, Layout::kPlanes});
      add({DType::kF32, {3, 1, 1}, Layout::kPlanes});
      add({DType::kF32, {5, 3, 4, 4}, Layout::kPlanes});
      add({DType::kF32, {3, 4, 5}, Layout::kPlanesLast});
      break;
    case Kind::kBytePlanes:  // to_tensor, then to_dtype: no image, whatever its numbers
      add({DType::kU8, {3, 5, 3}, Layout::kPlanes});
      break;
  }
  return inputs;
}

// An op as a pipeline would have it. Every op of the table must be here: op_contract_test.cc fails
// where one is missing.
struct Example {
  std::string_view text;
  std::vector<Kind> takes;
};

inline const std::vector<Example>& examples() {
  static const std::vector<Kind> kFile = {Kind::kFile}, kEncoded = {Kind::kEncoded},
                                 kImage = {Kind::kImage}, kPixels = {Kind::kImage, Kind::kStack},
                                 kFloats = {Kind::kFloats},
                                 kPlanes = {Kind::kFloats, Kind::kBytePlanes},
                                 kAny = {Kind::kImage, Kind::kStack, Kind::kFloats,
                                         Kind::kBytePlanes};
  static const std::vector<Example> kExamples = {
      {"decode", kFile},
      {"decode(exif=True, max_pixels=1000, max_bytes=5000, max_scans=3)", kFile},
      {"entropy", kFile},
      {"entropy(max_pixels=1000, max_bytes=5000, max_scans=3)", kFile},
      {"reconstruct", kEncoded},
      {"reconstruct(exif=True, max_pixels=1000, max_bytes=5000, max_scans=3)", kEncoded},
      {"resize(size=5)", kImage},
      {"resize(size=[3, 8], interpolation=\"bicubic\")", kImage},
      {"resize(size=4, interpolation=\"lanczos\", max_size=6, pillow=12)", kImage},
      {"resize(size=[7, 2], interpolation=\"nearest\")", kImage},
      {"resize(size=[2, 9], interpolation=\"box\")", kImage},
      {"resize(size=[9, 9], interpolation=\"hamming\")", kImage},
      {"center_crop(size=4)", kImage},
      {"center_crop(size=[3, 12])", kImage},
      {"five_crop(size=3)", kImage},
      {"five_crop(size=[1, 4])", kImage},
      {"random_crop(size=4)", kImage},
      {"random_crop(size=[2, 3])", kPlanes},
      {"random_crop(size=[5, 3], pad_if_needed=True, fill=[1, 2, 3], padding_mode=\"edge\")",
       kImage},
      {"random_crop(size=8, pad_if_needed=True, padding_mode=\"reflect\")", kImage},
      {"random_resized_crop(size=4)", kImage},
      {"random_resized_crop(size=[6, 3], scale=[0.5, 0.9], ratio=[1, 2], "
       "interpolation=\"bicubic\", "
       "pillow=12)",
       kImage},
      {"random_horizontal_flip", kImage},
      {"random_horizontal_flip(p=0.9)", kImage},
      {"random_vertical_flip", kImage},
      {"random_vertical_flip(p=0.1)", kImage},
      {"pad(padding=[2])", kImage},
      {"pad(padding=[1, 2, 3, 0], fill=[9, 8, 7])", kImage},
      {"pad(padding=[4, 3], padding_mode=\"reflect\")", kImage},
      {"pad(padding=[0, 5], padding_mode=\"symmetric\")", kImage},
      {"pad(padding=[3], padding_mode=\"edge\")", kImage},
      {"grayscale", kImage},
      {"grayscale(num_output_channels=3)", kImage},
      {"to_tensor", kPixels},
      {"to_tensor(channels_last=True)", kPixels},
      {"normalize(mean=[0.5], std=[0.25])", kFloats},
      {"normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])", kFloats},
      {"to_dtype(dtype=\"float32\", scale=True)", kAny},
      {"to_dtype(dtype=\"float16\")", kAny},
      {"to_dtype(dtype=\"float64\")", kAny},
      {"to_dtype(dtype=\"uint8\", scale=True)", kAny},
      {"to_dtype(dtype=\"int16\", scale=True)", kAny},
      {"to_dtype(dtype=\"int64\")", kAny},
  };
  return kExamples;
}

}  // namespace cutwater::test
