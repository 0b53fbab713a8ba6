// SPDX-License-Identifier: Apache-2.0
// The coefficient form, as it comes and with the fields set right that would end it at once: a
// refusal or pixels.
#include <algorithm>
#include <cstring>

#include "image.h"
#include "ops/image/coefficients.h"

namespace cutwater::fuzz {
namespace {

constexpr std::size_t kSizeAt = 8, kLeast = 12;

std::vector<std::uint8_t> repaired(Input form) {
  std::vector<std::uint8_t> out(form.begin(), form.end());
  const auto size = static_cast<std::uint32_t>(out.size());
  std::memcpy(out.data(), "cw.coef1", kSizeAt);
  std::memcpy(out.data() + kSizeAt, &size, sizeof size);
  return out;
}

// Not checked_decode(): a form that is damaged somewhere is refused only for the parts that need
// what is damaged.
void check(Input form) {
  if (image::is_coefficient_form(form)) decode_parts(form);
}

}  // namespace

FUZZ_TARGET(coefficients) {
  check(input);
  if (input.size() < kLeast) return;
  check(repaired(input));
}

}  // namespace cutwater::fuzz
