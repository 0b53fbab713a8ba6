// SPDX-License-Identifier: Apache-2.0
// A baseline JPEG from symbols: headers, the shortest codes, and the bits.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "ops/image/jpeg_symbols.h"

namespace cutwater::image {
namespace {

using Out = std::vector<std::uint8_t>;

constexpr std::uint8_t kSof0 = 0xC0, kSof1 = 0xC1, kDht = 0xC4, kSoi = 0xD8, kEoi = 0xD9,
                       kSos = 0xDA, kDqt = 0xDB;
constexpr unsigned kLongestCode = 16;

void put16(Out& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}
void put_marker(Out& out, std::uint8_t marker, std::size_t data_bytes) {
  out.insert(out.end(), {0xFF, marker});
  put16(out, data_bytes + 2);
}

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

// One table of codes for the symbols that occur.
struct CodeTable {
  std::array<std::uint8_t, kLongestCode> counts{};  // codes of 1, 2… bits
  std::vector<std::uint8_t> values;                 // in the order of their codes

  explicit CodeTable(std::span<const std::uint32_t> occurrences) {
    for (std::size_t value = 0; value < occurrences.size(); ++value)
      if (occurrences[value] > 0) values.push_back(static_cast<std::uint8_t>(value));
    std::ranges::stable_sort(values, {}, [&](std::uint8_t value) { return occurrences[value]; });
    // The first stands for the code of all ones, which may not be used: it is the lightest, so its
    // code is among the longest.
    std::vector<std::uint64_t> weights = {0};
    for (const std::uint8_t value : values) weights.push_back(occurrences[value]);
    std::vector<unsigned> lengths = code_lengths(weights);
    while (lengths[0] > kLongestCode) {  // weights nearer to each other have shorter codes
      for (std::size_t i = 1; i < weights.size(); ++i) weights[i] = weights[i] / 2 + 1;
      lengths = code_lengths(weights);
    }
    // Codes are given by length; lighter ones are never shorter.
    for (std::size_t i = 1; i < lengths.size(); ++i) ++counts[lengths[i] - 1];
    std::ranges::reverse(values);
  }
};

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

// Bits, most significant first, a zero behind each byte of ones.
class BitWriter {
 public:
  // REQUIRES: room for twice the bytes that will be written, and eight.
  explicit BitWriter(std::uint8_t* out) : next_(out) {}

  void put(std::uint64_t bits, unsigned length) {  // 56 at most
    count_ += length;
    bits_ |= bits << (64 - count_);
    // Those that are no part of a whole byte yet stay; they are written once more.
    const bool has_ones = (bits_ & (~bits_ - 0x0101010101010101U) & 0x8080808080808080U) != 0;
    if (has_ones) [[unlikely]]
      return put_bytes();
    const std::uint64_t in_order =
        std::endian::native == std::endian::little ? __builtin_bswap64(bits_) : bits_;
    std::memcpy(next_, &in_order, sizeof in_order);
    next_ += count_ / 8;
    bits_ = bits_ << (count_ & 56U);
    count_ &= 7;
  }
  // Fills the last byte with ones. Returns the end.
  std::uint8_t* finish() {
    if (count_ > 0) put((1U << (8 - count_)) - 1, 8 - count_);
    return next_;
  }

 private:
  void put_bytes() {
    for (; count_ >= 8; count_ -= 8, bits_ <<= 8) {
      *next_++ = static_cast<std::uint8_t>(bits_ >> 56);
      if (next_[-1] == 0xFF) *next_++ = 0;
    }
  }

  std::uint64_t bits_ = 0;  // from the top
  unsigned count_ = 0;
  std::uint8_t* next_;
};

class Writer {
 public:
  Writer(const JpegPart& part, Out& out)
      : part_(part), geometry_(part.image.cut_to(part.mcus)), out_(out) {}

  bool write(std::size_t limit) {
    const std::size_t begin = out_.size();
    out_.insert(out_.end(), {0xFF, kSoi});
    put_quantizers();
    put_frame();
    put_codes();
    join_codes();
    put_scan_header();
    const std::size_t scan_bytes = scan_bits_ / 8 + 1;
    if (out_.size() - begin + scan_bytes + 2 >= limit) return false;
    put_scan(scan_bytes);
    out_.insert(out_.end(), {0xFF, kEoi});
    return out_.size() - begin < limit;
  }

 private:
  // The first component with the same table.
  std::size_t quantizer_of(std::size_t c) const {
    return static_cast<std::size_t>(std::ranges::find(part_.quantizers, part_.quantizers[c]) -
                                    part_.quantizers.begin());
  }
  static bool is_wide(const Quantizer& quantizer) {
    return *std::ranges::max_element(quantizer) > 255;
  }

