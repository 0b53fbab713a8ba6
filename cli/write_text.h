// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace cutwater::cli {

// Under `path` there is the whole text, or what was there before. Throws Error(kIo).
void write_text(const std::string& path, std::string_view text);

}  // namespace cutwater::cli
