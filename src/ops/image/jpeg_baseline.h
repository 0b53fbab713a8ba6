// SPDX-License-Identifier: Apache-2.0
// Baseline JPEG, our own way: only the region that is asked for is reconstructed, and rows below it
// are not even parsed. For sound scans of the usual kinds; whatever is odd about a scan is left to
// libjpeg-turbo, whose pixels these are to the bit. Private to codec_jpeg.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/image/codec.h"
#include "ops/image/jpeg_huffman.h"

namespace cutwater::image {

// What the scan is decoded with.
struct BaselineScan {
  struct Component {
    std::int64_t h = 1, v = 1;                 // sampling factors: blocks per MCU across and down
    std::array<std::int16_t, 64> quantizer{};  // in natural order
    int dc_table = 0, ac_table = 0;
  };
  std::int64_t width = 0, height = 0;
  std::span<const Component> components;  // 1: gray, 3: YCbCr
  std::span<const HuffmanCodes> dc_tables;
  std::span<const AcTable> ac_tables;
  Bytes data;  // between the scan's header and the end marker, still stuffed, without restarts
};

// Writes out.present(). False: the scan is not sound, and what was written means nothing.
bool decode_baseline(const BaselineScan& scan, const TensorSpan& out);

}  // namespace cutwater::image
