// SPDX-License-Identifier: Apache-2.0
// The page of cutwater report, made by CMake of the files in cli/report: %WORDS% stands where the
// plan in words goes, %DATA% where its JSON goes.
#pragma once

#include <string_view>

namespace cutwater::cli {

extern const std::string_view kReportPage;

}  // namespace cutwater::cli
