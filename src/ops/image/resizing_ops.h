// SPDX-License-Identifier: Apache-2.0
// The ops that resize, as what they do: for the pass that fuses them with their neighbours.
#pragma once

#include "cutwater/op.h"
#include "ops/image/resample.h"

namespace cutwater::image {

// REQUIRES: the op is a resize (a random_resized_crop).
Resizing resizing_of_resize(const Op& op, const StepShape& shape);
Resizing resizing_of_random_resized_crop(const Op& op, const DrawnValues& drawn,
                                         const StepShape& shape);

}  // namespace cutwater::image
