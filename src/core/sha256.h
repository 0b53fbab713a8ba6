// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4): names pipelines and sources so that two of them never share a cache entry.
#pragma once

#include <string>
#include <string_view>

namespace cutwater {

// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace cutwater
