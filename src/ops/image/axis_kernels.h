// SPDX-License-Identifier: Apache-2.0
// The weights of the bilinear filter, as SIMD: crops differ in size, so they are computed anew for
// nearly every image. All levels give the same doubles, and so the same weights.
#pragma once

#include <cstdint>

namespace cutwater::image {

// For each output i < outputs, whose middle lies at (begin + i + 0.5) * scale: the weights of the
// inputs first[i] + t, t < taps, as fixed point; 0 for those outside of [low[i], high[i]).
struct TriangleAxis {
  double scale, shrink;  // shrink: of distances, to the filter's own
  std::int64_t begin, outputs, taps;
  const std::int32_t *first, *low, *high;
};

// `exact` has room for taps doubles. REQUIRES: taps is a multiple of kTapGroup.
void triangle_weights(const TriangleAxis& axis, double* exact, std::int32_t* weights);

}  // namespace cutwater::image
