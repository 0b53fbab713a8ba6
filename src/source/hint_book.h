// SPDX-License-Identifier: Apache-2.0
// HintBook: what ops have learned about the samples of a data set (op.h: Hint), in memory, and as
// one file that can be kept. HINTS.md has its layout.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "cutwater/pipeline.h"

namespace cutwater {

// Any thread.
class HintBook final : public Hints {
 public:
  // Holds at most so many bytes; what would not fit is not learned.
  HintBook(std::int64_t samples, std::size_t max_bytes);

  void find(SampleId id, std::vector<std::uint8_t>& into) override;
  void keep(SampleId id, const std::vector<std::uint8_t>& learned) override;

  bool knows(SampleId id) const;
  std::int64_t entries() const { return entries_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t max_bytes() const { return max_bytes_; }
  std::int64_t uses() const { return uses_; }        // find() had something to give
  std::int64_t changes() const { return changes_; }  // since it was made

  // `of` names the ops that the hints are of: a book of others is of no use.
  std::string encode(std::string_view of) const;
  // False, and unchanged: it does not hold in every respect.
  bool decode(std::string_view bytes, std::string_view of);

 private:
  static constexpr std::size_t kShards = 64;  // so that threads rarely meet
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<SampleId, std::vector<std::uint8_t>> entries CUTWATER_GUARDED_BY(mutex);
  };
  Shard& shard(SampleId id) { return shards_[static_cast<std::size_t>(id) % kShards]; }
  const Shard& shard(SampleId id) const { return shards_[static_cast<std::size_t>(id) % kShards]; }

  const std::int64_t samples_;
  const std::size_t max_bytes_;
  std::array<Shard, kShards> shards_;
  std::atomic<std::int64_t> entries_{0}, uses_{0}, changes_{0};
  std::atomic<std::size_t> bytes_{0};
};

// A book that is kept as a file, beside the data set or where the user says. Failing to read or
// write it costs time, nothing else.
class KeptHints {
 public:
  // Reads what is kept there. `home`: a folder, or empty; `path`: the file, or empty for the
  // folder's own, which stands in the user's cache folder if the home cannot be written to.
  // Throws Error(kInvalidArgument) for a path in a folder that does not exist or cannot be written.
  KeptHints(HintBook& book, std::string of, const std::string& home, const std::string& path);

  // If there is something new. Does not throw: what cannot be kept is found again.
  void save() noexcept;

 private:
  HintBook& book_;
  const std::string of_;
  std::vector<std::string> places_;  // where to write, by preference
  std::int64_t saved_changes_ = 0;
};

}  // namespace cutwater
