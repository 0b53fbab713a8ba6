// SPDX-License-Identifier: Apache-2.0
#include "ops/all_ops.h"

#include "ops/image/image_ops.h"

namespace cutwater {

const OpTable& all_ops() {
  static constexpr OpTable kTable{image::kOps, image::kFusions};
  return kTable;
}

}  // namespace cutwater
