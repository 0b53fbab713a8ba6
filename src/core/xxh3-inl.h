// SPDX-License-Identifier: Apache-2.0
// Compiled once for every machine and once for those with AVX2: nothing of it, and nothing that it
// includes, may be shared between the two.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/xxh3.h"

namespace cutwater::detail {

static std::uint64_t xxh3_of(const TwoRuns& runs) {
  if (runs.second_size == 0) return XXH3_64bits(runs.first, runs.first_size);
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, runs.first, runs.first_size);
  XXH3_64bits_update(&state, runs.second, runs.second_size);
  return XXH3_64bits_digest(&state);
}

}  // namespace cutwater::detail
