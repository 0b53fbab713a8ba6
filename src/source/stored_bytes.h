// SPDX-License-Identifier: Apache-2.0
// StoredBytes: what a source can say about where its samples lie, for an engine that keeps many
// reads in flight. Source::read() is the same in one go.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cutwater/source.h"
#include "source/read_file.h"

namespace cutwater {

// Where a sample's bytes lie: a part of an open file, or all of a file that is still to be opened.
struct StoredAt {
  std::string path;
  std::shared_ptr<const File> file;  // null: a file of its own, at `path`
  std::uint64_t offset = 0;
  std::uint64_t size = 0;      // 0 with no `file`: known when it is open
  bool perhaps_cached = true;  // false: known to be slow, so that nobody tries without waiting
  std::chrono::steady_clock::time_point due = {};  // the bytes are not there before
};

class StoredBytes {
 public:
  virtual ~StoredBytes() = default;
  // Throws Error, as the sample's failure.
  virtual StoredAt locate(SampleId id) const = 0;
  // The sample whose bytes `bytes` returns; what it throws comes back as the sample's failure.
  // Where they have to be unpacked, that goes into a buffer of the context's.
  virtual Result<Sample> sample(SampleId id, const std::function<Buffer()>& bytes,
                                const ReadContext& into) const = 0;

 protected:
  // Both in one go, by the thread that asks. REQUIRES: samples are parts of open files.
  Result<Sample> read_part(SampleId id, const ReadContext& into) const {
    const auto bytes = [&] {
      const StoredAt at = locate(id);
      return at.file->read_sample(at.offset, at.size, into);
    };
    return sample(id, bytes, into);
  }
};

}  // namespace cutwater
