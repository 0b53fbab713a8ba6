// SPDX-License-Identifier: Apache-2.0
// Sizes, rates and times as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cutwater {

// "8GiB", "500 MB", "64k", "1024": binary units with an i, decimal ones without. Throws
// Error(kInvalidArgument) that names `what`, also for less than `least`.
std::uint64_t parse_bytes(std::string_view what, std::string_view text, std::uint64_t least = 1);

// "500Mb/s" are bits, "200MB/s" bytes, of either kind of unit; the result is in bytes a second.
// Throws Error(kInvalidArgument) that names `what`.
double parse_rate(std::string_view what, std::string_view text);

// "500ms", "20s", "2m", "1h", in seconds. Throws Error(kInvalidArgument) that names `what`.
double parse_seconds(std::string_view what, std::string_view text);

std::string bytes_text(std::uint64_t bytes);  // "1.5 GiB"

}  // namespace cutwater
