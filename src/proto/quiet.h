// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace cutwater::wire {

// gRPC writes nothing to stderr any more, unless GRPC_VERBOSITY or GRPC_TRACE is set: what goes
// wrong is in a status, and whoever gets that says so in words.
void keep_transport_quiet();

}  // namespace cutwater::wire
