// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_excerpt.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>

#include "ops/image/codec_common.h"
#include "ops/image/codec_jpeg.h"

namespace cutwater::image {
namespace {

constexpr std::string_view kMagic = "cw.exct1";
constexpr std::size_t kSizeAt = 8, kWidthAt = 12, kHeightAt = 14, kLeftAt = 16, kTopAt = 18,
                      kOrientationAt = 20, kReservedAt = 21, kJpegAt = 24;

void put(std::vector<std::uint8_t>& out, std::size_t at, std::int64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// How the blocks lie; whether its three components are RGB, a frame does not tell.
JpegGeometry geometry_of(const JpegFrame& frame) {
  JpegGeometry geometry;
  geometry.width = frame.width;
  geometry.height = frame.height;
  if (frame.components == 1) return geometry;
  geometry.color = JpegGeometry::Color::kYcc;
  for (std::size_t c = 0; c < geometry.sampling.size(); ++c)
    geometry.sampling[c] = {frame.sampling[c].h, frame.sampling[c].v};
  return geometry;
}

std::string text_of(const Region& region) {
  return "rows " + std::to_string(region.top) + ".." +
         std::to_string(region.top + region.height - 1) + ", columns " +
         std::to_string(region.left) + ".." + std::to_string(region.left + region.width - 1);
}

// In other codes: of files whose own do not do or are too long, or that are no baseline files.
bool write_anew(Bytes file, const Header& header, const Limits& limits, const Region& region,
                Hint* hint, std::size_t limit, JpegWindow& window, std::vector<std::uint8_t>& out) {
  thread_local const auto kept = std::make_unique<JpegPart>();  // too large for a stack
  JpegPart& part = *kept;
  const bool written = (read_baseline_part(file, region, hint, part) ||
                        read_progressive_part(file, header, limits, region, part)) &&
                       write_baseline(part, limit, out);
  part.symbols.give_up_large();
  window = static_cast<const JpegWindow&>(part);
  return written;
}

}  // namespace

bool is_jpeg_excerpt(Bytes bytes) { return starts_with(bytes, kMagic); }

bool write_jpeg_excerpt(Bytes file, const Header& header, const Limits& limits,
                        const Region& region, Hint* hint, std::vector<std::uint8_t>& out) {
  if (file.size() <= kJpegAt) return false;
  const std::size_t limit = file.size() - kJpegAt;
  JpegWindow window;
  out.assign(kJpegAt, 0);
  if (!copy_baseline_part(file, region, hint, limit, window, out)) {
    out.assign(kJpegAt, 0);
    if (!write_anew(file, header, limits, region, hint, limit, window, out)) return false;
  }
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  put(out, kSizeAt, static_cast<std::int64_t>(out.size()), 4);
  put(out, kWidthAt, window.image.width, 2);
  put(out, kHeightAt, window.image.height, 2);
  put(out, kLeftAt, window.mcus.left * 8 * window.image.max_h(), 2);
  put(out, kTopAt, window.mcus.top * 8 * window.image.max_v(), 2);
  put(out, kOrientationAt, header.exif_orientation, 1);
  return true;
}

double jpeg_excerpt_share(Bytes file, const Region& region) {
  const JpegFrame frame = read_jpeg_frame(file);
  const JpegGeometry geometry = geometry_of(frame);
  if (frame.components > 3 || !geometry.sound()) return 1;
  // Photographs have more in their middle, where most crops are.
  constexpr double kOfBits = 1.05, kHeaderBytes = 24 + 600;
  const McuWindow mcus = geometry.window(region), all = geometry.all_mcus();
  const double share = static_cast<double>(mcus.across() * mcus.down()) /
                       static_cast<double>(all.across() * all.down());
  const auto size = static_cast<double>(file.size());
  const double scan = size - static_cast<double>(frame.scan_at);
  return std::min(1.0, (kHeaderBytes + kOfBits * share * scan) / size);
}

JpegExcerpt::JpegExcerpt(Bytes excerpt, const Limits& limits) {
  if (!is_jpeg_excerpt(excerpt))
    refuse("excerpt of a JPEG has no '" + std::string(kMagic) + "' mark");
  if (excerpt.size() < kJpegAt || le32(excerpt, kSizeAt) != excerpt.size())
    refuse("excerpt of a JPEG is cut short: " + std::to_string(excerpt.size()) + " bytes");
  jpeg_ = excerpt.subspan(kJpegAt);
  const Header inner = read_header(jpeg_, limits);
  if (inner.format != Format::kJpeg) refuse("excerpt of a JPEG has no JPEG in it");
  const JpegGeometry part = geometry_of(read_jpeg_frame(jpeg_));
  const std::int64_t left = le16(excerpt, kLeftAt), top = le16(excerpt, kTopAt);
  const std::int64_t mcu_width = 8 * part.max_h(), mcu_height = 8 * part.max_v();
  image_ = part;
  image_.width = le16(excerpt, kWidthAt);
  image_.height = le16(excerpt, kHeightAt);
  check_size(Format::kJpeg, image_.width, image_.height, limits);
  header_ = {.format = Format::kJpeg,
             .height = image_.height,
             .width = image_.width,
             .exif_orientation = excerpt[kOrientationAt],
             .scratch_bytes = inner.scratch_bytes};
  if (header_.exif_orientation < 1 || header_.exif_orientation > 8)
    refuse("excerpt of a JPEG has the unknown orientation " +
           std::to_string(header_.exif_orientation));
  if (le16(excerpt, kReservedAt) != 0 || excerpt[kReservedAt + 2] != 0)
    refuse("excerpt of a JPEG is of a later version, or damaged: its reserved bytes are not zero");

  place_ = {image_.width, image_.height, left / mcu_width, top / mcu_height};
  mcus_ = part.all_mcus().moved(place_.left, place_.top);
  const JpegGeometry there = image_.cut_to(mcus_);
  if (!part.sound() || !image_.sound() || left % mcu_width != 0 || top % mcu_height != 0 ||
      !image_.all_mcus().contains(mcus_) || there.width != part.width ||
      there.height != part.height)
    refuse("excerpt of a JPEG does not lie in its image: " +
           text_of({top, left, part.height, part.width}) + " of " + std::to_string(image_.height) +
           " rows, " + std::to_string(image_.width) + " columns");
}

void JpegExcerpt::reconstruct(const Region& region, JpegPlanes& planes) const {
  const auto outside = [&] {
    const std::int64_t mcu_width = 8 * image_.max_h(), mcu_height = 8 * image_.max_v();
    const JpegGeometry part = image_.cut_to(mcus_);
    refuse("this is an excerpt of an image, " +
           text_of({mcus_.top * mcu_height, mcus_.left * mcu_width, part.height, part.width}) +
           " of it; it was made for other draws than those that need " + text_of(region));
  };
  if (region.height == 0 || region.width == 0 || !mcus_.contains(image_.window(region))) outside();
  if (!decode_baseline_part(jpeg_, place_, region, planes))
    refuse("excerpt of a JPEG is damaged, or no baseline JPEG");
}

}  // namespace cutwater::image
