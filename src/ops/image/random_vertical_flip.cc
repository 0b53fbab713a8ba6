// SPDX-License-Identifier: Apache-2.0
// random_vertical_flip: swaps top and bottom with probability p.
#include "ops/image/flip.h"

namespace cutwater::image {
namespace {

struct RandomVerticalFlip : Flip<Axis::kRows> {
  static constexpr std::tuple kParams{Param{"p", &RandomVerticalFlip::p, "Probability of a flip."}};

  void check() const { Flip::check("random_vertical_flip"); }
  TensorSpec out_spec(const TensorView& in, const Draw&) const {
    require_image("random_vertical_flip", in.spec());
    return in.spec();
  }
};

}  // namespace

constinit const OpDef kRandomVerticalFlip = define_op<RandomVerticalFlip>(
    image_op("random_vertical_flip", "Swap top and bottom at random."));

}  // namespace cutwater::image
