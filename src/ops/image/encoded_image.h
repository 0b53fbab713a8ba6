// SPDX-License-Identifier: Apache-2.0
// An image before reconstruction: a stored file, or the coefficient form of a JPEG. What the ops
// entropy and reconstruct, and the pass that fuses them with what follows, have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>

#include "cutwater/op.h"
#include "ops/image/codec.h"
#include "ops/image/orientation.h"
#include "ops/image/row_stream.h"

namespace cutwater::image {

// The parameters of decode, and of both its parts.
struct DecodeOptions {
  bool exif = false;
  std::int64_t max_pixels = Limits{}.max_pixels;
  std::int64_t max_bytes = Limits{}.max_bytes;
  std::int64_t max_scans = Limits{}.max_scans;

  static constexpr std::tuple kParams{
      Param{"exif", &DecodeOptions::exif, "Turn the image upright as its EXIF orientation says."},
      Param{"max_pixels", &DecodeOptions::max_pixels, "Refuse larger images, by their header."},
      Param{"max_bytes", &DecodeOptions::max_bytes, "Refuse larger files."},
      Param{"max_scans", &DecodeOptions::max_scans, "Refuse JPEGs of more progressive scans."}};

  Limits limits() const { return {max_pixels, max_bytes, max_scans}; }
  // Throws Error(kInvalidArgument) in the name of `op`.
  void check_limits(std::string_view op) const;
};

class EncodedImage {
 public:
  // Reads as little as tells the size. Throws Error(kBadSample).
  EncodedImage(const TensorView& bytes, const DecodeOptions& options);

  TensorSpec upright() const { return orientation_.upright(stored_); }
  std::size_t scratch_bytes() const;

  // Writes out.present() of the upright image. Throws Error(kBadSample).
  void decode(const TensorSpan& out, Hint* hint) const;
  // The rows of a region of the upright image; they are good until the next call of this thread.
  // Throws Error(kBadSample).
  std::unique_ptr<RowReader> rows(const Region& region, Hint* hint) const;
  // The coefficient form of a sound baseline JPEG; of anything else, its own bytes.
  Tensor entropy_decoded(BufferPool& pool) const;

 private:
  // Our own decoder's rows, or null where the image is not for it.
  std::unique_ptr<RowReader> direct_rows(const Region& region, Hint* hint) const;

  Bytes bytes_;
  Limits limits_;
  bool is_form_;
  Header header_;
  TensorSpec stored_;
  Orientation orientation_;
};

// Throws Error(kInvalidArgument) unless the spec is that of a stored file.
void require_stored_bytes(std::string_view op, const TensorSpec& spec);

}  // namespace cutwater::image
