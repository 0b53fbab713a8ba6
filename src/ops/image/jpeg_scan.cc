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

// Bits per coefficient that pictures of 8 bits can have.
constexpr unsigned kLargestDc = 11, kLargestAc = 10;

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
    components_[c] = {scan.dc_codes[c], scan.ac_tables[c], 0, lowest,
                      static_cast<unsigned>(highest - lowest)};
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

template <bool kKeep>
bool ScanReader::read_block(Component& component, std::int16_t* block) {
  BitReader reader = reader_;  // a copy stays in registers
  reader.refill();
  const HuffmanCodes::Symbol symbol = component.dc->find(reader.bits());
  if (symbol.length == 0 || symbol.value > kLargestDc) return false;
  reader.take(symbol.length);
  component.prediction += extended(reader.bits(), symbol.value);
  reader.take(symbol.value);
  if (static_cast<unsigned>(component.prediction - component.lowest) > component.predictions)
    return false;

  const AcTable& table = *component.ac;
  unsigned k = 0;
  do {
    // 56 bits are there after a refill: enough for three table steps, the last a long one.
    reader.refill();
    for (int step = 0; step < 3; ++step) {
      const AcTable::Entry entry = table.look_up(reader.bits());
      if (!entry.known()) [[unlikely]] {
        const HuffmanCodes::Symbol rare = table.codes().find(reader.bits());
        const unsigned size = rare.value & 15;
        if (rare.length == 0 || size > kLargestAc) return false;
        reader.take(rare.length);
        k += AcTable::advance(rare.value);
        if constexpr (kKeep)
          block[kPlace[k]] = static_cast<std::int16_t>(extended(reader.bits(), size));
        reader.take(size);
        break;
      }
      const unsigned first = k + entry.first_advance();
      k += entry.total_advance();
      if constexpr (kKeep) {
        block[kPlace[first]] = entry.first_value();
        block[kPlace[k]] = entry.second_value();
      }
      reader.take(entry.total_bits());
      if (k < 63) continue;
      if (first >= 63 && k != first) {  // the second coefficient belongs to the next block
        reader.seek(reader.position() - (entry.total_bits() & 63) + entry.first_bits());
        k = first;
      }
      break;
    }
  } while (k < 63);
  if constexpr (kKeep) block[0] = static_cast<std::int16_t>(component.prediction);
  reader_ = reader;
  return k == 63 || k >= AcTable::kEndOfBlock;
}

template <bool kKeep>
bool ScanReader::read(std::int64_t mcus) {
  for (std::int64_t mcu = 0; mcu < mcus; ++mcu) {
    if (until_restart_-- == 0) [[unlikely]] {
      if (!restart()) return false;
      --until_restart_;
    }
    for (std::size_t b = 0; b < block_count_; ++b) {
      const Block& block = blocks_[b];
      std::int16_t* place =
          kKeep ? block.strip + block_place(block.first + kept_ * block.step) : nullptr;
      if (!read_block<kKeep>(components_[block.component], place)) return false;
    }
    if constexpr (kKeep) ++kept_;
    if (reader_.position() > end_bit_) return false;
  }
  return true;
}

template bool ScanReader::read<true>(std::int64_t);
template bool ScanReader::read<false>(std::int64_t);

}  // namespace cutwater::image
