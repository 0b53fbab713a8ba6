// SPDX-License-Identifier: Apache-2.0
#include "proto/quiet.h"

#include <grpc/support/log.h>

#include <cstdlib>

namespace cutwater::wire {

void keep_transport_quiet() {
  [[maybe_unused]] static const bool once = [] {
    const bool wanted =
        std::getenv("GRPC_VERBOSITY") != nullptr || std::getenv("GRPC_TRACE") != nullptr;
    if (!wanted) gpr_set_log_function([](gpr_log_func_args*) {});
    return true;
  }();
}

}  // namespace cutwater::wire
