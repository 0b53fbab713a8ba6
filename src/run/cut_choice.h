// SPDX-License-Identifier: Apache-2.0
// Which stable cut a cache or a store keeps.
#pragma once

#include <cstddef>
#include <string>

#include "cutwater/options.h"

namespace cutwater {

// Which cut to keep, and why, in words.
struct CutChoice {
  Cut cut = 0;
  std::string why;
};

// The cut with which an epoch would take the least time when samples at it fill `room_bytes` of a
// place that gives `bytes_per_second` to a thread, judged by some samples that are read and run
// now; a second at most. No profile is needed, and whatever is chosen, the bytes delivered are the
// same. Throws Error(kInvalidArgument) that begins with `what_for`.
CutChoice choose_cut(const std::string& what_for, const What& what, const Codec& codec,
                     std::size_t room_bytes, double bytes_per_second, bool fuse);
// The cut that somebody chose. Throws Error(kInvalidArgument) for one that is not stable or lies
// before the source's.
CutChoice given_cut(const std::string& what_for, const What& what, const std::string& text);

}  // namespace cutwater
