// SPDX-License-Identifier: Apache-2.0
// libFuzzer's way into the one target of this program. A broken promise ends it, and the input is
// kept.
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cutwater::fuzz::targets().front().run({data, size});
  return 0;
}
