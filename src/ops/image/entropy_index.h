// SPDX-License-Identifier: Apache-2.0
// The entropy index of a JPEG: where its rows of MCUs, and some MCUs within them, begin in the
// entropy-coded data. Recorded while decoding, so that later decodes of other regions can jump.
// ENTROPY_INDEX.md tells its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/image/jpeg_scan.h"

namespace cutwater::image {

class EntropyIndex {
 public:
  static constexpr std::int64_t kStride = 8;  // MCUs between two checkpoints of a row

  explicit EntropyIndex(const JpegGeometry& geometry)
      : mcus_across_(geometry.mcus_across()), mcus_down_(geometry.mcus_down()) {}

  // Whole rows known, from the top.
  std::int64_t rows() const { return static_cast<std::int64_t>(checkpoints_.size()) / per_row(); }
  // The last checkpoint at or before an MCU. REQUIRES: row < rows().
  const Checkpoint& before(std::int64_t row, std::int64_t mcu) const {
    return checkpoints_[static_cast<std::size_t>(row * per_row() + mcu / kStride)];
  }
  static std::int64_t mcu_before(std::int64_t mcu) { return mcu / kStride * kStride; }

  // The next checkpoint in order.
  void add(const Checkpoint& checkpoint) { checkpoints_.push_back(checkpoint); }

  // `content` names the file's bytes: an index is of no use for others.
  std::vector<std::uint8_t> encode(std::uint64_t content) const;
  // False, and left without rows: it is damaged, of another file, or of another version. All
  // checkpoints are within `end_bit`.
  bool decode(Bytes encoded, std::uint64_t content, std::int64_t end_bit);

 private:
  std::int64_t per_row() const { return divide_up(mcus_across_, kStride); }

  std::int64_t mcus_across_, mcus_down_;
  std::vector<Checkpoint> checkpoints_;
};

}  // namespace cutwater::image
