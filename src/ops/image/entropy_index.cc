// SPDX-License-Identifier: Apache-2.0
#include "ops/image/entropy_index.h"

#include <limits>

namespace cutwater::image {
namespace {

constexpr std::uint8_t kVersion = 2;
constexpr std::size_t kHeader = 1 + 8;

void put_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Small numbers of either sign to small numbers.
std::uint64_t folded(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
std::int64_t unfolded(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

class VarintReader {
 public:
  explicit VarintReader(Bytes bytes) : bytes_(bytes) {}

  std::uint64_t next() {
    std::uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size() && shift < 63; shift += 7) {
      const std::uint8_t byte = bytes_[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    sound_ = false;
    return 0;
  }
  bool sound() const { return sound_; }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
  bool sound_ = true;
};

}  // namespace

std::vector<std::uint8_t> EntropyIndex::encode(std::uint64_t content) const {
  std::vector<std::uint8_t> out = {kVersion};
  out.reserve(kHeader + 4 + checkpoints_.size() * 7);
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<std::uint8_t>(content >> (8 * i)));
  put_varint(out, static_cast<std::uint64_t>(rows()));
  Checkpoint last;
  for (const Checkpoint& checkpoint : checkpoints_) {
    put_varint(out, static_cast<std::uint64_t>(checkpoint.bit - last.bit));
    for (std::size_t c = 0; c < checkpoint.dc.size(); ++c)
      put_varint(out, folded(checkpoint.dc[c] - last.dc[c]));
    last = checkpoint;
  }
  return out;
}

bool EntropyIndex::decode(Bytes encoded, std::uint64_t content, std::int64_t end_bit) {
  checkpoints_.clear();
  if (encoded.size() < kHeader || encoded[0] != kVersion) return false;
  for (std::size_t i = 0; i < 8; ++i)
    if (encoded[1 + i] != static_cast<std::uint8_t>(content >> (8 * i))) return false;
  VarintReader reader(encoded.subspan(kHeader));
  const std::uint64_t rows = reader.next();
  if (rows > static_cast<std::uint64_t>(mcus_down_)) return false;
  const auto count = static_cast<std::size_t>(static_cast<std::int64_t>(rows) * per_row());
  if (count > encoded.size() / 4) return false;  // a checkpoint takes four bytes at least
  checkpoints_.reserve(count);
  Checkpoint last;
  constexpr std::int64_t kLowest = std::numeric_limits<std::int16_t>::min();
  constexpr std::int64_t kHighest = std::numeric_limits<std::int16_t>::max();
  for (std::size_t i = 0; i < count && reader.sound(); ++i) {
    const std::uint64_t step = reader.next();
    bool sound = step <= static_cast<std::uint64_t>(end_bit - last.bit);
    if (sound) last.bit += static_cast<std::int64_t>(step);
    for (std::int16_t& dc : last.dc) {
      const std::int64_t change = unfolded(reader.next());
      // Not dc + change: a hostile change would overflow.
      sound = sound && change >= kLowest - dc && change <= kHighest - dc;
      if (sound) dc = static_cast<std::int16_t>(dc + change);
    }
    if (!sound) break;
    checkpoints_.push_back(last);
  }
  if (checkpoints_.size() == count && reader.sound() && reader.at_end()) return true;
  checkpoints_.clear();
  return false;
}

}  // namespace cutwater::image
