// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cutwater::image {

// The libraries that decode, with the versions they were built against: {"jpeg",
// "libjpeg-turbo 2.1.5"}.
std::vector<std::pair<std::string, std::string>> codec_versions();

}  // namespace cutwater::image
