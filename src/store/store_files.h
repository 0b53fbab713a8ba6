// SPDX-License-Identifier: Apache-2.0
// What reading and verifying a store have in common.
#pragma once

#include <string>

#include "source/read_file.h"
#include "store/index.h"
#include "store/meta.h"

namespace cutwater {

// Throws Error(kInvalidArgument) where a file is not as large as it was written.
void check_size(const File& file, const ShardMeta& meta);

// Throws Error: kInvalidArgument where it is damaged or cannot be, kNotFound, kIo.
StoreIndex read_index(const std::string& folder, const StoreMeta& meta);

}  // namespace cutwater
