// SPDX-License-Identifier: Apache-2.0
#include "core/xxh3.h"

#include "core/xxh3-inl.h"

namespace cutwater {

std::uint64_t detail::xxh3_plain(const TwoRuns& runs) { return xxh3_of(runs); }

std::uint64_t xxh3(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> more) {
  const detail::TwoRuns runs{bytes.data(), bytes.size(), more.data(), more.size()};
#if defined(__x86_64__)
  static const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
  if (kHasAvx2) return detail::xxh3_avx2(runs);
#endif
  return detail::xxh3_plain(runs);
}

}  // namespace cutwater
