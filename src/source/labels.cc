// SPDX-License-Identifier: Apache-2.0
#include "source/labels.h"

#include "cutwater/error.h"

namespace cutwater {

void check_labels(const std::string& what, std::size_t samples,
                  const std::vector<std::int64_t>& labels, const std::vector<std::string>& classes,
                  const std::function<std::string(std::size_t)>& name) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(Code::kInvalidArgument, what + ": " + reason);
  };
  if (!labels.empty() && labels.size() != samples) {
    refuse(std::to_string(labels.size()) + " labels for " + std::to_string(samples) +
           " samples; give one for each, or none");
  }
  if (labels.empty() && !classes.empty()) {
    refuse("class names without labels; give a label for each sample");
  }
  if (classes.empty()) return;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= 0 && static_cast<std::uint64_t>(labels[i]) < classes.size()) continue;
    refuse("label " + std::to_string(labels[i]) + " of " + name(i) + " is outside the " +
           std::to_string(classes.size()) + " classes");
  }
}

}  // namespace cutwater
