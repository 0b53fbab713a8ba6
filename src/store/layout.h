// SPDX-License-Identifier: Apache-2.0
// What the files of a store are called, and the headers of tar members. FORMAT.md has the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cutwater/sample.h"
#include "cutwater/variant.h"

namespace cutwater {

inline constexpr std::string_view kMetaName = "meta.json";
inline constexpr std::string_view kIndexName = "index.npy";
// While a store is being written, and no longer.
inline constexpr std::string_view kBuildingName = "building.json";
inline constexpr std::string_view kLockName = "building.lock";
inline constexpr std::string_view kTemporarySuffix = ".tmp";

std::string shard_name(std::int64_t shard);  // "shard-000003.tar"
std::string part_name(std::int64_t shard);   // "shard-000003.part"
std::string sample_key(SampleId id);         // "000000042"

// What follows the key: "npy", "npy.zst", "npy.shuffle.zst"…; `field` is empty for the first one.
std::string member_suffix(std::string_view field, std::string_view extension, const Codec& codec);
// Of bytes as stored: what the source calls them, else what they begin like, else "bin".
std::string stored_extension(std::string_view path, std::span<const std::uint8_t> bytes);

// Names of fields become names of members and columns.
bool is_field_name(std::string_view name);

inline constexpr std::size_t kTarBlock = 512;
// Zeros after so many bytes, up to the next block.
constexpr std::size_t tar_padding(std::uint64_t bytes) {
  return static_cast<std::size_t>((kTarBlock - bytes % kTarBlock) % kTarBlock);
}
// A plain file of this name: ustar, without times, owners or anything else that could differ.
// REQUIRES: at most 100 characters, less than 8 GiB.
std::array<std::uint8_t, kTarBlock> tar_header(std::string_view name, std::uint64_t bytes);

// The shape of the elements as they lie in memory, for an .npy header.
Shape npy_shape(const TensorSpec& spec);

}  // namespace cutwater
