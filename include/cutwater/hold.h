// SPDX-License-Identifier: Apache-2.0
// Samples held in memory at a cut: the work up to there is done once, not in every epoch.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "cutwater/pipeline.h"
#include "cutwater/source.h"

namespace cutwater {

struct HoldOptions {
  std::optional<int> threads = {};               // unset: as a loader's
  std::optional<std::size_t> memory_limit = {};  // of what is held; unset: half of the free memory
  // Called by the calling thread some times a second; what it throws ends the work.
  std::function<void()> while_waiting = {};
};

// Runs the steps up to `cut` on every sample, in parallel, and keeps the results. The source that
// is returned stands at that cut; with the rest of the same pipeline it gives the bytes that
// `source` gives with all of it, and it has its labels, paths, classes and identity: a state saved
// with one is a state of the other. What is wrong with a bad sample is kept as well.
//
// read() lends the bytes without a copy. Throws Error(kInvalidArgument) for a cut past the
// frontier, and where the results take more than the limit; what is wrong with a sample that is not
// kBadSample.
std::shared_ptr<const Source> hold_in_memory(std::shared_ptr<const Source> source,
                                             const Pipeline& pipeline, Cut cut,
                                             const HoldOptions& options = {});

}  // namespace cutwater
