// SPDX-License-Identifier: Apache-2.0
#include "ops/image/jpeg_scan.h"

#include <algorithm>
#include <limits>

namespace cutwater::image {
namespace {

// Where coefficient k (in the order of the scan) stands in its group. What a damaged block counts
// beyond 63 lands on the DC coefficient, which is written last.
constexpr std::array<std::uint8_t, 256> kPlace = [] {
  std::array<std::uint8_t, 256> place{};
  for (std::size_t k = 0; k < 64; ++k)
    place[k] = static_cast<std::uint8_t>(group_place(kNaturalOrder[k]));
  return place;
}();

constexpr unsigned kLargestDc = JpegSymbols::kLargestDc, kLargestAc = JpegSymbols::kLargestAc;

constexpr std::uint8_t kRst0 = 0xD0, kEoi = 0xD9;

}  // namespace

bool ScanBits::read(const BaselineScan& scan) {
  const Bytes data = scan.data;
  const std::size_t room = data.size() + BitReader::kPadding;
  if (bytes.size() < room) bytes.resize(room);
  segments.assign(1, 0);
  std::size_t from = 0, to = 0;
  for (int restart = 0;; restart = (restart + 1) % 8) {
    const Unstuffed part = unstuff(data.data() + from, data.size() - from, bytes.data() + to);
    from += part.read;
    to += part.written;
    segments.push_back(static_cast<std::int64_t>(to) * 8);
    if (from + 2 > data.size()) return false;
    const std::uint8_t marker = data[from + 1];
    from += 2;
    if (marker == kEoi) break;
    if (scan.restart_interval == 0 || marker != kRst0 + restart) return false;
  }
  std::memset(bytes.data() + to, 0, BitReader::kPadding);
  return true;
}

void ScanBits::give_up_large() {
  constexpr std::size_t kMostKept = std::size_t{1} << 20;
  if (bytes.capacity() > kMostKept) std::vector<std::uint8_t>().swap(bytes);
}

ScanReader::ScanReader(const BaselineScan& scan, const ScanBits& bits)
    : scan_(scan),
      bits_(bits),
      reader_(bits.bytes.data(), 0),
      until_restart_(scan.restart_interval > 0 ? scan.restart_interval
                                               : std::numeric_limits<std::int64_t>::max()),
      end_bit_(bits.segments[1]) {
  for (std::size_t c = 0; c < scan.geometry.components(); ++c) {
    // The DC coefficient times its quantizer is in -8192..8191, as the DCT wants it.
    const int quantizer = std::max<int>(scan.quantizers[c][0], 1);
    const int lowest = -(8192 / quantizer), highest = 8191 / quantizer;
    components_[c] = {scan.dc_codes[c], scan.ac_tables[c],
                      nullptr,          0,
                      lowest,           static_cast<unsigned>(highest - lowest)};
    const auto [h, v] = scan.geometry.sampling[c];
    for (std::int64_t y = 0; y < v; ++y)
      for (std::int64_t x = 0; x < h; ++x) blocks_[block_count_++] = {c, nullptr, x, h};
  }
}

void ScanReader::keep_into(BlockStrip& strip) {
  kept_ = 0;
  std::size_t b = 0;
  for (std::size_t c = 0; c < scan_.geometry.components(); ++c) {
    const auto [h, v] = scan_.geometry.sampling[c];
    for (std::int64_t y = 0; y < v; ++y)
      for (std::int64_t x = 0; x < h; ++x) blocks_[b++].strip = strip.row(c, y);
  }
}

Checkpoint ScanReader::here() const {
  Checkpoint at{reader_.position(), {}};
  for (std::size_t c = 0; c < at.dc.size(); ++c)
    at.dc[c] = static_cast<std::int16_t>(components_[c].prediction);
  return at;
}

void ScanReader::go_to(const Checkpoint& checkpoint) {
  reader_.seek(checkpoint.bit);
  for (std::size_t c = 0; c < checkpoint.dc.size(); ++c)
    components_[c].prediction = checkpoint.dc[c];
}

bool ScanReader::restart() {
  if (segment_ + 2 >= bits_.segments.size()) return false;
  ++segment_;
  reader_.seek(bits_.segments[segment_]);
  end_bit_ = bits_.segments[segment_ + 1];
  until_restart_ = scan_.restart_interval;
  for (Component& component : components_) component.prediction = 0;
  return true;
}

// All of this is inlined into the loop over MCUs, where the reader's state stays in registers.

// The next DC coefficient; false where no sound scan goes: an unknown code, or a value that no
// picture has.
[[gnu::always_inline]] inline bool ScanReader::read_dc(BitReader& reader, Component& component) {
  reader.refill();
  const HuffmanCodes::Symbol symbol = component.dc->find(reader.bits());
  if (symbol.length == 0 || symbol.value > kLargestDc) return false;
  reader.take(symbol.length);
  component.prediction += extended(reader.bits(), symbol.value);
  reader.take(symbol.value);
  return static_cast<unsigned>(component.prediction - component.lowest) <= component.predictions;
}

// A symbol that the tables do not hold. Moves k; false: an unknown code, or one for no 8-bit
// picture.
[[gnu::always_inline]] inline bool ScanReader::read_rare(BitReader& reader, const AcTable& table,
                                                         unsigned& k, int& value) {
  const HuffmanCodes::Symbol rare = table.codes().find(reader.bits());
  const unsigned size = rare.value & 15;
  if (rare.length == 0 || size > kLargestAc) return false;
  reader.take(rare.length);
  k += AcTable::advance(rare.value);
  value = extended(reader.bits(), size);
  reader.take(size);
  return true;
}

// A block's AC coefficients. False as above, or where there are more than 63 of them.
[[gnu::always_inline]] inline bool ScanReader::keep_ac(BitReader& reader, const AcTable& table,
                                                       std::int16_t* block) {
  unsigned k = 0;
  do {
    // 56 bits are there after a refill: enough for three look-ups, the last for a long symbol.
    reader.refill();
    for (int step = 0; step < 3; ++step) {
      const AcTable::Entry entry = table.look_up(reader.bits());
      if (!entry.known()) [[unlikely]] {
        int value = 0;
        if (!read_rare(reader, table, k, value)) return false;
        block[kPlace[k]] = static_cast<std::int16_t>(value);
        break;
      }
      const unsigned first = k + entry.first_advance();
      k += entry.total_advance();
      block[kPlace[first]] = entry.first_value();
      block[kPlace[k]] = entry.second_value();
      reader.take(entry.total_bits());
      if (k < 63) continue;
      if (first >= 63 && k != first) [[unlikely]] {  // the second one belongs to the next block
        reader.seek(reader.position() - (entry.total_bits() & 63) + entry.first_bits());
        k = first;
      }
      break;
    }
  } while (k < 63);
  return k == 63 || k >= AcTable::kEndOfBlock;
}

// The same as symbols.
[[gnu::always_inline]] inline bool ScanReader::copy_ac(BitReader& reader, const AcTable& table,
                                                       std::size_t component,
                                                       JpegSymbols& symbols) {
  JpegSymbols::Appender out(symbols);
  unsigned k = 0;
  do {
    reader.refill();
    for (int step = 0; step < 3; ++step) {
      const std::size_t place = AcTable::place_of(reader.bits());
      const AcTable::Entry entry = table.at(place);
      const unsigned before = k;
      if (!entry.known()) [[unlikely]] {
        int value = 0;
        if (!read_rare(reader, table, k, value)) return false;
        out.put(JpegSymbols::ac_item(component, k - before, value));
        break;
      }
      k += entry.total_advance();
      if (k < 63) {
        out.put(JpegSymbols::found_item(component, place));
        reader.take(entry.total_bits());
        continue;
      }
      const unsigned first = before + entry.first_advance();
      if (first >= 63 && k != first) [[unlikely]] {  // the second one belongs to the next block
        out.put(JpegSymbols::ac_item(component, entry.first_advance(), entry.first_value()));
        reader.take(entry.first_bits());
        k = first;
      } else {
        out.put(JpegSymbols::found_item(component, place));
        reader.take(entry.total_bits());
      }
      break;
    }
  } while (k < 63);
  return k == 63 || k >= AcTable::kEndOfBlock;
}

// The same without the values.
[[gnu::always_inline]] inline bool ScanReader::skip_ac(BitReader& reader, const AcTable& table,
                                                       const SkipTable& skips) {
  for (unsigned k = 0;;) {
    reader.refill();
    for (int step = 0; step < 3; ++step) {
      const SkipTable::Entry entry = skips.look_up(reader.bits());
      const unsigned next = k + entry.advance;
      if (next < 63) {
        reader.take(entry.bits);
        k = next;
        continue;
      }
      if (next - AcTable::kEndOfBlock < 63) {
        reader.take(entry.bits);
        return true;
      }
      int ignored = 0;  // unknown, or around the last coefficient: one symbol at a time
      if (!read_rare(reader, table, k, ignored)) return false;
      if (k >= 63) return k == 63 || k >= AcTable::kEndOfBlock;
      break;
    }
  }
}

void ScanReader::prepare_skips() {
  if (components_[0].skips != nullptr) return;
  for (std::size_t c = 0; c < scan_.geometry.components(); ++c)
    components_[c].skips = &components_[c].ac->skips();
}

bool ScanReader::find_dc(std::array<DcPlace, 3>& places) {
  prepare_skips();
  for (std::size_t b = 0; b < block_count_; ++b) {
    const std::size_t c = blocks_[b].component;
    const std::int64_t begin = reader_.position();
    if (!read_dc(reader_, components_[c])) return false;
    if (b == 0 || blocks_[b - 1].component != c)
      places[c] = {begin, reader_.position(), components_[c].prediction};
    if (!skip_ac(reader_, *components_[c].ac, *components_[c].skips)) return false;
  }
  return reader_.position() <= end_bit_;
}

template <ScanReader::To kTo>
bool ScanReader::read(std::int64_t mcus) {
  if constexpr (kTo == To::kNothing) prepare_skips();
  BitReader reader = reader_;  // a copy stays in registers
  for (std::int64_t mcu = 0; mcu < mcus; ++mcu) {
    if (until_restart_-- == 0) [[unlikely]] {
      if (!restart()) return false;
      reader = reader_;
      --until_restart_;
    }
    if constexpr (kTo == To::kSymbols)
      if (!symbols_->make_room(block_count_)) return false;
    for (std::size_t b = 0; b < block_count_; ++b) {
      const Block& block = blocks_[b];
      Component& component = components_[block.component];
      if (!read_dc(reader, component)) return false;
      if constexpr (kTo == To::kStrip) {
        std::int16_t* place = block.strip + block_place(block.first + kept_ * block.step);
        if (!keep_ac(reader, *component.ac, place)) return false;
        place[0] = static_cast<std::int16_t>(component.prediction);
      } else if constexpr (kTo == To::kSymbols) {
        if (!symbols_->put_dc(block.component, component.prediction) ||
            !copy_ac(reader, *component.ac, block.component, *symbols_))
          return false;
      } else {
        if (!skip_ac(reader, *component.ac, *component.skips)) return false;
      }
    }
    if constexpr (kTo == To::kStrip) ++kept_;
    if (reader.position() > end_bit_) return false;
  }
  reader_ = reader;
  return true;
}

template bool ScanReader::read<ScanReader::To::kNothing>(std::int64_t);
template bool ScanReader::read<ScanReader::To::kStrip>(std::int64_t);
template bool ScanReader::read<ScanReader::To::kSymbols>(std::int64_t);

}  // namespace cutwater::image
