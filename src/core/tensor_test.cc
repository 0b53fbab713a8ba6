// SPDX-License-Identifier: Apache-2.0
#include "cutwater/tensor.h"

#include <gtest/gtest.h>

namespace cutwater {
namespace {

TEST(StatedBytes, AreThoseOfATensorThatCanBe) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  const std::pair<TensorSpec, std::optional<std::uint64_t>> table[] = {
      {{DType::kI64, {}}, 8},
      {{DType::kF32, {2, 3}}, 24},
      {{DType::kU8, {0}}, 0},
      {{DType::kI16, {0, 4}}, 0},
      {{DType::kU8, {-1}}, {}},
      {{DType::kU8, {kHalf, kHalf}}, {}},
      {{DType::kU8, {0, kHalf, kHalf}}, {}},
      {{DType::kU8, {kHalf, kHalf, 0}}, {}},
      {{DType::kU8, {480, 640, 3}, Layout::kPixels}, 480 * 640 * 3},
      {{DType::kU8, {5, 4, 4, 3}, Layout::kPixels}, 240},
      {{DType::kU8, {0, 0, 3}, Layout::kPixels}, {}},
      {{DType::kU8, {0, std::int64_t{1} << 40, 3}, Layout::kPixels}, {}},
      {{DType::kU8, {6, 3}, Layout::kPixels}, {}},
      {{DType::kF32, {3, 2, 2}, Layout::kPlanes}, 48},
      {{DType::kF32, {0, 300, 300}, Layout::kPlanes}, {}},
      {{DType::kF32, {0, 300, 300}, Layout::kPlanesLast}, {}},
      {{DType::kF32, {0, kHalf, kHalf}, Layout::kPlanesLast}, {}},
      {{DType::kU8, {7, 480, 640, 3, 1}, Layout::kPacked}, 7},
      {{DType::kU8, {0, 2, 2}, Layout::kPacked}, 0},
      {{DType::kU8, {7, kHalf, kHalf}, Layout::kPacked}, {}},
      {{DType::kU8, {}, Layout::kPacked}, {}},
  };
  for (const auto& [spec, bytes] : table) EXPECT_EQ(stated_bytes(spec), bytes) << to_string(spec);
}

}  // namespace
}  // namespace cutwater
