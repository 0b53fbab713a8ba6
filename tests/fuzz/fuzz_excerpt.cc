// SPDX-License-Identifier: Apache-2.0
// Any bytes as an excerpt of a JPEG, as they come and with the fields set right that would end it
// at once: a refusal or pixels. And as a JPEG that an excerpt is made of, which has its pixels.
#include <cstring>

#include "image.h"
#include "ops/image/jpeg_excerpt.h"

namespace cutwater::fuzz {
namespace {

constexpr std::size_t kSizeAt = 8, kLeast = 12;

std::vector<std::uint8_t> repaired(Input excerpt) {
  std::vector<std::uint8_t> out(excerpt.begin(), excerpt.end());
  const auto size = static_cast<std::uint32_t>(out.size());
  std::memcpy(out.data(), "cw.exct1", kSizeAt);
  std::memcpy(out.data() + kSizeAt, &size, sizeof size);
  return out;
}

}  // namespace

FUZZ_TARGET(excerpt) {
  if (image::is_jpeg_excerpt(input)) decode_parts(input);
  check_excerpt(input);
  if (input.size() >= kLeast) decode_parts(repaired(input));
}

}  // namespace cutwater::fuzz
