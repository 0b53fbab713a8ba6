// SPDX-License-Identifier: Apache-2.0
// Which SIMD instructions the kernels use. All levels give the same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cutwater {

// What this processor has and the kernels know, best first: "avx512vnni", "avx512", "avx2", "sse4",
// "ssse3", "neon", "scalar".
std::vector<std::string> simd_levels();

// No better level than this from now on. Throws Error(kInvalidArgument) for one that is not there.
void use_simd(std::string_view level);
// What CUTWATER_SIMD says, if it is set. Call it before any work.
void use_simd_of_environment();

}  // namespace cutwater
