// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_copy.h"

#include <algorithm>

#include "ops/image/jpeg_bit_writer.h"

namespace cutwater::image {
namespace {

// Numbers of the components' tables, in order of their first use.
template <class Table>
std::array<std::size_t, 3> numbered(const std::array<Table*, 3>& tables) {
  std::array<std::size_t, 3> numbers{};
  for (std::size_t c = 0, next = 0; c < tables.size(); ++c) {
    const auto first =
        static_cast<std::size_t>(std::ranges::find(tables, tables[c]) - tables.begin());
    numbers[c] = first < c ? numbers[first] : next++;
  }
  return numbers;
}

// Codes for all sizes of DC coefficients that a file has none for, longer than its own, which stay
// what they are. Where there is no room for them, the table stays as it is.
void add_other_sizes(CodeTable& table) {
  std::vector<std::uint8_t> others;
  for (std::uint8_t size = 0; size <= JpegSymbols::kLargestDc; ++size)
    if (std::ranges::find(table.values, size) == table.values.end()) others.push_back(size);
  std::uint32_t next = 0;  // code that is free, of the longest length
  unsigned longest = 0;
  table.for_each([&](std::uint8_t, std::uint32_t code, unsigned length) {
    next = code + 1;
    longest = length;
  });
  for (; longest <= CodeTable::kLongestCode; ++longest, next <<= 1) {
    const std::uint32_t free = (1U << longest) - 1 - next;  // but for that of all ones
    if (free < others.size()) continue;
    table.counts[longest - 1] =
        static_cast<std::uint8_t>(table.counts[longest - 1] + others.size());
    table.values.insert(table.values.end(), others.begin(), others.end());
    return;
  }
}

}  // namespace

ScanCopy::ScanCopy(const BaselineScan& scan, const ScanBits& bits, const EntropyIndex& index,
                   const McuWindow& window)
    : scan_(scan), bits_(bits), index_(index) {
  headers_.geometry = scan.geometry.cut_to(window);
  headers_.quantizers = scan.quantizers;
  headers_.dc_of = numbered(scan.dc_codes);
  headers_.ac_of = numbered(scan.ac_tables);
  for (std::size_t c = 0; c < scan.geometry.components(); ++c) {
    CodeTable& table = headers_.dc_tables[headers_.dc_of[c]];
    table = table_of(*scan.dc_codes[c]);
    add_other_sizes(table);
    headers_.ac_tables[headers_.ac_of[c]] = table_of(scan.ac_tables[c]->codes());
    table.for_each([&](std::uint8_t size, std::uint32_t code, unsigned length) {
      if (size < dc_codes_[c].size()) dc_codes_[c][size] = {code, length};
    });
  }
  ScanReader reader(scan, bits);
  for (std::int64_t row = window.top; possible_ && row < window.bottom; ++row)
    possible_ = find_row(reader, row, window);
}

bool ScanCopy::find_row(ScanReader& reader, std::int64_t row, const McuWindow& window) {
  const std::int64_t across = scan_.geometry.mcus_across();
  reader.go_to(index_.before(row, window.left));
  std::array<ScanReader::DcPlace, 3> first;
  if (!reader.skip(window.left - EntropyIndex::mcu_before(window.left)) || !reader.find_dc(first))
    return false;

  std::int64_t mcu = window.left + 1;
  if (window.right == across && row + 1 < index_.rows()) {
    reader.go_to(index_.before(row + 1, 0));
    mcu = across;
  } else if (const std::int64_t last = std::min(window.right, across - 1);
             EntropyIndex::mcu_before(last) > window.left) {
    reader.go_to(index_.before(row, last));
    mcu = EntropyIndex::mcu_before(last);
  }
  if (!reader.skip(window.right - mcu)) return false;

  const Checkpoint end = reader.here();
  const std::size_t components = scan_.geometry.components();
  for (std::size_t c = 0; c < components; ++c) {
    const std::int64_t until = c + 1 < components ? first[c + 1].begin : end.bit;
    if (!add(c, first[c].value - last_dc_[c], first[c].end, until)) return false;
    last_dc_[c] = end.dc[c];
  }
  return true;
}

bool ScanCopy::add(std::size_t component, int difference, std::int64_t begin, std::int64_t end) {
  const unsigned size = size_of_number(difference);
  if (size >= dc_codes_[component].size() || begin > end) return false;
  const Code code = dc_codes_[component][size];
  if (code.length == 0) return false;
  pieces_.push_back(
      {{code.bits << size | number_bits(difference, size), code.length + size}, begin, end});
  scan_bits_ += code.length + size + (end - begin);
  return true;
}

bool ScanCopy::write(std::size_t limit, std::vector<std::uint8_t>& out) const {
  if (!possible_) return false;
  const std::size_t begin = out.size();
  headers_.put(out);
  const std::size_t scan_bytes = static_cast<std::size_t>(scan_bits_) / 8 + 1;
  if (out.size() - begin + scan_bytes + 2 >= limit) return false;
  const std::size_t scan = out.size();
  out.resize(scan + 2 * scan_bytes + 8);
  BitWriter writer(out.data() + scan);
  for (const Piece& piece : pieces_) {
    writer.put(piece.difference.bits, piece.difference.length);
    writer.copy({bits_.bytes.data(), piece.begin}, piece.end - piece.begin);
  }
  out.resize(static_cast<std::size_t>(writer.finish() - out.data()));
  put_jpeg_end(out);
  return out.size() - begin < limit;
}

}  // namespace cutwater::image
