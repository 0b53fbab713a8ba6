// SPDX-License-Identifier: Apache-2.0
#include "cutwater/error.h"

namespace cutwater {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kNotFound: return "not found";
    case Code::kBadSample: return "bad sample";
    case Code::kIo: return "input/output error";
    case Code::kUnavailable: return "unavailable";
    case Code::kTimeout: return "timeout";
    case Code::kStale: return "stale";
    case Code::kCancelled: return "cancelled";
    case Code::kInternal: return "internal error";
  }
  return "unknown error";
}

std::string Failure::message() const {
  std::string where;
  if (sample >= 0) where = "sample " + std::to_string(sample);
  if (!path.empty()) where += where.empty() ? path : " (" + path + ")";
  if (!op.empty()) where += (where.empty() ? "" : ", ") + op;
  return where.empty() ? reason : where + ": " + reason;
}

}  // namespace cutwater
