// SPDX-License-Identifier: Apache-2.0
// How a value lies in Redis.
//   PREFIX:{DATA:SAMPLE}:FORM:DRAW           64 bytes of header, then the first chunk
//   PREFIX:{DATA:SAMPLE}:FORM:DRAW:CHECK:i   chunk i, from 1 on, of what is longer
// Numbers are hexadecimal. What is in braces makes a cluster keep all of a sample on one node. A
// chunk has the checksum in its name: chunks of two values under one key never mix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cutwater/cache.h"

namespace cutwater::redis {

struct ValueHeader {
  static constexpr std::size_t kBytes = 64;  // so that the rest is aligned
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of a value
  static constexpr std::uint64_t kLeastChunk = 4096;

  std::uint64_t size = 0;                   // of the value
  std::uint64_t chunk_bytes = kLeastChunk;  // of each chunk but the last
  std::uint64_t check = 0;                  // checksum of the value under its key

  std::size_t chunks() const { return size <= chunk_bytes ? 1 : (size - 1) / chunk_bytes + 1; }
  std::size_t chunk_size(std::size_t chunk) const;
};

std::array<char, ValueHeader::kBytes> encode(const ValueHeader& header);
// Nothing: it is none of ours, or what it says cannot be.
std::optional<ValueHeader> decode(std::span<const std::uint8_t, ValueHeader::kBytes> bytes);

// Checksum over a value and the key that it belongs under, so that the value of another key is as
// wrong as a damaged one.
class Checksum {
 public:
  explicit Checksum(const CacheKey& key);
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;
  void add(std::span<const std::uint8_t> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hex(std::uint64_t number);
std::string tag_of(const CacheKey& key);  // what is in braces
std::string name_of(const std::string& prefix, const CacheKey& key);
std::string chunk_name(const std::string& name, const ValueHeader& header, std::size_t chunk);

}  // namespace cutwater::redis
