// SPDX-License-Identifier: Apache-2.0
// What `run` tells about what it has measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run_jobs.h"

namespace cutwater::cli {

struct ReportOptions {
  std::string profile;                      // where one was written; empty: nowhere
  bool hash = false;                        // there are hashes
  bool busy = false;                        // the consumer took its time
  std::optional<std::uint64_t> wire_bytes;  // that went over a link
};

// One job, or several: then what they did together, and each of them.
std::string json_text(const std::vector<RunResult>& jobs, const ReportOptions& options);
void print(const std::vector<RunResult>& jobs, const ReportOptions& options);

}  // namespace cutwater::cli
