// SPDX-License-Identifier: Apache-2.0
// What is done to a tensor's bytes so that a compressor finds more in them.
#pragma once

#include <cstdint>
#include <span>

#include "cutwater/variant.h"

namespace cutwater {

// REQUIRES: both of the same size, without overlap, and of spec.bytes().
void apply_filter(Filter filter, const TensorSpec& spec, std::span<const std::uint8_t> bytes,
                  std::span<std::uint8_t> out);
void undo_filter(Filter filter, const TensorSpec& spec, std::span<const std::uint8_t> filtered,
                 std::span<std::uint8_t> out);

}  // namespace cutwater
