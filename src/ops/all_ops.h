// SPDX-License-Identifier: Apache-2.0
// The list of lists: every op of every domain.
#pragma once

#include "cutwater/op.h"

namespace cutwater {

const OpTable& all_ops();

}  // namespace cutwater
