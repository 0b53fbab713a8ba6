// SPDX-License-Identifier: Apache-2.0
// A progress bar on stderr, drawn only where somebody can see it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace cutwater::cli {

class Progress {
 public:
  // `wanted` false, or stderr not a terminal: nothing is ever drawn.
  Progress(bool wanted, std::int64_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // At most ten times a second.
  void show(const std::string& what, std::int64_t done);
  void clear();

 private:
  const bool visible_;
  const std::int64_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point shown_;
  bool drawn_ = false;
};

}  // namespace cutwater::cli
