// SPDX-License-Identifier: Apache-2.0
// meta.json, building.json and the parts of an unfinished store: text that is sealed by a checksum,
// so that whatever is read from it was written by us, or by somebody who meant it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/store.h"

namespace cutwater {

// What a store is of: the same from its beginning to its end.
struct StorePlan {
  std::string pipeline, cut_name, fingerprint, identity, stamp;
  Cut cut = 0;
  Codec codec;
  std::int64_t samples = 0, samples_per_shard = 1;
  bool has_labels = false;
  std::vector<std::string> classes;
  std::vector<std::string> fields;  // of a sample, in its order
  bool label_field = false;         // "label" is one of them and holds the sample's label

  std::int64_t shards() const { return (samples - 1) / samples_per_shard + 1; }
  std::int64_t first_of(std::int64_t shard) const { return shard * samples_per_shard; }
  std::int64_t end_of(std::int64_t shard) const {
    return shard + 1 == shards() ? samples : first_of(shard + 1);
  }
  // Fields that are tensors of their own in the shards.
  std::vector<std::string> tensors() const;
};

struct ShardMeta {
  std::uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const ShardMeta&) const = default;
};

struct StoreMeta {
  StorePlan plan;
  std::vector<ShardMeta> shards;
  ShardMeta index;
  std::uint64_t raw_bytes = 0;  // of the tensors, before the codec
  std::vector<Failure> bad;     // in the order of ids
};

// What one thread leaves of a shard that it has finished.
struct ShardPart {
  std::int64_t shard = 0;
  ShardMeta meta;
  std::uint64_t raw_bytes = 0;
  std::vector<Failure> bad;
  std::string rows;  // of the index
};

std::string to_text(const StorePlan& plan);
std::string to_text(const StoreMeta& meta);
std::string to_text(const ShardPart& part);

// Throw Error(kInvalidArgument) that names `path`, for anything that is damaged or cannot be. Total
// on any input.
StorePlan parse_plan(std::string_view text, const std::string& path);
StoreMeta parse_meta(std::string_view text, const std::string& path);
ShardPart parse_part(std::string_view text, const std::string& path);

inline constexpr std::uint64_t kMaxMetaBytes = std::uint64_t{256} << 20;

// Throws Error(kInvalidArgument) where there are more shards than meta.json could list.
void check_can_list(const StorePlan& plan);

// Of a finished store. Throws Error: kNotFound where there is none, kInvalidArgument, kIo.
StoreMeta read_meta(const std::string& folder);
StoreInfo info_of(const StoreMeta& meta);

}  // namespace cutwater
