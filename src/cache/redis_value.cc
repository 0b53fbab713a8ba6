// SPDX-License-Identifier: Apache-2.0
#include "cache/redis_value.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace cutwater::redis {
namespace {

static_assert(std::endian::native == std::endian::little, "values are kept in little endian");

// As it is kept.
struct Kept {
  std::array<char, 8> magic;
  std::uint64_t size, chunk_bytes, check;
  std::array<std::uint64_t, 4> zeros;
};
static_assert(sizeof(Kept) == ValueHeader::kBytes);
constexpr std::array<char, 8> kMagic = {'C', 'W', 'V', 'A', 'L', 'U', 'E', '1'};

}  // namespace

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return {digits.data(), end};
}

std::size_t ValueHeader::chunk_size(std::size_t chunk) const {
  return std::min(chunk_bytes, size - chunk * chunk_bytes);
}

std::array<char, ValueHeader::kBytes> encode(const ValueHeader& header) {
  const Kept kept{kMagic, header.size, header.chunk_bytes, header.check, {}};
  return std::bit_cast<std::array<char, ValueHeader::kBytes>>(kept);
}

std::optional<ValueHeader> decode(std::span<const std::uint8_t, ValueHeader::kBytes> bytes) {
  Kept kept;
  std::memcpy(&kept, bytes.data(), sizeof kept);
  if (kept.magic != kMagic || kept.zeros != decltype(kept.zeros){} ||
      kept.chunk_bytes < ValueHeader::kLeastChunk || kept.chunk_bytes > ValueHeader::kMostBytes ||
      kept.size > ValueHeader::kMostBytes)
    return std::nullopt;
  return ValueHeader{kept.size, kept.chunk_bytes, kept.check};
}

struct Checksum::State {
  XXH3_state_t hash;
};

Checksum::Checksum(const CacheKey& key) : state_(std::make_unique<State>()) {
  const std::array<std::uint64_t, 4> words = {key.data, key.form,
                                              static_cast<std::uint64_t>(key.sample), key.draw};
  XXH3_64bits_reset_withSeed(&state_->hash, XXH3_64bits(words.data(), sizeof words));
}
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::uint8_t> bytes) {
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(&state_->hash); }

std::string tag_of(const CacheKey& key) {
  return hex(key.data) + ":" + hex(static_cast<std::uint64_t>(key.sample));
}

std::string name_of(const std::string& prefix, const CacheKey& key) {
  return prefix + ":{" + tag_of(key) + "}:" + hex(key.form) + ":" + hex(key.draw);
}

std::string chunk_name(const std::string& name, const ValueHeader& header, std::size_t chunk) {
  return name + ":" + hex(header.check) + ":" + hex(chunk);
}

}  // namespace cutwater::redis
