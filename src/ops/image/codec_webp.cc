// SPDX-License-Identifier: Apache-2.0
// See codec_webp.h. Stills go through the animation decoder as well: it checks that the whole file
// is there and well formed, and so decides what is refused.
#include "ops/image/codec_webp.h"

#include <webp/demux.h>

#include <algorithm>
#include <memory>

#include "ops/image/codec_common.h"

namespace cutwater::image {
namespace {

struct Deleter {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

std::uint32_t le24(Bytes data, std::size_t at) {
  return le16(data, at) | std::uint32_t{data[at + 2]} << 16;
}

struct Size {
  std::int64_t width = 0, height = 0;
};

// REQUIRES: the file begins with a RIFF header of type WEBP.
Size read_size(Bytes file) {
  constexpr std::size_t kVp8Start = 23, kVp8lStart = 20, kNeeded = 30;
  const Bytes chunk = file.subspan(12);
  if (file.size() >= kNeeded) {
    if (starts_with(chunk, "VP8X")) return {le24(file, 24) + 1, le24(file, 27) + 1};
    if (starts_with(chunk, "VP8 ") && starts_with(file.subspan(kVp8Start), "\x9d\x01\x2a")) {
      return {le16(file, 26) & 0x3FFF, le16(file, 28) & 0x3FFF};
    }
  }
  if (file.size() >= 25 && starts_with(chunk, "VP8L") && file[kVp8lStart] == 0x2F) {
    const std::uint32_t bits = le32(file, 21);
    return {(bits & 0x3FFF) + 1, ((bits >> 14) & 0x3FFF) + 1};
  }
  refuse("WebP header is damaged or cut short");
}

int find_orientation(Bytes file) {
  std::size_t at = 12;
  while (file.size() - at >= 8) {
    const std::size_t size = le32(file, at + 4);
    const Bytes rest = file.subspan(at + 8);
    if (size > rest.size()) break;
    if (starts_with(file.subspan(at), "EXIF")) return exif_orientation(rest.first(size));
    at = std::min(file.size(), at + 8 + size + (size & 1));
  }
  return 1;
}

}  // namespace

Header read_webp_header(Bytes file, const Limits& limits) {
  const Size size = read_size(file);
  check_size(Format::kWebp, size.width, size.height, limits);
  // Two canvases of four bytes per pixel, and a lossless or alpha plane while one is decoded.
  constexpr std::int64_t kBytesPerPixel = 13, kTables = 4 << 20;
  return {.format = Format::kWebp,
          .height = size.height,
          .width = size.width,
          .exif_orientation = find_orientation(file),
          .scratch_bytes = size.width * size.height * kBytesPerPixel + kTables};
}

void decode_webp(Bytes file, const Header& header, const TensorSpan& out) {
  const WebPData data{file.data(), file.size()};
  const std::unique_ptr<WebPAnimDecoder, Deleter> decoder(WebPAnimDecoderNew(&data, nullptr));
  WebPAnimInfo info{};
  if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0) {
    refuse("WebP is damaged or cut short");
  }
  if (info.canvas_width != header.width || info.canvas_height != header.height) {
    refuse("WebP has headers that contradict each other");
  }
  std::uint8_t* canvas = nullptr;
  int timestamp = 0;
  if (WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp) == 0) {
    refuse("WebP image data are damaged");
  }
  // Alpha is dropped, not blended.
  const PixelLayout layout{PixelLayout::Kind::kBytes, 32, {0, 1, 2}};
  const Palette palette;
  const PatchWriter writer(out, layout, palette);
  const Region& region = out.present();
  for (std::int64_t y = region.top; y < region.top + region.height; ++y) {
    writer.write(canvas + y * header.width * 4, y, 0, header.width);
  }
}

}  // namespace cutwater::image
