// SPDX-License-Identifier: Apache-2.0
// The arithmetic of JPEG reconstruction as SIMD, chosen at run time; to the bit that of
// libjpeg-turbo's own SIMD (slow integer DCT, fancy upsampling), out-of-range input included.
#pragma once

#include <cstdint>

namespace cutwater::image {

// Inverse DCT of `blocks` neighbouring blocks, `stride` coefficients apart, to an 8-row strip of a
// plane.
void inverse_dct(const std::int16_t* coefficients, std::int64_t stride,
                 const std::int16_t* quantizer, std::int64_t blocks, std::uint8_t* out,
                 std::int64_t row_bytes);

// One row of YCbCr to interleaved RGB.
void ycc_to_rgb(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr,
                std::int64_t count, std::uint8_t* rgb);

// Twice as wide: output pixels 2i and 2i + 1 are near to in[i]; in[-1] and in[count] are read.
void upsample_2x1(const std::uint8_t* in, std::int64_t count, std::uint8_t* out);
// Twice as wide and high: `far` is the row on the other side of the output row.
void upsample_2x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count,
                  std::uint8_t* out);
// Twice as high only: bias 1 for the upper of the two rows, 2 for the lower.
void upsample_1x2(const std::uint8_t* near, const std::uint8_t* far, std::int64_t count, int bias,
                  std::uint8_t* out);

}  // namespace cutwater::image
