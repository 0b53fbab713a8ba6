// SPDX-License-Identifier: Apache-2.0
// The text form of a pipeline:  op | op(value, name=value) | …
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cutwater/op.h"

namespace cutwater {

// Throws Error(kInvalidArgument) that shows the place.
std::vector<Op> parse_ops(std::string_view text, const OpTable& table);

}  // namespace cutwater
