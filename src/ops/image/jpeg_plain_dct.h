// SPDX-License-Identifier: Apache-2.0
// The slow integer DCT of libjpeg-turbo, the plain way: for levels without vectors, and for the few
// blocks whose values are beyond what pictures have. Not a part of jpeg_kernels.cc, where compilers
// may use all of a level's instructions: Highway 1.0's best level names one (AVX-VNNI) that most of
// its processors lack, and clang finds use for it here.
#pragma once

#include <cstdint>

namespace cutwater::image {

namespace idct {

// Cosines in 13-bit fixed point (Loeffler, Ligtenberg, Moschytz).
inline constexpr int kConstBits = 13, kPass1Bits = 2;
inline constexpr int kShift1 = kConstBits - kPass1Bits, kShift2 = kConstBits + kPass1Bits + 3;
inline constexpr int k0298 = 2446, k0390 = 3196, k0541 = 4433, k0765 = 6270, k0899 = 7373,
                     k1175 = 9633, k1501 = 12299, k1847 = 15137, k1961 = 16069, k2053 = 16819,
                     k2562 = 20995, k3072 = 25172;

}  // namespace idct

// inverse_dct of one group.
void plain_inverse_dct(const std::int16_t* coefficients, const std::int16_t* quantizer,
                       std::uint8_t* out, std::int64_t row_bytes);

}  // namespace cutwater::image
