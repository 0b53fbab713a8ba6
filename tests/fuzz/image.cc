// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <algorithm>
#include <random>
#include <utility>

#include "cutwater/error.h"
#include "ops/image/coefficients.h"
#include "ops/image/encoded_image.h"
#include "ops/image/jpeg_excerpt.h"

namespace cutwater::fuzz {
namespace {

// As the ops decode and reconstruct have it.
image::EncodedImage encoded(Input file) {
  const TensorSpec stored{DType::kU8, {static_cast<std::int64_t>(file.size())}};
  return {TensorView(stored, file.data()), image::Encoding::kFileOrForm, kLimits, false};
}

// `unwritten` shows wherever the codec leaves a pixel out.
Decoded decode(Input file, const TensorSpec& spec, const Region& part, std::uint8_t unwritten,
               Hint* hint) {
  Pixels pixels(static_cast<std::size_t>(part.height * part.width * 3), unwritten);
  try {
    encoded(file).decode(TensorSpan(spec, pixels.data(), part, part.width * 3), hint);
    return {std::move(pixels), ""};
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, std::string("refused as a sample: ") + error.what());
    return {std::nullopt, error.failure().reason};
  }
}

std::optional<TensorSpec> spec_of(Input file) {
  try {
    const TensorSpec spec = encoded(file).upright();
    require(spec.shape[0] > 0 && spec.shape[1] > 0, "images are not empty");
    require(spec.shape[0] * spec.shape[1] <= kLimits.max_pixels, "max_pixels is kept");
    if (!image::is_coefficient_form(file) && !image::is_jpeg_excerpt(file)) {
      const int orientation = image::read_header(file, kLimits).exif_orientation;
      require(orientation >= 1 && orientation <= 8, "orientation is 1..8");
    }
    return spec;
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, std::string("refused as a sample: ") + error.what());
    return std::nullopt;
  }
}

BufferPool& pool() {
  static const std::shared_ptr<BufferPool> kPool = BufferPool::create(std::size_t{1} << 26);
  return *kPool;
}

std::optional<Tensor> excerpt_of(Input file, const Region& part, Hint* hint = nullptr) {
  try {
    return encoded(file).excerpt(part, hint, pool());
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, std::string("refused as a sample: ") + error.what());
    return std::nullopt;
  }
}

Region some_part(const TensorSpec& spec, std::mt19937& random) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random()) % limit;
  };
  const std::int64_t height = spec.shape[0], width = spec.shape[1];
  const std::int64_t top = below(height), left = below(width);
  return {top, left, 1 + below(height - top), 1 + below(width - left)};
}

Pixels part_of(const Pixels& image, std::int64_t width, const Region& part) {
  Pixels out;
  for (std::int64_t y = part.top; y < part.top + part.height; ++y) {
    const auto row = image.begin() + (y * width + part.left) * 3;
    out.insert(out.end(), row, row + part.width * 3);
  }
  return out;
}

}  // namespace

Decoded checked_decode(Input file, const std::vector<std::uint8_t>& known) {
  const std::optional<TensorSpec> spec = spec_of(file);
  if (!spec) return {std::nullopt, "header"};
  Decoded whole = decode(file, *spec, cutwater::whole(*spec), 0x5A, nullptr);

  std::mt19937 random(hash_of(file));
  Hint hint{known, {}};
  for (int i = 0; i < 3; ++i) {
    const Region part = some_part(*spec, random);
    const Decoded made = decode(file, *spec, part, 0xA5, i == 0 ? nullptr : &hint);
    if (!hint.learned.empty()) hint.known = std::exchange(hint.learned, {});
    const std::string name = std::to_string(part.height) + " rows from " +
                             std::to_string(part.top) + ", " + std::to_string(part.width) +
                             " columns from " + std::to_string(part.left);
    require(made.pixels.has_value() == whole.pixels.has_value(),
            "refusal does not depend on the part: " + name);
    if (whole.pixels)
      require(*made.pixels == part_of(*whole.pixels, spec->shape[1], part),
              "a part is that of the whole: " + name);
  }
  return whole;
}

void decode_parts(Input file, const std::vector<std::uint8_t>& known) {
  const std::optional<TensorSpec> spec = spec_of(file);
  if (!spec) return;
  std::mt19937 random(hash_of(file) ^ hash_of(known));
  Hint hint{known, {}};
  decode(file, *spec, cutwater::whole(*spec), 0, &hint);
  for (int i = 0; i < 3; ++i) {
    const Region part = some_part(*spec, random);
    decode(file, *spec, part, 0, &hint);
    excerpt_of(file, part, &hint);
  }
}

void check_excerpt(Input file) {
  const std::optional<TensorSpec> spec = spec_of(file);
  if (!spec) return;
  std::mt19937 random(hash_of(file));
  const Region part = some_part(*spec, random);
  const std::optional<Tensor> excerpt = excerpt_of(file, part);
  if (!excerpt) return;
  const Input bytes(excerpt->view().bytes(), excerpt->spec().bytes());
  require(bytes.size() < file.size(), "an excerpt is smaller than its file");
  const std::optional<TensorSpec> same = spec_of(bytes);
  require(same == spec, "an excerpt says what its file says");
  const Decoded made = decode(bytes, *spec, part, 0x5A, nullptr);
  const Decoded whole = decode(file, *spec, part, 0xA5, nullptr);
  require(made.pixels.has_value(), "an excerpt has what it was made for: " + made.reason);
  require(made.pixels == whole.pixels, "an excerpt has the pixels of its file");
}

std::vector<std::uint8_t> entropy_decoded(Input file) {
  const Tensor out = encoded(file).entropy_decoded(pool());
  return {out.view().bytes(), out.view().bytes() + out.spec().bytes()};
}

}  // namespace cutwater::fuzz
