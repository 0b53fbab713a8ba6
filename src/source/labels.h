// SPDX-License-Identifier: Apache-2.0
// Labels given as a list: what they must be like, and how a sample carries one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cutwater/sample.h"

namespace cutwater {

// Refuses labels that are neither none nor one for each sample, and, where classes have names,
// labels that are no class. `what` names the list, `name` a sample. Throws Error(kInvalidArgument).
void check_labels(const std::string& what, std::size_t samples,
                  const std::vector<std::int64_t>& labels, const std::vector<std::string>& classes,
                  const std::function<std::string(std::size_t)>& name);

// The label of a sample, where it lies. REQUIRES: `labels` outlives the tensor, which is not
// written to.
inline Tensor borrowed_label(const std::vector<std::int64_t>& labels, SampleId id) {
  const std::int64_t& label = labels[static_cast<std::size_t>(id)];
  auto* const bytes = reinterpret_cast<std::uint8_t*>(const_cast<std::int64_t*>(&label));
  return Tensor::borrowed({TensorSpec{DType::kI64, {}}, bytes});
}

}  // namespace cutwater
