// SPDX-License-Identifier: Apache-2.0
// entropy: the first half of decode, bytes to quantized DCT coefficients. What is no sound baseline
// JPEG goes on as it is, for reconstruct to decode.
#include "ops/image/encoded_image.h"
#include "ops/image/image_ops.h"

namespace cutwater::image {
namespace {

struct Entropy : DecodeLimits {
  void check() const { check_limits("entropy"); }

  EncodedImage image(const TensorView& in) const { return {in, Encoding::kFile, limits(), false}; }
  TensorSpec out_spec(const TensorView& in) const {
    require_stored_bytes("entropy", in.spec());
    return in.has_data() ? image(in).packed(kUnknown)
                         : packed_image_spec(kUnknown, image_spec(kUnknown, kUnknown, 3), kUnknown);
  }
  std::size_t scratch_bytes(const TensorView& in) const {
    return in.has_data() ? image(in).scratch_bytes() : 0;
  }
  Tensor produce(const TensorView& in, BufferPool& pool) const {
    return image(in).entropy_decoded(pool);
  }
};

}  // namespace

constinit const OpDef kEntropy = define_op<Entropy>(
    image_op("entropy",
             "The first half of decode: a baseline JPEG to its coefficients; other files stay as "
             "they are."));

}  // namespace cutwater::image
