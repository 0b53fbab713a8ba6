// SPDX-License-Identifier: Apache-2.0
// exp and log by additions, multiplications and divisions only: IEEE 754 fixes those to the bit,
// where the last bit of a C library's exp is its own affair. Draws are made of these, so they are
// the same on every machine.
#pragma once

#include <cmath>

namespace cutwater::image {

// Within 1e-15 of exp(x), relative. REQUIRES: |x| < 700.
inline double portable_exp(double x) {
  constexpr double kLog2 = 0x1.62e42fefa39efp-1;
  const double whole = std::nearbyint(x / kLog2);
  const double rest = x - whole * kLog2;  // |rest| <= log(2) / 2
  double sum = 1, term = 1;
  for (int n = 1; n <= 17; ++n) {
    term = term * rest / n;
    sum += term;
  }
  return std::ldexp(sum, static_cast<int>(whole));
}

// Within 1e-14 of log(x). REQUIRES: 0 < x < 1e300.
inline double portable_log(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);  // 0.5..1
  // log(m) = 2 artanh((m - 1) / (m + 1)), a quickly converging series.
  const double t = (mantissa - 1) / (mantissa + 1), square = t * t;
  double sum = 0, power = t;
  for (int n = 1; n <= 41; n += 2) {
    sum += power / n;
    power *= square;
  }
  return 2 * sum + exponent * 0x1.62e42fefa39efp-1;
}

}  // namespace cutwater::image
