// SPDX-License-Identifier: Apache-2.0
// Spool: samples at a cut in a file without a name, in the order in which they came. It is gone
// with the process, however that ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "cutwater/source.h"
#include "source/read_file.h"

namespace cutwater {

// Every method may be called from any thread.
class Spool {
 public:
  // On the disk of `folder`. Throws Error(kIo) where no file can be made there. The file is made
  // with the first sample: a process that is forked before has its own.
  Spool(const std::string& folder, std::int64_t samples, Cut cut);

  // Whether a sample is there, or on its way.
  bool has(SampleId id) const;
  // A sample that is there already is not added again. Throws Error(kIo).
  void add(const Sample& sample);
  // Nothing: it is not there, or damaged. Throws Error(kIo).
  std::optional<Sample> find(SampleId id, const ReadContext& into) const;

  // Gives the disk back; who is reading may find nothing, which is an Error(kIo).
  void clear();

  std::int64_t samples() const { return count_; }
  std::uint64_t bytes() const { return end_; }
  std::int64_t damaged() const { return damaged_; }  // times that a sample was

 private:
  struct Place {
    std::uint64_t offset = 0, size = 0;  // no size: not there yet
    bool taken = false;
  };

  const std::string folder_;
  const Cut cut_;
  std::atomic<std::uint64_t> end_{0};
  std::atomic<std::int64_t> count_{0};
  mutable std::atomic<std::int64_t> damaged_{0};
  mutable Mutex mutex_;
  Fd file_ CUTWATER_GUARDED_BY(mutex_);                    // once open, it stays
  std::vector<Place> places_ CUTWATER_GUARDED_BY(mutex_);  // by id
};

}  // namespace cutwater
