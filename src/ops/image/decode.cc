// SPDX-License-Identifier: Apache-2.0
// decode: a stored image file to RGB pixels, exactly as Pillow's open and convert("RGB"). It stands
// for two ops, because the best cut is between them: entropy, then reconstruct.
#include "ops/image/encoded_image.h"
#include "ops/image/image_ops.h"

namespace cutwater::image {
namespace {

struct Decode : DecodeOptions {
  void check() const { check_limits("decode"); }

  std::vector<Op> expand() const {
    return {kEntropy.make(kEntropy, detail::values_of(*this, DecodeLimits::kParams)),
            kReconstruct.make(kReconstruct, detail::values_of(*this, kParams))};
  }

  EncodedImage image(const TensorView& in) const { return {in, Encoding::kFile, limits(), exif}; }
  TensorSpec out_spec(const TensorView& in) const {
    require_stored_bytes("decode", in.spec());
    return in.has_data() ? image(in).upright() : image_spec(kUnknown, kUnknown, 3);
  }
  Region needs(const TensorSpec& in, const Region&) const { return whole(in); }
  void apply(const TensorView& in, const TensorSpan& out) const { image(in).decode(out, nullptr); }
};

}  // namespace

constinit const OpDef kDecode =
    define_op<Decode>(image_op("decode", "Decode a JPEG, PNG, WebP, BMP or GIF file to RGB."));

}  // namespace cutwater::image
