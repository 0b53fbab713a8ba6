// SPDX-License-Identifier: Apache-2.0
// What is asked of materialize: whether it can be, and whether what is there already is the same.
#pragma once

#include <string>

#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "store/meta.h"

namespace cutwater {

// Throws Error: kInvalidArgument for a cut that cannot be written, kStale for a source that was
// prepared by another pipeline.
void check_can_store(const Source* source, const Pipeline& pipeline, Cut cut);

// What is known without any sample: all but the fields and the samples of a shard.
StorePlan plan_of_store(const Source& source, const Pipeline& pipeline, Cut cut,
                        const Codec& codec);

// What an earlier call has begun in the folder must be of the same. Throws Error(kStale) that says
// what differs.
void check_same_store(const StorePlan& there, const StorePlan& now, const std::string& folder);

}  // namespace cutwater
