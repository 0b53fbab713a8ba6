// SPDX-License-Identifier: Apache-2.0
// Files that hold many samples each, for sources that read parts of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/sha256.h"
#include "source/read_file.h"

namespace cutwater {

// The shards, a bounded number of them open at a time. Up to that number each stays open for good.
class Shards {
 public:
  static constexpr std::size_t kMaxOpen = 256;

  // Takes the next shard. REQUIRES: not called once get() may be.
  void add(File shard) {
    MutexLock lock(mutex_);
    known_.push_back({shard.path(), shard.size(), shard.mtime_ns()});
    const std::size_t number = open_.size();
    open_.emplace_back();
    if (number < kMaxOpen) keep_open(number, std::make_shared<const File>(std::move(shard)));
  }

  // Any thread. The file stays open as long as the caller holds it. Throws Error(kIo) when the
  // shard is no longer the one that was added; as File::open does.
  std::shared_ptr<const File> get(std::size_t shard) const {
    {
      MutexLock lock(mutex_);
      if (open_[shard]) return open_[shard];
    }
    const Known& known = known_[shard];
    auto file = std::make_shared<const File>(File::open(known.path));
    if (!known.is(*file)) {
      throw path_error(Code::kIo, known.path,
                       "the shard was changed while in use; open the data again");
    }
    MutexLock lock(mutex_);
    if (!open_[shard]) keep_open(shard, file);
    return file;
  }

  // Not of times: a copy of the shards on another machine is the same data.
  std::string digest() const {
    std::string text;
    for (const Known& known : known_) text += std::to_string(known.size) + '\n';
    return sha256_hex(text);
  }
  // Of times, too, as they were when the shards were added; another one as soon as one of them has
  // changed since.
  std::string stamp() const {
    std::string text = "shards";
    for (const Known& known : known_)
      text += ' ' + std::to_string(known.size) + ' ' + std::to_string(known.mtime_ns) +
              (unchanged(known) ? "" : " changed");
    return sha256_hex(text);
  }

 private:
  struct Known {
    std::string path;
    std::uint64_t size;
    std::int64_t mtime_ns;

    bool is(const File& file) const { return file.size() == size && file.mtime_ns() == mtime_ns; }
  };

  static bool unchanged(const Known& known) {
    try {
      return known.is(File::open(known.path));
    } catch (const Error&) {
      return false;
    }
  }

  void keep_open(std::size_t shard, std::shared_ptr<const File> file) const
      CUTWATER_REQUIRES(mutex_) {
    if (in_order_.size() == kMaxOpen) {
      open_[in_order_.front()].reset();
      in_order_.pop_front();
    }
    open_[shard] = std::move(file);
    in_order_.push_back(shard);
  }

  std::vector<Known> known_;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const File>> open_ CUTWATER_GUARDED_BY(mutex_);  // or null
  mutable std::deque<std::size_t> in_order_ CUTWATER_GUARDED_BY(mutex_);  // open ones, oldest first
};

}  // namespace cutwater
