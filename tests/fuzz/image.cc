// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <algorithm>
#include <random>

#include "cutwater/error.h"

namespace cutwater::fuzz {
namespace {

// `unwritten` shows wherever the codec leaves a pixel out.
Decoded decode(Input file, const image::Header& header, const Region& part,
               std::uint8_t unwritten) {
  Pixels pixels(static_cast<std::size_t>(part.height * part.width * 3), unwritten);
  const TensorSpec spec{DType::kU8, {header.height, header.width, 3}, Layout::kPixels};
  try {
    image::decode_rgb(file, header, kLimits, TensorSpan(spec, pixels.data(), part, part.width * 3));
    return {std::move(pixels), ""};
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, std::string("refused as a sample: ") + error.what());
    return {std::nullopt, error.failure().reason};
  }
}

std::optional<image::Header> read_header(Input file) {
  try {
    const image::Header header = image::read_header(file, kLimits);
    require(header.width > 0 && header.height > 0, "images are not empty");
    require(header.width * header.height <= kLimits.max_pixels, "max_pixels is kept");
    require(header.exif_orientation >= 1 && header.exif_orientation <= 8, "orientation is 1..8");
    return header;
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, std::string("refused as a sample: ") + error.what());
    return std::nullopt;
  }
}

Region some_part(const image::Header& header, std::mt19937& random) {
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random()) % limit;
  };
  const std::int64_t top = below(header.height), left = below(header.width);
  return {top, left, 1 + below(header.height - top), 1 + below(header.width - left)};
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

Decoded checked_decode(Input file) {
  const std::optional<image::Header> header = read_header(file);
  if (!header) return {std::nullopt, "header"};
  const Region all{0, 0, header->height, header->width};
  Decoded whole = decode(file, *header, all, 0x5A);

  std::mt19937 random(hash_of(file));
  for (int i = 0; i < 2; ++i) {
    const Region part = some_part(*header, random);
    const Decoded made = decode(file, *header, part, 0xA5);
    const std::string name = std::to_string(part.height) + " rows from " +
                             std::to_string(part.top) + ", " + std::to_string(part.width) +
                             " columns from " + std::to_string(part.left);
    require(made.pixels.has_value() == whole.pixels.has_value(),
            "refusal does not depend on the part: " + name);
    if (whole.pixels)
      require(*made.pixels == part_of(*whole.pixels, header->width, part),
              "a part is that of the whole: " + name);
  }
  return whole;
}

}  // namespace cutwater::fuzz
