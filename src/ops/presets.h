// SPDX-License-Identifier: Apache-2.0
// Pipelines with a name.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "cutwater/pipeline.h"

namespace cutwater {

// Name and text.
std::span<const std::pair<std::string_view, std::string_view>> presets();

// A preset's name, or the text of a pipeline. Throws Error(kInvalidArgument).
Pipeline named_pipeline(std::string_view name_or_text);

}  // namespace cutwater
