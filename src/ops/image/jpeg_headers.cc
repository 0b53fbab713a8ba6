// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_headers.h"

#include <algorithm>

namespace cutwater::image {
namespace {

using Out = std::vector<std::uint8_t>;

constexpr std::uint8_t kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kSoi = 0xD8, kEoi = 0xD9,
                       kSos = 0xDA, kDqt = 0xDB;
constexpr std::size_t kBaselineTables = 2;  // of DC, and of AC

void put16(Out& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}
void put_marker(Out& out, std::uint8_t marker, std::size_t data_bytes) {
  out.insert(out.end(), {0xFF, marker});
  put16(out, data_bytes + 2);
}

bool is_wide(const Quantizer& quantizer) { return *std::ranges::max_element(quantizer) > 255; }

// The first component with the same table.
std::size_t quantizer_of(const JpegHeaders& headers, std::size_t c) {
  return static_cast<std::size_t>(std::ranges::find(headers.quantizers, headers.quantizers[c]) -
                                  headers.quantizers.begin());
}

void put_quantizers(const JpegHeaders& headers, Out& out) {
  for (std::size_t c = 0; c < headers.geometry.components(); ++c) {
    if (quantizer_of(headers, c) != c) continue;
    const Quantizer& quantizer = headers.quantizers[c];
    const bool wide = is_wide(quantizer);
    put_marker(out, kDqt, wide ? 129 : 65);
    out.push_back(static_cast<std::uint8_t>((wide ? 0x10 : 0) | c));
    for (const std::uint8_t n : kNaturalOrder) {
      if (wide) out.push_back(static_cast<std::uint8_t>(quantizer[n] >> 8));
      out.push_back(static_cast<std::uint8_t>(quantizer[n]));
    }
  }
}

// Whether the standard calls it baseline.
bool is_baseline(const JpegHeaders& headers) {
  for (std::size_t c = 0; c < headers.geometry.components(); ++c)
    if (is_wide(headers.quantizers[c]) || headers.dc_of[c] >= kBaselineTables ||
        headers.ac_of[c] >= kBaselineTables)
      return false;
  return true;
}

// Without any marker of an application, the names of the components tell the colors.
std::uint8_t name_of(const JpegGeometry& geometry, std::size_t c) {
  constexpr std::array<std::uint8_t, 3> kRgb = {'R', 'G', 'B'};
  const bool rgb = geometry.color == JpegGeometry::Color::kRgb;
  return rgb ? kRgb[c] : static_cast<std::uint8_t>(c + 1);
}

void put_frame(const JpegHeaders& headers, Out& out) {
  const JpegGeometry& geometry = headers.geometry;
  const std::size_t components = geometry.components();
  put_marker(out, is_baseline(headers) ? kSof0 : kSof1, 6 + 3 * components);
  out.push_back(8);
  put16(out, static_cast<std::size_t>(geometry.height));
  put16(out, static_cast<std::size_t>(geometry.width));
  out.push_back(static_cast<std::uint8_t>(components));
  for (std::size_t c = 0; c < components; ++c) {
    const auto [h, v] = geometry.sampling[c];
    out.insert(out.end(), {name_of(geometry, c), static_cast<std::uint8_t>(h << 4 | v),
                           static_cast<std::uint8_t>(quantizer_of(headers, c))});
  }
}

void put_table(const CodeTable& table, std::size_t name, Out& out) {
  if (table.values.empty()) return;
  put_marker(out, kDht, 17 + table.values.size());
  out.push_back(static_cast<std::uint8_t>(name));
  out.insert(out.end(), table.counts.begin(), table.counts.end());
  out.insert(out.end(), table.values.begin(), table.values.end());
}

void put_scan_header(const JpegHeaders& headers, Out& out) {
  const std::size_t components = headers.geometry.components();
  put_marker(out, kSos, 4 + 2 * components);
  out.push_back(static_cast<std::uint8_t>(components));
  for (std::size_t c = 0; c < components; ++c)
    out.insert(out.end(), {name_of(headers.geometry, c),
                           static_cast<std::uint8_t>(headers.dc_of[c] << 4 | headers.ac_of[c])});
  out.insert(out.end(), {0, 63, 0});
}

}  // namespace

CodeTable table_of(const HuffmanCodes& codes) {
  CodeTable table;
  codes.for_each(CodeTable::kLongestCode, [&](std::size_t, HuffmanCodes::Symbol symbol) {
    ++table.counts[symbol.length - 1U];
    table.values.push_back(symbol.value);
  });
  return table;
}

void JpegHeaders::put(std::vector<std::uint8_t>& out) const {
  out.insert(out.end(), {0xFF, kSoi});
  put_quantizers(*this, out);
  put_frame(*this, out);
  for (std::size_t t = 0; t < kMostTables; ++t) {
    put_table(dc_tables[t], t, out);
    put_table(ac_tables[t], 0x10 | t, out);
  }
  put_scan_header(*this, out);
}

void put_jpeg_end(std::vector<std::uint8_t>& out) { out.insert(out.end(), {0xFF, kEoi}); }

}  // namespace cutwater::image
