// SPDX-License-Identifier: Apache-2.0
// What every image codec promises of any bytes: a refusal or pixels, the same ones whatever part is
// asked for, and no memory of a size that only the file states.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fuzz.h"
#include "ops/image/codec.h"

namespace cutwater::fuzz {

// Small, so that an input takes no time; the fuzzers run with a limit on each allocation.
inline constexpr image::Limits kLimits{.max_pixels = 1 << 16, .max_scans = 32};

using Pixels = std::vector<std::uint8_t>;  // RGB

struct Decoded {
  std::optional<Pixels> pixels;  // of the whole image
  std::string reason;            // why there are none
};

// Requires the promises above, for parts that depend on the input; with the hint (op.h) for some,
// and with what was learned from part to part.
Decoded checked_decode(Input file, const std::vector<std::uint8_t>& known = {});

// Pixels or a refusal, whatever part is asked for: of images or hints whose damage may be anywhere.
void decode_parts(Input file, const std::vector<std::uint8_t>& known = {});

// Requires of a file's excerpt for some part, if it has one, the file's own pixels.
void check_excerpt(Input file);

// What the op entropy gives. REQUIRES: the image can be decoded.
std::vector<std::uint8_t> entropy_decoded(Input file);

}  // namespace cutwater::fuzz
