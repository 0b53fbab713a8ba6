// SPDX-License-Identifier: Apache-2.0
// reconstruct: the second half of decode, coefficients to RGB pixels. Asked for a region only, it
// makes no more than that.
#include "ops/image/encoded_image.h"
#include "ops/image/image_ops.h"

namespace cutwater::image {
namespace {

struct Reconstruct : DecodeOptions {
  void check() const { check_limits("reconstruct"); }

  EncodedImage image(const TensorView& in) const {
    return {in, Encoding::kFileOrForm, limits(), exif};
  }
  TensorSpec out_spec(const TensorView& in) const {
    const Shape& shape = in.spec().shape;
    if (in.spec().layout != Layout::kPacked || shape.rank() != 5)
      throw Error(Code::kInvalidArgument, "reconstruct: needs what entropy gives, got " +
                                              to_string(in.spec()) + "; put entropy before it");
    require_extents(in.spec());
    return image_of_packed(in.spec(), exif);
  }
  std::size_t scratch_bytes(const TensorView& in) const {
    return in.has_data() ? image(in).scratch_bytes() : 0;
  }
  // Which pixels are made does not change which bytes are read: all of them may matter.
  Region needs(const TensorSpec& in, const Region&) const { return whole(in); }
  void apply(const TensorView& in, const TensorSpan& out) const { image(in).decode(out, nullptr); }
};

}  // namespace

constinit const OpDef kReconstruct = define_op<Reconstruct>(
    image_op("reconstruct", "The second half of decode: what entropy gives, to RGB."));

}  // namespace cutwater::image
