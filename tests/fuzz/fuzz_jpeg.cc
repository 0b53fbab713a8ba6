// SPDX-License-Identifier: Apache-2.0
// Our JPEG decoder beside libjpeg as Pillow runs it: the same pixels, or both refuse. As the input
// comes, and moved so that the end of Pillow's first block lies within it.
#include "image.h"
#include "jpeg_reference.h"
#include "ops/image/codec_common.h"
#include "ops/image/codec_jpeg.h"

namespace cutwater::fuzz {
namespace {

// None where the walk over the markers refuses: tools/corrupt.py compares that with Pillow's own.
std::optional<image::JpegFrame> frame_of(Input file) {
  if (!image::starts_with(file, "\xFF\xD8\xFF")) return std::nullopt;
  try {
    image::read_jpeg_header(file, kLimits);
    return image::read_jpeg_frame(file);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A comment before everything else. Its length puts the end of a block of 64 KiB at byte `at` of
// the file.
std::vector<std::uint8_t> moved(Input file, std::size_t at) {
  constexpr std::size_t kBlock = 65536, kMarker = 2, kStart = 2;
  const std::size_t length = kBlock - at - kMarker;  // the two bytes of the length count
  std::vector<std::uint8_t> out = {0xFF,
                                   0xD8,
                                   0xFF,
                                   0xFE,
                                   static_cast<std::uint8_t>(length >> 8),
                                   static_cast<std::uint8_t>(length & 255)};
  out.resize(kStart + kMarker + length);
  out.insert(out.end(), file.begin() + kStart, file.end());
  return out;
}

void check(Input file) {
  const Decoded got = checked_decode(file);
  const std::optional<image::JpegFrame> frame = frame_of(file);
  if (!frame) return;
  // The one limit that Pillow does not have.
  if (got.reason.find("max_scans") != std::string::npos) return;
  const std::optional<Pixels> want =
      decode_as_pillow(file, {frame->width, frame->height, frame->components});
  require(got.pixels.has_value() || !want, "what libjpeg accepts is accepted: " + got.reason);
  require(!got.pixels || want, "what libjpeg refuses is refused");
  if (!want) return;
  require(*got.pixels == *want, "the pixels are libjpeg's");
  const Decoded halves = checked_decode(entropy_decoded(file));
  require(halves.pixels == want, "decoding in two halves gives the same");
}

}  // namespace

FUZZ_TARGET(jpeg) {
  check(input);
  constexpr std::size_t kFirst = 4, kLast = 60000;
  if (input.size() <= kFirst || input.size() > kLast || !frame_of(input)) return;
  check(moved(input, kFirst + hash_of(input) % (input.size() - kFirst)));
}

}  // namespace cutwater::fuzz
