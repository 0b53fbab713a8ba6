// SPDX-License-Identifier: Apache-2.0
// index.npy: one row per sample id, which says where its tensors lie and what they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/meta.h"

namespace cutwater {

// All tensors of a sample together, as they lie in a shard and decoded: what a source may read.
inline constexpr std::uint64_t kMostSampleBytes = std::uint64_t{2} << 30;

// A tensor as it lies in a shard.
struct StoredTensor {
  std::uint64_t offset = 0, size = 0;  // of its data alone, encoded
  std::uint64_t checksum = 0;          // XXH3, 64 bits, of these bytes
  TensorSpec spec;
};

struct StoredRow {
  std::uint32_t shard = 0;
  bool stored = false;  // false: the sample is bad
  std::int64_t label = 0;
  std::vector<StoredTensor> tensors;  // as many as StorePlan::tensors()
};

std::uint64_t checksum_of_payload(std::span<const std::uint8_t> bytes);

std::size_t row_bytes(std::size_t tensors);
void append_row(std::string& rows, const StoredRow& row);
// The header of index.npy.
std::string index_header(const StorePlan& plan);

// Immutable; any thread.
class StoreIndex {
 public:
  // Every row lies within its shard and can be what it says. Throws Error(kInvalidArgument) that
  // names `path` and the sample. Total on any bytes.
  StoreIndex(std::string file, const StoreMeta& meta, const std::string& path);

  // REQUIRES: 0 <= id < samples, tensor < tensors.
  bool stored(SampleId id) const;
  std::uint32_t shard(SampleId id) const;
  std::int64_t label(SampleId id) const;
  StoredTensor tensor(SampleId id, std::size_t tensor) const;
  std::size_t tensors() const { return tensors_; }

 private:
  const char* row(SampleId id) const {
    return file_.data() + header_bytes_ + static_cast<std::size_t>(id) * row_bytes_;
  }
  void check(const StoreMeta& meta) const;

  std::string file_;
  std::size_t tensors_, header_bytes_, row_bytes_;
};

}  // namespace cutwater
