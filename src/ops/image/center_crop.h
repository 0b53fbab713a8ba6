// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cutwater/param.h"
#include "cutwater/tensor.h"

namespace cutwater::image {

// The window in the middle of an image; it reaches outside where the image is smaller.
Region center_window(const TensorSpec& in, const Size& size);

}  // namespace cutwater::image
