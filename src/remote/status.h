// SPDX-License-Identifier: Apache-2.0
// What a server's status means to whoever asked.
#pragma once

#include <grpcpp/support/status.h>

#include <string>

#include "cutwater/error.h"

namespace cutwater::remote {

// Whether it is the server that a failure which it sent is of, rather than the sample.
inline bool is_servers_own(const Failure& failure) {
  switch (failure.code) {
    case Code::kIo:
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kCancelled:
    case Code::kInternal: return true;
    default: return failure.storage_failed;
  }
}

// Whether asking again would give the same answer.
inline bool is_refusal(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNIMPLEMENTED: return true;
    default: return false;
  }
}

inline Failure failure_of(const std::string& server, const grpc::Status& status) {
  Failure failure;
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND: failure.code = Code::kNotFound; break;
    case grpc::StatusCode::FAILED_PRECONDITION: failure.code = Code::kStale; break;
    case grpc::StatusCode::DEADLINE_EXCEEDED: failure.code = Code::kTimeout; break;
    default: failure.code = is_refusal(status) ? Code::kInvalidArgument : Code::kUnavailable;
  }
  failure.op = "read";
  failure.reason = server + ": " +
                   (status.error_message().empty() ? "it does not answer" : status.error_message());
  return failure;
}

}  // namespace cutwater::remote
