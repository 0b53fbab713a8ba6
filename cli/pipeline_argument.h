// SPDX-License-Identifier: Apache-2.0
// What --pipeline takes: a preset, a TOML file, or text.
#pragma once

#include <string>

#include "cutwater/pipeline.h"

namespace cutwater::cli {

// A TOML file has  pipeline = "decode | …"  or a list of  [[op]]  tables with name and parameters.
// Throws Error(kInvalidArgument, kNotFound).
Pipeline pipeline_argument(const std::string& argument);

}  // namespace cutwater::cli
