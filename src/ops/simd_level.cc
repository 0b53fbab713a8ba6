// SPDX-License-Identifier: Apache-2.0
#include "ops/simd_level.h"

#include <hwy/highway.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "cutwater/error.h"

namespace cutwater {
namespace {

constexpr std::int64_t kPlain =
    HWY_EMU128;  // or, where the compiler lacks that, HWY_SCALAR above it

// Highway's levels by the names that people know; a better level is a lower bit.
constexpr std::array kLevels = {std::pair{std::int64_t{HWY_AVX3_DL}, "avx512vnni"},
                                std::pair{std::int64_t{HWY_AVX3}, "avx512"},
                                std::pair{std::int64_t{HWY_AVX2}, "avx2"},
                                std::pair{std::int64_t{HWY_SSE4}, "sse4"},
                                std::pair{std::int64_t{HWY_SSSE3}, "ssse3"},
                                std::pair{std::int64_t{HWY_NEON}, "neon"},
                                std::pair{kPlain, "scalar"}};

std::int64_t supported() {
  static const std::int64_t kSupported = hwy::SupportedTargets();  // before any limit
  return kSupported;
}

}  // namespace

std::vector<std::string> simd_levels() {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kLevels)
    if ((supported() & bit) != 0 || bit == kPlain) names.emplace_back(name);
  return names;
}

void use_simd(std::string_view level) {
  std::string known;
  for (const auto& [bit, name] : kLevels) {
    const bool there = (supported() & bit) != 0 || bit == kPlain;
    if (there && level == name) {
      hwy::SetSupportedTargetsForTest((supported() | HWY_EMU128 | HWY_SCALAR) & ~(bit - 1));
      return;
    }
    if (there) known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(Code::kInvalidArgument, "simd must be one of " + known + " on this processor, got '" +
                                          std::string(level) + "'");
}

void use_simd_of_environment() {
  const char* const level = std::getenv("CUTWATER_SIMD");
  if (level == nullptr) return;
  try {
    use_simd(level);
  } catch (const Error& error) {
    throw Error(error.code(), "the environment's CUTWATER_SIMD: " + std::string(error.what()));
  }
}

}  // namespace cutwater
