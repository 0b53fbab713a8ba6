// SPDX-License-Identifier: Apache-2.0
// See codec_common.h.
#include "ops/image/codec_common.h"

#include <algorithm>

namespace cutwater::image {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;

// 5 or 6 bits to 8, rounded down: Pillow's scaling.
std::uint8_t widen(std::uint32_t value, std::uint32_t max) {
  return static_cast<std::uint8_t>(value * 255 / max);
}

// Calls put(pixel, out) for `count` pixels of `size` bytes each.
template <class Put>
void each(const std::uint8_t* in, std::int64_t size, std::int64_t count, std::uint8_t* out,
          std::int64_t out_step, Put put) {
  for (std::int64_t i = 0; i < count; ++i, in += size, out += out_step) put(in, out);
}

}  // namespace

void check_size(Format format, std::int64_t width, std::int64_t height, const Limits& limits) {
  const std::string size = std::to_string(width) + "x" + std::to_string(height);
  const std::string name(name_of(format));
  if (width <= 0 || height <= 0) refuse(name + " header states an empty image, " + size);
  if (width > limits.max_pixels / height) {
    refuse(name + " header states " + size + " pixels, above the limit of " +
           std::to_string(limits.max_pixels) + "; raise max_pixels if the file is trusted");
  }
}

int exif_orientation(Bytes exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  for (int i = 0; i < 2 && starts_with(exif, kPrefix); ++i) exif = exif.subspan(kPrefix.size());
  const bool big = starts_with(exif, std::string_view("MM\0*", 4));
  if (exif.size() < 8 || (!big && !starts_with(exif, std::string_view("II*\0", 4)))) return 1;
  const auto u16 = [&](std::size_t at) { return big ? be16(exif, at) : le16(exif, at); };
  const auto u32 = [&](std::size_t at) { return big ? be32(exif, at) : le32(exif, at); };

  const std::size_t directory = u32(4);
  if (directory + 2 > exif.size()) return 1;
  const std::size_t entries = u16(directory);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > exif.size()) return 1;
    if (u16(entry) != kOrientationTag) continue;
    constexpr std::uint32_t kShort = 3, kLong = 4;
    const std::uint32_t type = u16(entry + 2);
    if ((type != kShort && type != kLong) || u32(entry + 4) != 1) return 1;
    const std::uint32_t value = type == kShort ? u16(entry + 8) : u32(entry + 8);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Palette Palette::gray(int levels) {
  Palette palette;
  for (int i = 0; i < levels; ++i) {
    const auto value = static_cast<std::uint8_t>(i * 255 / (levels - 1));
    palette.set(static_cast<std::size_t>(i), value, value, value);
  }
  return palette;
}

void unpack(const PixelLayout& layout, const Palette& palette, const std::uint8_t* row,
            std::int64_t first, std::int64_t count, std::uint8_t* out, std::int64_t out_step) {
  using Kind = PixelLayout::Kind;
  const std::int64_t size = layout.bits / 8;
  const std::uint8_t* in = row + first * size;
  switch (layout.kind) {
    case Kind::kIndexed: {
      const std::int64_t bits = layout.bits;
      const unsigned mask = (1U << bits) - 1;
      for (std::int64_t i = first; i < first + count; ++i, out += out_step) {
        const std::int64_t bit = i * bits;
        palette.put((row[bit / 8] >> (8 - bits - bit % 8)) & mask, out);
      }
      return;
    }
    case Kind::kBytes: {
      const std::size_t r = layout.rgb_at[0], g = layout.rgb_at[1], b = layout.rgb_at[2];
      if (size == 3 && out_step == 3 && r == 0 && g == 1 && b == 2) {
        std::memcpy(out, in, static_cast<std::size_t>(count) * 3);
        return;
      }
      each(in, size, count, out, out_step, [=](const std::uint8_t* from, std::uint8_t* to) {
        to[0] = from[r];
        to[1] = from[g];
        to[2] = from[b];
      });
      return;
    }
    case Kind::kGray16:
      each(in, size, count, out, out_step, [](const std::uint8_t* from, std::uint8_t* to) {
        to[0] = to[1] = to[2] = from[0] != 0 ? 255 : from[1];
      });
      return;
    case Kind::k555:
    case Kind::k565: {
      const unsigned green_bits = layout.kind == Kind::k565 ? 6 : 5;
      const std::uint32_t green_max = (1U << green_bits) - 1;
      each(in, size, count, out, out_step, [=](const std::uint8_t* from, std::uint8_t* to) {
        const std::uint32_t value = from[0] | std::uint32_t{from[1]} << 8;
        to[0] = widen(value >> (5 + green_bits) & 31, 31);
        to[1] = widen(value >> 5 & green_max, green_max);
        to[2] = widen(value & 31, 31);
      });
      return;
    }
  }
}

void PatchWriter::fill(std::size_t value) const {
  std::array<std::uint8_t, 3> color{};
  if (layout_.kind == PixelLayout::Kind::kIndexed) palette_.put(value, color.data());
  const Region& region = out_.present();
  for (std::int64_t y = region.top; y < region.top + region.height; ++y) {
    std::uint8_t* pixel = out_.pixel(y, region.left);
    for (std::int64_t x = 0; x < region.width; ++x, pixel += 3) {
      std::memcpy(pixel, color.data(), 3);
    }
  }
}

void PatchWriter::write(const std::uint8_t* row, std::int64_t y, std::int64_t left,
                        std::int64_t width) const {
  const Region& region = out_.present();
  if (y < region.top || y >= region.top + region.height) return;
  const std::int64_t first = std::max(left, region.left);
  const std::int64_t count = std::min(left + width, region.left + region.width) - first;
  if (count > 0) unpack(layout_, palette_, row, first - left, count, out_.pixel(y, first));
}

void PatchWriter::write_sparse(const std::uint8_t* row, std::int64_t y, std::int64_t left,
                               std::int64_t step, std::int64_t count) const {
  const Region& region = out_.present();
  if (y < region.top || y >= region.top + region.height) return;
  const std::int64_t skipped = std::max<std::int64_t>(0, (region.left - left + step - 1) / step);
  const std::int64_t end = std::min(count, (region.left + region.width - left + step - 1) / step);
  if (skipped >= end) return;
  unpack(layout_, palette_, row, skipped, end - skipped, out_.pixel(y, left + skipped * step),
         3 * step);
}

}  // namespace cutwater::image
