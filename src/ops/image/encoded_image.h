// SPDX-License-Identifier: Apache-2.0
// An image before reconstruction: a stored file, an excerpt of one, or the coefficient form of a
// JPEG. What the ops entropy and reconstruct, and the pass that fuses them with what follows, have
// in common.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

#include "cutwater/op.h"
#include "ops/image/codec.h"
#include "ops/image/orientation.h"
#include "ops/image/row_stream.h"

namespace cutwater::image {

// What decode and both its parts refuse.
struct DecodeLimits {
  std::int64_t max_pixels = Limits{}.max_pixels;
  std::int64_t max_bytes = Limits{}.max_bytes;
  std::int64_t max_scans = Limits{}.max_scans;

  static constexpr std::tuple kParams{
      Param{"max_pixels", &DecodeLimits::max_pixels, "Refuse larger images, by their header."},
      Param{"max_bytes", &DecodeLimits::max_bytes, "Refuse larger files."},
      Param{"max_scans", &DecodeLimits::max_scans, "Refuse JPEGs of more progressive scans."}};

  Limits limits() const { return {max_pixels, max_bytes, max_scans}; }
  // Throws Error(kInvalidArgument) in the name of `op`.
  void check_limits(std::string_view op) const;
};

// The parameters of decode and of reconstruct.
struct DecodeOptions : DecodeLimits {
  bool exif = false;

  static constexpr std::tuple kParams =
      std::tuple_cat(std::tuple{Param{"exif", &DecodeOptions::exif,
                                      "Turn the image upright as its EXIF orientation says."}},
                     DecodeLimits::kParams);
};

// What the bytes may be. Where a file may be, an excerpt of one may be as well.
enum class Encoding : std::uint8_t { kFile, kFileOrForm };

class EncodedImage {
 public:
  // Reads as little as tells the size. Where the bytes have a packed spec, they must be what it
  // says. Throws Error(kBadSample).
  EncodedImage(const TensorView& bytes, Encoding encoding, const Limits& limits, bool exif);

  TensorSpec upright() const { return orientation_.upright(stored_); }
  // The spec of this image as so many bytes.
  TensorSpec packed(std::int64_t bytes) const;
  std::size_t scratch_bytes() const;

  // Writes out.present() of the upright image. Throws Error(kBadSample).
  void decode(const TensorSpan& out, Hint* hint) const;
  // The rows of a region of the upright image; they are good until the next call of this thread.
  // Throws Error(kBadSample).
  std::unique_ptr<RowReader> rows(const Region& region, Hint* hint) const;
  // The coefficient form of a sound baseline JPEG; of anything else, its own bytes.
  Tensor entropy_decoded(BufferPool& pool) const;
  // A smaller file that has all of this region of the upright image (jpeg_excerpt.h), and about the
  // share of the bytes that it takes. Nothing, or 1: there is none. Throws Error(kBadSample).
  std::optional<Tensor> excerpt(const Region& region, Hint* hint, BufferPool& pool) const;
  double excerpt_share(const Region& region) const;

 private:
  enum class Kind : std::uint8_t { kFile, kForm, kExcerpt };
  static Kind kind_of(Bytes bytes, Encoding encoding);
  static Header header_of(Bytes bytes, Kind kind, const Limits& limits);
  bool is_jpeg_file() const { return kind_ == Kind::kFile && header_.format == Format::kJpeg; }

  // Our own decoder's rows, or null where the image is not for it.
  std::unique_ptr<RowReader> direct_rows(const Region& region, Hint* hint) const;

  Bytes bytes_;
  Limits limits_;
  Kind kind_;
  Header header_;
  TensorSpec stored_;
  Orientation orientation_;
};

// Bytes that stand for an image as it is stored, and the orientation that EXIF data state for it:
// bytes, rows, columns, channels, orientation.
TensorSpec packed_image_spec(std::int64_t bytes, const TensorSpec& stored,
                             std::int64_t orientation);
// The image that such a spec stands for, as stored or upright. Dimensions may be unknown.
TensorSpec image_of_packed(const TensorSpec& packed, bool exif);

// Throws Error(kInvalidArgument) unless the spec is that of a stored file.
void require_stored_bytes(std::string_view op, const TensorSpec& spec);

}  // namespace cutwater::image
