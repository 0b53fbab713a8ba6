// SPDX-License-Identifier: Apache-2.0
// A baseline JPEG from symbols: headers, the shortest codes, and the bits.
#include <algorithm>
#include <array>

#include "ops/image/jpeg_bit_writer.h"
#include "ops/image/jpeg_headers.h"
#include "ops/image/jpeg_symbols.h"

namespace cutwater::image {
namespace {

// How long Huffman's codes for these weights are. REQUIRES: they are sorted, and at least two.
std::vector<unsigned> code_lengths(const std::vector<std::uint64_t>& weights) {
  // Nodes stand in the order of their weights: leaves, then what joins two.
  const std::size_t leaves = weights.size();
  std::vector<std::uint64_t> joined;
  std::vector<std::size_t> parents(2 * leaves - 1);
  joined.reserve(leaves - 1);
  std::size_t next_leaf = 0, next_joined = 0;
  const auto take_lightest = [&]() -> std::uint64_t {
    const bool leaf = next_joined == joined.size() ||
                      (next_leaf < leaves && weights[next_leaf] <= joined[next_joined]);
    parents[leaf ? next_leaf : leaves + next_joined] = leaves + joined.size();
    return leaf ? weights[next_leaf++] : joined[next_joined++];
  };
  while (joined.size() < leaves - 1) {
    const std::uint64_t first = take_lightest(), second = take_lightest();
    joined.push_back(first + second);
  }
  std::vector<unsigned> lengths(2 * leaves - 1, 0);
  for (std::size_t node = lengths.size() - 1; node-- > 0;)
    lengths[node] = lengths[parents[node]] + 1;
  lengths.resize(leaves);
  return lengths;
}

// The shortest codes for the symbols that occur.
CodeTable shortest_codes(std::span<const std::uint32_t> occurrences) {
  CodeTable table;
  std::vector<std::uint8_t>& values = table.values;
  for (std::size_t value = 0; value < occurrences.size(); ++value)
    if (occurrences[value] > 0) values.push_back(static_cast<std::uint8_t>(value));
  std::ranges::stable_sort(values, {}, [&](std::uint8_t value) { return occurrences[value]; });
  // The first stands for the code of all ones, which may not be used: it is the lightest, so its
  // code is among the longest.
  std::vector<std::uint64_t> weights = {0};
  for (const std::uint8_t value : values) weights.push_back(occurrences[value]);
  std::vector<unsigned> lengths = code_lengths(weights);
  while (lengths[0] > CodeTable::kLongestCode) {  // weights nearer to each other: shorter codes
    for (std::size_t i = 1; i < weights.size(); ++i) weights[i] = weights[i] / 2 + 1;
    lengths = code_lengths(weights);
  }
  // Codes are given by length; lighter ones are never shorter.
  for (std::size_t i = 1; i < lengths.size(); ++i) ++table.counts[lengths[i] - 1];
  std::ranges::reverse(values);
  return table;
}

// What is written for an item: at most 56 bits, a code with room for its symbol's bits.
class Code {
 public:
  Code() = default;
  Code(std::uint64_t bits, unsigned length) : word_(bits << 8 | length) {}
  std::uint64_t bits() const { return word_ >> 8; }
  unsigned length() const { return static_cast<unsigned>(word_ & 255); }

 private:
  std::uint64_t word_ = 0;
};

class Writer {
 public:
  explicit Writer(const JpegPart& part) : symbols_(part.symbols) {
    headers_.geometry = part.image.cut_to(part.mcus);
    headers_.quantizers = part.quantizers;
    for (std::size_t c = 0; c < headers_.geometry.components(); ++c) {
      const std::size_t of = std::min<std::size_t>(c, 1);
      headers_.dc_of[c] = headers_.ac_of[c] = of;
      if (of != c) continue;
      headers_.dc_tables[c] = coded(JpegSymbols::dc_table(c));
      headers_.ac_tables[c] = coded(JpegSymbols::ac_table(c));
    }
    join_codes();
  }

  bool write(std::size_t limit, std::vector<std::uint8_t>& out) const {
    const std::size_t begin = out.size();
    headers_.put(out);
    const std::size_t scan_bytes = scan_bits_ / 8 + 1;
    if (out.size() - begin + scan_bytes + 2 >= limit) return false;
    put_scan(scan_bytes, out);
    put_jpeg_end(out);
    return out.size() - begin < limit;
  }

 private:
  CodeTable coded(std::size_t table) {
    const auto occurrences = symbols_.counts(table);
    CodeTable made = shortest_codes(occurrences);
    made.for_each([&](std::uint8_t value, std::uint32_t code, unsigned length) {
      const unsigned size = value & 15U;
      codes_[table * JpegSymbols::kTableValues + value] = {code << size, length + size};
      scan_bits_ += std::size_t{occurrences[value]} * (length + size);
    });
    return made;
  }

  Code code_of(JpegSymbols::Item item) const {
    const Code code = codes_[item.kind()];
    return {code.bits() | item.bits(), code.length()};
  }

  // What is looked up at once is written at once.
  void join_codes() {
    for (const JpegSymbols::Found& found : symbols_.found()) {
      Code code = code_of(found.first);
      if (found.two) {
        const Code second = code_of(found.second);
        code = {code.bits() << second.length() | second.bits(), code.length() + second.length()};
      }
      codes_[found.kind] = code;
    }
  }

  void put_scan(std::size_t scan_bytes, std::vector<std::uint8_t>& out) const {
    const std::size_t begin = out.size();
    out.resize(begin + 2 * scan_bytes + 8);
    BitWriter writer(out.data() + begin);
    for (const JpegSymbols::Item item : symbols_.items()) {
      const Code code = code_of(item);
      writer.put(code.bits(), code.length());
    }
    out.resize(static_cast<std::size_t>(writer.finish() - out.data()));
  }

  const JpegSymbols& symbols_;
  JpegHeaders headers_;
  std::array<Code, JpegSymbols::kKinds> codes_{};
  std::size_t scan_bits_ = 0;
};

}  // namespace

bool write_baseline(const JpegPart& part, std::size_t limit, std::vector<std::uint8_t>& out) {
  return Writer(part).write(limit, out);
}

}  // namespace cutwater::image
