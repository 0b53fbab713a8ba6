// SPDX-License-Identifier: Apache-2.0
// Neighbouring image ops as one kernel: [flip +] to_tensor + normalize is one pass,
// straight into the batch.
#include "ops/image/flip.h"
#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"

namespace cutwater::image {
namespace {

void normalized_planes(const Normalize& normalize, const TensorView& in, bool mirrored,
                       const TensorSpan& out) {
  write_planes(in, normalize.pixel_values(in.dim(2)), mirrored, out);
}

// A stack of images (five_crop) has no rows x columns x channels to look up: op by op.
bool one_image(const TensorView& in) { return in.spec().shape.rank() == 3; }

constexpr std::array<const OpDef*, 2> kTensorNormalizeChain = {&kToTensor, &kNormalize};
void tensor_normalize(std::span<const Step> steps, std::span<const DrawnValues>,
                      const TensorView& in, const TensorSpan& out) {
  const auto& normalize = steps[1].op.as<Normalize>();
  if (one_image(in)) return normalized_planes(normalize, in, false, out);
  steps[0].op.as<ToTensor>().apply(in, out);
  normalize.apply(out, out);
}

constexpr std::array<const OpDef*, 3> kFlipTensorNormalizeChain = {&kRandomHorizontalFlip,
                                                                   &kToTensor, &kNormalize};
void flip_tensor_normalize(std::span<const Step> steps, std::span<const DrawnValues> drawn,
                           const TensorView& in, const TensorSpan& out) {
  FlipDraw draw;
  std::memcpy(&draw, drawn[0].bytes.data(), sizeof draw);
  normalized_planes(steps[2].op.as<Normalize>(), in, draw.flip, out);
}

}  // namespace

constinit const std::array<Fusion, 2> kFusions = {{
    {kTensorNormalizeChain, tensor_normalize},
    {kFlipTensorNormalizeChain, flip_tensor_normalize},
}};

}  // namespace cutwater::image