  void put_quantizers() {
    for (std::size_t c = 0; c < geometry_.components(); ++c) {
      if (quantizer_of(c) != c) continue;
      const Quantizer& quantizer = part_.quantizers[c];
      const bool wide = is_wide(quantizer);
      wide_ = wide_ || wide;
      put_marker(out_, kDqt, wide ? 129 : 65);
      out_.push_back(static_cast<std::uint8_t>((wide ? 0x10 : 0) | c));
      for (const std::uint8_t n : kNaturalOrder) {
        if (wide) out_.push_back(static_cast<std::uint8_t>(quantizer[n] >> 8));
        out_.push_back(static_cast<std::uint8_t>(quantizer[n]));
      }
    }
  }

  // Without any marker of an application, the names of the components tell the colors.
  std::uint8_t name_of(std::size_t c) const {
    constexpr std::array<std::uint8_t, 3> kRgb = {'R', 'G', 'B'};
    const bool rgb = geometry_.color == JpegGeometry::Color::kRgb;
    return rgb ? kRgb[c] : static_cast<std::uint8_t>(c + 1);
  }

  void put_frame() {
    const std::size_t components = geometry_.components();
    // Wide quantizers are beyond what the standard calls baseline.
    put_marker(out_, wide_ ? kSof1 : kSof0, 6 + 3 * components);
    out_.push_back(8);
    put16(out_, static_cast<std::size_t>(geometry_.height));
    put16(out_, static_cast<std::size_t>(geometry_.width));
    out_.push_back(static_cast<std::uint8_t>(components));
    for (std::size_t c = 0; c < components; ++c) {
      const auto [h, v] = geometry_.sampling[c];
      out_.insert(out_.end(), {name_of(c), static_cast<std::uint8_t>(h << 4 | v),
                               static_cast<std::uint8_t>(quantizer_of(c))});
    }
  }

  void put_codes() {
    const std::size_t components = geometry_.components();
    for (std::size_t c = 0; c < std::min<std::size_t>(components, 2); ++c) {
      put_code_table(JpegSymbols::dc_table(c), static_cast<std::uint8_t>(c));
      put_code_table(JpegSymbols::ac_table(c), static_cast<std::uint8_t>(0x10 | c));
    }
  }

  void put_code_table(std::size_t table, std::uint8_t name) {
    const auto occurrences = part_.symbols.counts(table);
    const CodeTable made(occurrences);
    put_marker(out_, kDht, 17 + made.values.size());
    out_.push_back(name);
    out_.insert(out_.end(), made.counts.begin(), made.counts.end());
    out_.insert(out_.end(), made.values.begin(), made.values.end());
    std::uint32_t code = 0;
    auto value = made.values.begin();
    for (unsigned length = 1; length <= kLongestCode; ++length, code <<= 1)
      for (unsigned i = 0; i < made.counts[length - 1]; ++i, ++code, ++value) {
        const unsigned size = *value & 15U;
        codes_[table * JpegSymbols::kTableValues + *value] = {code << size, length + size};
        scan_bits_ += std::size_t{occurrences[*value]} * (length + size);
      }
  }

  Code code_of(JpegSymbols::Item item) const {
    const Code code = codes_[item.kind()];
    return {code.bits() | item.bits(), code.length()};
  }

  // What is looked up at once is written at once.
  void join_codes() {
    for (const JpegSymbols::Found& found : part_.symbols.found()) {
      Code code = code_of(found.first);
      if (found.two) {
        const Code second = code_of(found.second);
        code = {code.bits() << second.length() | second.bits(), code.length() + second.length()};
      }
      codes_[found.kind] = code;
    }
  }

  void put_scan_header() {
    const std::size_t components = geometry_.components();
    put_marker(out_, kSos, 4 + 2 * components);
    out_.push_back(static_cast<std::uint8_t>(components));
    for (std::size_t c = 0; c < components; ++c)
      out_.insert(out_.end(), {name_of(c), static_cast<std::uint8_t>(c == 0 ? 0x00 : 0x11)});
    out_.insert(out_.end(), {0, 63, 0});
  }

  void put_scan(std::size_t scan_bytes) {
    const std::size_t begin = out_.size();
    out_.resize(begin + 2 * scan_bytes + 8);
    BitWriter writer(out_.data() + begin);
    for (const JpegSymbols::Item item : part_.symbols.items()) {
      const Code code = code_of(item);
      writer.put(code.bits(), code.length());
    }
    out_.resize(static_cast<std::size_t>(writer.finish() - out_.data()));
  }

  const JpegPart& part_;
  const JpegGeometry geometry_;
  Out& out_;
  std::array<Code, JpegSymbols::kKinds> codes_{};
  std::size_t scan_bits_ = 0;
  bool wide_ = false;
};

}  // namespace

bool write_baseline(const JpegPart& part, std::size_t limit, std::vector<std::uint8_t>& out) {
  return Writer(part, out).write(limit);
}

}  // namespace cutwater::image
