// SPDX-License-Identifier: Apache-2.0
#include "ops/image/encoded_image.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ops/image/codec_common.h"
#include "ops/image/coefficients.h"
#include "ops/image/image_ops.h"
#include "ops/image/jpeg_baseline.h"
#include "ops/image/jpeg_excerpt.h"
#include "ops/image/row_adapters.h"

namespace cutwater::image {
namespace {

JpegPlanes& planes() {
  thread_local JpegPlanes kept;
  return kept;
}

// Rows of pixels that it holds.
class HeldRows final : public RowReader {
 public:
  HeldRows(const TensorSpec& spec, const Region& region)
      : pixels_(static_cast<std::size_t>(region.height * region.width * 3)),
        span_(spec, pixels_.data(), region, region.width * 3) {}

  const TensorSpan& span() const { return span_; }
  PlanarRow next() override {
    if (!rows_) rows_.emplace(span_, span_.present());
    return rows_->next();
  }

 private:
  Buffer pixels_;
  TensorSpan span_;
  std::optional<PixelReader> rows_;
};

// What a thread keeps of a buffer that is used again.
void give_up_large(std::vector<std::uint8_t>& bytes) {
  constexpr std::size_t kMostKept = std::size_t{4} << 20;
  if (bytes.capacity() > kMostKept) std::vector<std::uint8_t>().swap(bytes);
}

Buffer copy_of(Bytes bytes, BufferPool& pool) {
  Buffer buffer = pool.allocate(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  return buffer;
}

}  // namespace

void DecodeLimits::check_limits(std::string_view op) const {
  for (const auto& [name, limit] :
       {std::pair{"max_pixels", max_pixels}, {"max_bytes", max_bytes}, {"max_scans", max_scans}})
    if (limit < 1)
      throw Error(Code::kInvalidArgument, std::string(op) + ": " + name +
                                              " must be at least 1, got " + std::to_string(limit));
}

void require_stored_bytes(std::string_view op, const TensorSpec& spec) {
  if (spec.dtype != DType::kU8 || spec.shape.rank() != 1)
    throw Error(Code::kInvalidArgument, std::string(op) + ": needs stored bytes, got " +
                                            to_string(spec) + "; decode comes first, and once");
}

TensorSpec packed_image_spec(std::int64_t bytes, const TensorSpec& stored,
                             std::int64_t orientation) {
  const Shape& shape = stored.shape;
  return {DType::kU8, {bytes, shape[0], shape[1], shape[2], orientation}, Layout::kPacked};
}

TensorSpec image_of_packed(const TensorSpec& packed, bool exif) {
  const Shape& shape = packed.shape;
  const TensorSpec stored = image_spec(shape[1], shape[2], shape[3]);
  if (!exif || shape[4] == kUnknown) return stored;
  return Orientation(static_cast<int>(shape[4])).upright(stored);
}

EncodedImage::Kind EncodedImage::kind_of(Bytes bytes, Encoding encoding) {
  if (is_jpeg_excerpt(bytes)) return Kind::kExcerpt;
  const bool form = encoding == Encoding::kFileOrForm && is_coefficient_form(bytes);
  return form ? Kind::kForm : Kind::kFile;
}

Header EncodedImage::header_of(Bytes bytes, Kind kind, const Limits& limits) {
  if (kind == Kind::kFile) return read_header(bytes, limits);
  if (kind == Kind::kExcerpt) return JpegExcerpt(bytes, limits).header();
  const CoefficientForm form(bytes);
  const JpegGeometry& geometry = form.geometry();
  check_size(Format::kJpeg, geometry.width, geometry.height, limits);
  return {.format = Format::kJpeg,
          .height = geometry.height,
          .width = geometry.width,
          .exif_orientation = form.exif_orientation(),
          .scratch_bytes = 3 * (geometry.width + 256) * (geometry.height + 64)};
}

EncodedImage::EncodedImage(const TensorView& bytes, Encoding encoding, const Limits& limits,
                           bool exif)
    : bytes_(bytes.bytes(), bytes.spec().bytes()),
      limits_(limits),
      kind_(kind_of(bytes_, encoding)),
      header_(header_of(bytes_, kind_, limits_)),
      stored_(image_spec(header_.height, header_.width, 3)),
      orientation_(exif ? header_.exif_orientation : 1) {
  if (bytes.spec().layout == Layout::kPacked && bytes.spec() != packed(bytes.spec().shape[0]))
    refuse("encoded image is " + to_string(packed(bytes.spec().shape[0]).shape) +
           " by its bytes, but should be " + to_string(bytes.spec().shape));
}

TensorSpec EncodedImage::packed(std::int64_t bytes) const {
  return packed_image_spec(bytes, stored_, header_.exif_orientation);
}

std::size_t EncodedImage::scratch_bytes() const {
  // What is no JPEG, or turned, is decoded before its rows are read; what is turned, as it lies
  // before that.
  const std::int64_t pixels = header_.height * header_.width * 3;
  const bool upright = orientation_.is_upright();
  const std::int64_t lying = upright ? 0 : pixels;
  const std::int64_t held = header_.format == Format::kJpeg && upright ? 0 : pixels;
  return static_cast<std::size_t>(header_.scratch_bytes + lying + held);
}

std::unique_ptr<RowReader> EncodedImage::direct_rows(const Region& region, Hint* hint) const {
  if (kind_ == Kind::kForm)
    CoefficientForm(bytes_).reconstruct(region, planes());
  else if (kind_ == Kind::kExcerpt)
    JpegExcerpt(bytes_, limits_).reconstruct(region, planes());
  else if (!is_jpeg_file() || !decode_baseline(bytes_, region, hint, planes()))
    return nullptr;
  return std::make_unique<PlaneRows>(planes(), region);
}

void EncodedImage::decode(const TensorSpan& out, Hint* hint) const {
  if (!orientation_.is_upright()) {
    const Region part = orientation_.stored_region(stored_, out.present());
    const HeldRows lying(stored_, part);
    EncodedImage as_stored = *this;
    as_stored.orientation_ = Orientation(1);
    as_stored.decode(lying.span(), hint);
    return orientation_.turn(lying.span(), out);
  }
  if (const auto rows = direct_rows(out.present(), hint)) {
    PixelWriter writer(out);
    for (std::int64_t y = 0; y < out.present().height; ++y) writer.put(rows->next());
    return;
  }
  decode_rgb(bytes_, header_, limits_, out);
}

std::unique_ptr<RowReader> EncodedImage::rows(const Region& region, Hint* hint) const {
  if (orientation_.is_upright())
    if (auto rows = direct_rows(region, hint)) return rows;
  auto held = std::make_unique<HeldRows>(upright(), region);
  decode(held->span(), hint);
  return held;
}

Tensor EncodedImage::entropy_decoded(BufferPool& pool) const {
  thread_local std::vector<std::uint8_t> form;
  const bool decoded =
      is_jpeg_file() && baseline_coefficients(bytes_, header_.exif_orientation, form);
  const Bytes bytes = decoded ? Bytes(form) : bytes_;
  Buffer buffer = copy_of(bytes, pool);
  give_up_large(form);
  return {packed(static_cast<std::int64_t>(bytes.size())), std::move(buffer)};
}

std::optional<Tensor> EncodedImage::excerpt(const Region& region, Hint* hint,
                                            BufferPool& pool) const {
  if (!is_jpeg_file() || region.height == 0 || region.width == 0) return std::nullopt;
  thread_local std::vector<std::uint8_t> bytes;
  const Region part = orientation_.stored_region(stored_, region);
  std::optional<Tensor> made;
  if (write_jpeg_excerpt(bytes_, header_, limits_, part, hint, bytes))
    made.emplace(TensorSpec{DType::kU8, {static_cast<std::int64_t>(bytes.size())}},
                 copy_of(bytes, pool));
  give_up_large(bytes);
  return made;
}

double EncodedImage::excerpt_share(const Region& region) const {
  if (!is_jpeg_file() || region.height == 0 || region.width == 0) return 1;
  return jpeg_excerpt_share(bytes_, orientation_.stored_region(stored_, region));
}

}  // namespace cutwater::image
