// SPDX-License-Identifier: Apache-2.0
// Variants: other encodings of the same cut that give the same bytes to the next op. Stores, caches
// and wires hold tensors in the variant that pays; a Codec names how.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/tensor.h"

namespace cutwater {

// Values are part of file and wire formats: never renumber.
enum class Filter : std::uint8_t {
  kNone = 0,
  kShuffle = 1,  // byte k of every element stands together: exponents beside exponents
  kDelta = 2,    // each row as its difference from the row before, byte by byte
};
enum class Compressor : std::uint8_t { kNone = 0, kLz4 = 1, kZstd = 2 };

struct Codec {
  Filter filter = Filter::kNone;
  Compressor compressor = Compressor::kNone;
  int level = 0;  // zstd's; 0 for the others

  bool is_none() const { return compressor == Compressor::kNone; }
  auto operator<=>(const Codec&) const = default;
};

// "none", "lz4", "zstd:3", "shuffle-zstd:1", "delta-zstd:1"; "zstd" alone is level 3. Throws
// Error(kInvalidArgument) that lists them.
Codec codec_named(std::string_view name);
std::string to_string(const Codec& codec);

// The codecs worth trying on a tensor of this kind, "none" first.
std::vector<Codec> codecs_for(const TensorSpec& spec);

// Replaces `out` by the encoded bytes of a tensor: a frame that the lz4 or zstd tool reads as well.
// Deterministic. REQUIRES: bytes.size() == spec.bytes(), all of spec known.
void encode(const Codec& codec, const TensorSpec& spec, std::span<const std::uint8_t> bytes,
            std::vector<std::uint8_t>& out);

// Throws Error(kBadSample) where the frame does not say of itself that it stands for so many bytes:
// asked before memory is taken for them.
void check_frame(const Codec& codec, std::span<const std::uint8_t> encoded, std::uint64_t bytes);

// The reverse; fills `into` to its last byte. Throws Error(kBadSample) where the frame is damaged,
// cut short, or stands for another number of bytes; total on any input.
// REQUIRES: into.size() == spec.bytes().
void decode(const Codec& codec, const TensorSpec& spec, std::span<const std::uint8_t> encoded,
            std::span<std::uint8_t> into);

}  // namespace cutwater
