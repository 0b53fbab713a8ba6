// SPDX-License-Identifier: Apache-2.0
// From a sample of the source to its members in a shard.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cutwater/buffer.h"
#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "store/index.h"
#include "store/meta.h"

namespace cutwater {

// Samples at the store's cut. Any thread.
class SampleMaker {
 public:
  // REQUIRES: the source and the pipeline outlive this.
  SampleMaker(const Source& source, const Pipeline& pipeline, Cut cut, std::size_t memory_bytes);

  // Failures carry id, path and op. A sample that the storage failed to give is kIo, not bad.
  Result<Sample> make(SampleId id) const;
  const Source& source() const { return source_; }

 private:
  const Source& source_;
  const Pipeline& pipeline_;
  const Cut cut_;
  Draws nothing_drawn_;
  const std::shared_ptr<BufferPool> pool_;
};

// A file of a shard: what comes before the data, and the data.
struct Member {
  std::string name;
  std::vector<std::uint8_t> head;
  std::span<const std::uint8_t> data;
  TensorSpec spec;
  bool is_label = false;

  std::uint64_t bytes() const { return head.size() + data.size(); }
  std::uint64_t bytes_in_tar() const;
};

// One thread at a time.
class SampleMembers {
 public:
  explicit SampleMembers(const StorePlan& plan) : plan_(plan) {}

  // Valid until the next call, and while the sample lives. `path` names the sample in its source.
  // Throws Error(kInvalidArgument) where it has other fields than the plan, or is too large.
  const std::vector<Member>& of(const Sample& sample, const std::string& path);

 private:
  Member tensor(const Field& field, bool first, const std::string& key, const std::string& path);

  const StorePlan& plan_;
  std::vector<Member> members_;
  std::vector<std::vector<std::uint8_t>> encoded_;  // by tensor; what members show
};

struct ShardProgress {
  std::atomic<std::int64_t> samples{0};
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<bool> stop{false};
};

// Writes a shard and then its part to the folder. Throws Error: kIo, kCancelled when it was
// stopped, and what is wrong with a sample that is not kBadSample; then nothing is left of the
// shard.
void write_shard(const std::string& folder, const StorePlan& plan, const SampleMaker& maker,
                 std::int64_t shard, ShardProgress& progress);

}  // namespace cutwater
