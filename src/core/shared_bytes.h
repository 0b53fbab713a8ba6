// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

namespace cutwater {

// Bytes that lie in two places, to be sent as one run without bringing them together.
struct SharedBytes {
  std::array<std::span<const std::uint8_t>, 2> runs = {};
  std::shared_ptr<const void> hold = nullptr;  // keeps them alive

  std::size_t size() const { return runs[0].size() + runs[1].size(); }
  bool empty() const { return size() == 0; }
  // REQUIRES: place.size() == size().
  void copy_to(std::span<std::uint8_t> place) const {
    for (const std::span<const std::uint8_t> run : runs) {
      if (!run.empty()) std::memcpy(place.data(), run.data(), run.size());
      place = place.subspan(run.size());
    }
  }
};

}  // namespace cutwater
