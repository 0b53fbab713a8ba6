// SPDX-License-Identifier: Apache-2.0
// random_horizontal_flip: swaps left and right with probability p.
#include "ops/image/flip.h"

namespace cutwater::image {
namespace {

struct RandomHorizontalFlip : Flip<Axis::kColumns> {
  static constexpr std::tuple kParams{
      Param{"p", &RandomHorizontalFlip::p, "Probability of a flip."}};

  void check() const { Flip::check("random_horizontal_flip"); }
  TensorSpec out_spec(const TensorView& in, const Draw&) const {
    require_image("random_horizontal_flip", in.spec());
    return in.spec();
  }
};

}  // namespace

constinit const OpDef kRandomHorizontalFlip = define_op<RandomHorizontalFlip>(
    image_op("random_horizontal_flip", "Swap left and right at random."));

}  // namespace cutwater::image
