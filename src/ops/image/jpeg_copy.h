// SPDX-License-Identifier: Apache-2.0
// Some MCUs of a scan as a file of their own, bit by bit: with the file's own codes, only the first
// DC coefficients of each row are written anew, for they are told as differences. What lies between
// is not even looked at.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/image/entropy_index.h"
#include "ops/image/jpeg_headers.h"
#include "ops/image/jpeg_scan.h"

namespace cutwater::image {

class ScanCopy {
 public:
  // Finds out what to copy. REQUIRES: no restarts, the index knows all rows of the window, which is
  // not empty, and all outlive this.
  ScanCopy(const BaselineScan& scan, const ScanBits& bits, const EntropyIndex& index,
           const McuWindow& window);

  // Appends a JPEG. False: the file has no code for what must be said, the index is not of this
  // scan, or it would be `limit` bytes or more; what was appended then means nothing.
  bool write(std::size_t limit, std::vector<std::uint8_t>& out) const;

 private:
  struct Code {
    std::uint32_t bits = 0;
    unsigned length = 0;  // 0: there is none
  };
  // Bits of the scan, behind a DC coefficient's difference.
  struct Piece {
    Code difference;
    std::int64_t begin = 0, end = 0;
  };

  bool find_row(ScanReader& reader, std::int64_t row, const McuWindow& window);
  bool add(std::size_t component, int difference, std::int64_t begin, std::int64_t end);

  const BaselineScan& scan_;
  const ScanBits& bits_;
  const EntropyIndex& index_;
  JpegHeaders headers_;
  std::array<std::array<Code, JpegSymbols::kLargestDc + 1>, 3> dc_codes_{};  // by size
  std::vector<Piece> pieces_;
  std::array<int, 3> last_dc_{};
  std::int64_t scan_bits_ = 0;
  bool possible_ = true;
};

}  // namespace cutwater::image
