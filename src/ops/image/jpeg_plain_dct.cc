// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_plain_dct.h"

#include "ops/image/jpeg_kernels.h"

namespace cutwater::image {
namespace {

using namespace idct;

// One pass over a column: sums of two inputs wrap at 16 bits, results are saturated.
template <int kShift>
void dct_column(const std::int16_t* in, std::int16_t* out) {
  const auto wrapped = [](int v) { return static_cast<int>(static_cast<std::int16_t>(v)); };
  const int x1 = in[8], x2 = in[16], x3 = in[24], x5 = in[40], x6 = in[48], x7 = in[56];
  const int t2 = x2 * k0541 + x6 * (k0541 - k1847), t3 = x2 * (k0541 + k0765) + x6 * k0541;
  const int half = 1 << (kShift - 1);
  const int t0 = wrapped(in[0] + in[32]) * (1 << kConstBits) + half;
  const int t1 = wrapped(in[0] - in[32]) * (1 << kConstBits) + half;
  const int s3 = wrapped(x7 + x3), s4 = wrapped(x5 + x1);
  const int z3 = s3 * (k1175 - k1961) + s4 * k1175, z4 = s3 * k1175 + s4 * (k1175 - k0390);
  const int o0 = x7 * (k0298 - k0899) - x1 * k0899 + z3;
  const int o1 = x5 * (k2053 - k2562) - x3 * k2562 + z4;
  const int o2 = x3 * (k3072 - k2562) - x5 * k2562 + z3;
  const int o3 = x1 * (k1501 - k0899) - x7 * k0899 + z4;
  const int sums[8] = {t0 + t3 + o3, t1 + t2 + o2, t1 - t2 + o1, t0 - t3 + o0,
                       t0 - t3 - o0, t1 - t2 - o1, t1 + t2 - o2, t0 + t3 - o3};
  for (int r = 0; r < 8; ++r) {
    const int v = sums[r] >> kShift;
    out[8 * r] = static_cast<std::int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
  }
}

void transpose_plainly(std::int16_t* block) {
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < i; ++j) {
      const std::int16_t kept = block[8 * i + j];
      block[8 * i + j] = block[8 * j + i];
      block[8 * j + i] = kept;
    }
}

void plain_block(const std::int16_t* coefficients, const std::int16_t* quantizer, std::uint8_t* out,
                 std::int64_t row_bytes) {
  std::int16_t a[64], b[64];
  bool only_first_row = true;
  for (int n = 0; n < 64; ++n) {
    const std::int16_t value = coefficients[group_place(n)];
    only_first_row = only_first_row && (n < 8 || value == 0);
    a[n] = static_cast<std::int16_t>(
        static_cast<std::uint16_t>(value) *
        static_cast<std::uint32_t>(static_cast<std::uint16_t>(quantizer[n])));
  }
  for (int c = 0; c < 8; ++c) dct_column<kShift1>(a + c, b + c);
  if (only_first_row)
    // Each column is constant. libjpeg-turbo takes this way, too, and lets large values wrap.
    for (int n = 0; n < 64; ++n)
      b[n] = static_cast<std::int16_t>(static_cast<std::uint16_t>(a[n % 8]) << kPass1Bits);
  transpose_plainly(b);
  for (int c = 0; c < 8; ++c) dct_column<kShift2>(b + c, a + c);
  transpose_plainly(a);
  for (int n = 0; n < 64; ++n) {
    const int v = a[n] + 128;
    out[n / 8 * row_bytes + n % 8] = static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
  }
}

}  // namespace

void plain_inverse_dct(const std::int16_t* coefficients, const std::int16_t* quantizer,
                       std::uint8_t* out, std::int64_t row_bytes) {
  for (std::int64_t b = 0; b < kGroupBlocks; ++b)
    plain_block(coefficients + 8 * b, quantizer, out + 8 * b, row_bytes);
}

}  // namespace cutwater::image
