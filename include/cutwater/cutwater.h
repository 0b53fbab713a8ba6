// SPDX-License-Identifier: Apache-2.0
// Everything a C++ user needs. loader.h is where to start reading.
#pragma once

#include "cutwater/buffer.h"    // IWYU pragma: export
#include "cutwater/cache.h"     // IWYU pragma: export
#include "cutwater/error.h"     // IWYU pragma: export
#include "cutwater/hold.h"      // IWYU pragma: export
#include "cutwater/loader.h"    // IWYU pragma: export
#include "cutwater/op.h"        // IWYU pragma: export
#include "cutwater/options.h"   // IWYU pragma: export
#include "cutwater/pipeline.h"  // IWYU pragma: export
#include "cutwater/plan.h"      // IWYU pragma: export
#include "cutwater/profile.h"   // IWYU pragma: export
#include "cutwater/rng.h"       // IWYU pragma: export
#include "cutwater/sample.h"    // IWYU pragma: export
#include "cutwater/source.h"    // IWYU pragma: export
#include "cutwater/store.h"     // IWYU pragma: export
#include "cutwater/tensor.h"    // IWYU pragma: export
#include "cutwater/variant.h"   // IWYU pragma: export
