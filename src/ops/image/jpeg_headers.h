// SPDX-License-Identifier: Apache-2.0
// What baseline JPEGs that we write have around their scan.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/image/jpeg_geometry.h"
#include "ops/image/jpeg_huffman.h"
#include "ops/image/jpeg_planes.h"

namespace cutwater::image {

// One table of codes, as JPEG files hold it.
struct CodeTable {
  static constexpr unsigned kLongestCode = 16;

  std::array<std::uint8_t, kLongestCode> counts{};  // codes of 1, 2… bits
  std::vector<std::uint8_t> values;                 // in the order of their codes

  // Calls visit(value, code, length) for each, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    std::uint32_t code = 0;
    auto value = values.begin();
    for (unsigned length = 1; length <= kLongestCode; ++length, code <<= 1)
      for (unsigned i = 0; i < counts[length - 1]; ++i, ++code, ++value)
        visit(*value, code, length);
  }
};
CodeTable table_of(const HuffmanCodes& codes);

// What the headers of a file of one scan tell.
struct JpegHeaders {
  static constexpr std::size_t kMostTables = 3;  // of DC, and of AC

  JpegGeometry geometry;
  std::array<Quantizer, 3> quantizers{};
  std::array<CodeTable, kMostTables> dc_tables{}, ac_tables{};
  std::array<std::size_t, 3> dc_of{}, ac_of{};  // the number of each component's table

  // Appends everything from the beginning to the scan's first bit. Tables that no component has are
  // left out.
  void put(std::vector<std::uint8_t>& out) const;
};
// Appends what stands behind the last bit.
void put_jpeg_end(std::vector<std::uint8_t>& out);

}  // namespace cutwater::image
