// SPDX-License-Identifier: Apache-2.0
// The kept index of a shard, as it comes and sealed as that of this very shard: what is read from
// it lies within the shard, and what is not read from it is as good as absent.

#include "core/sha256.h"
#include "folder.h"
#include "source/tar_index.h"

namespace cutwater::fuzz {
namespace {

constexpr std::uint64_t kBlock = 512;

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[at + i] = static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xff);
}

// A shard of a few blocks in a folder of its own; its own index has no samples, so whatever has
// some was read from the kept one.
class Shard {
 public:
  Shard() { folder_.write("shard.tar", std::string(8 * kBlock, '\0')); }
  std::string path() const { return folder_.path("shard.tar"); }
  void write_index(std::string_view bytes) const { folder_.write("shard.tar.cwindex", bytes); }

 private:
  Folder folder_;
};

// FORMAT.md: magic and version, flags, size and time of the shard, two counts, samples, names,
// digest.
std::string sealed(std::string body, const File& shard) {
  constexpr std::size_t kHeader = 48;
  if (body.size() < kHeader) body.resize(kHeader);
  body.replace(0, 8, "CWTARIDX");
  put<std::uint32_t>(body, 8, 1);
  put(body, 16, shard.size());
  put(body, 24, shard.mtime_ns());
  return body + sha256_hex(body);
}

void check(const Shard& shard, const File& file, const std::string& index_bytes) {
  shard.write_index(index_bytes);
  const TarIndex index = kept_tar_index(file);
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < index.samples.size(); ++i) {
    const TarSample& sample = index.samples[i];
    require(sample.offset % kBlock == 0 && sample.offset >= end + kBlock,
            "samples follow one another");
    require(sample.offset <= file.size() && sample.size <= file.size() - sample.offset,
            "samples lie within the shard");
    require(sample.name_end <= index.names.size() && !index.name(i).empty(), "samples have names");
    end = sample.offset + sample.size;
  }
}

}  // namespace

FUZZ_TARGET(kept_index) {
  static const Shard shard;
  static const File file = File::open(shard.path());
  const std::string bytes(input.begin(), input.end());
  check(shard, file, bytes);
  check(shard, file, sealed(bytes, file));
}

}  // namespace cutwater::fuzz
