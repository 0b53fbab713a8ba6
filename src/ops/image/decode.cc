// SPDX-License-Identifier: Apache-2.0
// decode: a stored image file to RGB pixels, exactly as Pillow's open and convert("RGB"). Asked for
// a region only, it leaves out what it can of the rest.
#include "ops/image/codec.h"
#include "ops/image/image_ops.h"
#include "ops/image/orientation.h"

namespace cutwater::image {
namespace {

struct Decode {
  bool exif = false;
  std::int64_t max_pixels = Limits{}.max_pixels;
  std::int64_t max_bytes = Limits{}.max_bytes;
  std::int64_t max_scans = Limits{}.max_scans;

  static constexpr std::tuple kParams{
      Param{"exif", &Decode::exif, "Turn the image upright as its EXIF orientation says."},
      Param{"max_pixels", &Decode::max_pixels, "Refuse larger images, by their header."},
      Param{"max_bytes", &Decode::max_bytes, "Refuse larger files."},
      Param{"max_scans", &Decode::max_scans, "Refuse JPEGs of more progressive scans."}};

  void check() const {
    for (const auto& [name, limit] :
         {std::pair{"max_pixels", max_pixels}, {"max_bytes", max_bytes}, {"max_scans", max_scans}})
      if (limit < 1)
        throw Error(
            Code::kInvalidArgument,
            std::string("decode: ") + name + " must be at least 1, got " + std::to_string(limit));
  }

  Limits limits() const { return {max_pixels, max_bytes, max_scans}; }
  static Bytes file(const TensorView& in) {
    return {in.bytes(), static_cast<std::size_t>(in.spec().shape.elements())};
  }
  Orientation orientation(const Header& header) const {
    return exif ? Orientation(header.exif_orientation) : Orientation(1);
  }

  TensorSpec out_spec(const TensorView& in) const {
    if (in.spec().dtype != DType::kU8 || in.spec().shape.rank() != 1)
      throw Error(Code::kInvalidArgument, "decode: needs stored bytes, got " +
                                              cutwater::to_string(in.spec()) +
                                              "; decode comes first, and once");
    if (!in.has_data()) return image_spec(kUnknown, kUnknown, 3);
    const Header header = read_header(file(in), limits());
    return orientation(header).upright(image_spec(header.height, header.width, 3));
  }
  std::size_t scratch_bytes(const TensorView& in) const {
    if (!in.has_data()) return 0;
    const Header header = read_header(file(in), limits());
    // A turned image is decoded as it lies first.
    const std::int64_t lying =
        orientation(header).is_upright() ? 0 : header.height * header.width * 3;
    return static_cast<std::size_t>(header.scratch_bytes + lying);
  }
  // Which pixels are made does not change which bytes are read: all of them may matter.
  Region needs(const TensorSpec& in, const Region&) const { return whole(in); }

  void apply(const TensorView& in, const TensorSpan& out) const {
    const Header header = read_header(file(in), limits());
    const Orientation turned = orientation(header);
    if (turned.is_upright()) return decode_rgb(file(in), header, limits(), out);

    const TensorSpec stored = image_spec(header.height, header.width, 3);
    const Region part = turned.stored_region(stored, out.present());
    Buffer pixels(static_cast<std::size_t>(part.height * part.width * 3));
    const TensorSpan lying(stored, pixels.data(), part, part.width * 3);
    decode_rgb(file(in), header, limits(), lying);
    turned.turn(lying, out);
  }
};

}  // namespace

constinit const OpDef kDecode =
    define_op<Decode>(image_op("decode", "Decode a JPEG, PNG, WebP, BMP or GIF file to RGB."));

}  // namespace cutwater::image
