// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#define XXH_VECTOR 2  // XXH_AVX2
#include "core/xxh3-inl.h"

std::uint64_t cutwater::detail::xxh3_avx2(const TwoRuns& runs) { return xxh3_of(runs); }
#endif
