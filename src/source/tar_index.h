// SPDX-License-Identifier: Apache-2.0
// Where the samples of a tar shard lie: its headers read and its members grouped into samples, once
// per shard. The image data itself is never read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "source/read_file.h"

namespace cutwater {

struct TarSample {
  std::uint64_t offset = 0;    // of the image's first byte in the shard
  std::uint64_t size = 0;      // of the image
  std::int64_t label = 0;      // 0 in an index without labels
  std::uint64_t name_end = 0;  // of the image member's name, in TarIndex::names
};

struct TarIndex {
  bool has_labels = false;
  std::vector<TarSample> samples;  // in the order of the shard
  std::string names;               // of the image members, without gaps

  std::string_view name(std::size_t sample) const {
    const std::uint64_t begin = sample == 0 ? 0 : samples[sample - 1].name_end;
    return std::string_view(names).substr(begin, samples[sample].name_end - begin);
  }
};

// Reads all headers of the shard. Throws Error: kInvalidArgument for anything that is not a
// complete, uncompressed tar archive in the WebDataset convention; kIo.
TarIndex index_tar(const File& shard);

// The index kept from an earlier time, if it is that of this shard as it is now; else a new one,
// which is then kept if possible. FORMAT.md describes the file. Throws as index_tar does.
TarIndex kept_tar_index(const File& shard);

}  // namespace cutwater
