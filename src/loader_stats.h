// SPDX-License-Identifier: Apache-2.0
// What the numbers of a loader mean.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cutwater/loader.h"
#include "run/executor.h"

namespace cutwater {

// One line: which resource keeps the loader from being faster, and how one can tell.
std::string bottleneck(const LoaderStats& stats);

// What ran, group by group in chain order. Samples that went different ways, from a cache or from
// the source, ran in different groups.
std::vector<NamedOpTime> op_times(const What& what, bool fuse,
                                  std::map<Route, std::vector<OpTime>> routes);

}  // namespace cutwater
