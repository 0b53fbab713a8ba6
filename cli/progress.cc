// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace cutwater::cli {

Progress::Progress(bool wanted, std::int64_t total)
    : visible_(wanted && isatty(STDERR_FILENO) != 0),
      total_(total),
      start_(std::chrono::steady_clock::now()) {}

void Progress::show(const std::string& what, std::int64_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (!visible_ || (drawn_ && now - shown_ < std::chrono::milliseconds(100))) return;
  shown_ = now;
  drawn_ = true;
  constexpr std::int64_t kWidth = 30;
  const std::int64_t filled = total_ > 0 ? std::min(kWidth, kWidth * done / total_) : 0;
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kWidth - filled), '.');
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const double left = rate > 0 ? static_cast<double>(total_ - done) / rate : 0;
  std::fprintf(stderr, "\r\033[K%s [%s] %lld/%lld  %.0f/s  %.0f s left", what.c_str(), bar.c_str(),
               static_cast<long long>(done), static_cast<long long>(total_), rate, left);
  std::fflush(stderr);
}

void Progress::clear() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
  drawn_ = false;
}

}  // namespace cutwater::cli
