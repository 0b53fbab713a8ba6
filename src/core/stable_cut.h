// SPDX-License-Identifier: Apache-2.0
// Which cuts may be prepared once and used again.
#pragma once

#include <string>

#include "cutwater/pipeline.h"

namespace cutwater {

// Throws Error(kInvalidArgument) unless samples of a source that stands at `from` can be prepared
// at this cut: it exists, it is stable, and they do not stand past it. `what_for` begins the
// message, `advice` ends that about a fresh cut.
void require_stable_cut(const std::string& what_for, const Pipeline& pipeline, Cut from, Cut cut,
                        const std::string& advice);

}  // namespace cutwater
