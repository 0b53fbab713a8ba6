// SPDX-License-Identifier: Apache-2.0
// Tar archives, as they come and with the checksums of their headers set right: members and samples
// lie within the archive, one after another.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "source/tar_index.h"
#include "source/tar_walk.h"

namespace cutwater::fuzz {
namespace {

constexpr std::size_t kBlock = 512;

std::vector<std::uint8_t> with_checksums(Input archive) {
  std::vector<std::uint8_t> out(archive.begin(), archive.end());
  constexpr std::size_t kMagicAt = 257, kSumAt = 148, kSumLength = 8;
  for (std::size_t at = 0; at + kBlock <= out.size(); at += kBlock) {
    std::uint8_t* const header = out.data() + at;
    if (std::memcmp(header + kMagicAt, "ustar", 5) != 0) continue;
    std::fill_n(header + kSumAt, kSumLength, ' ');
    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += header[i];
    for (std::size_t digit = 6; digit-- > 0; sum /= 8)
      header[kSumAt + digit] = static_cast<std::uint8_t>('0' + sum % 8);
    header[kSumAt + 6] = 0;
  }
  return out;
}

// A file in memory, with a path.
std::string in_memory(Input content) {
  static const int fd = ::memfd_create("fuzz", 0);
  require(::ftruncate(fd, 0) == 0, "a file in memory can be emptied");
  require(::pwrite(fd, content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()),
          "a file in memory can be written");
  return "/proc/self/fd/" + std::to_string(fd);
}

template <class Read>
void read_or_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    require(error.code() == Code::kInvalidArgument, std::string("refused: ") + error.what());
  }
}

void check(Input content) {
  const File archive = File::open(in_memory(content));
  read_or_refuse([&] {
    TarWalk walk(archive);
    std::uint64_t end = 0;
    while (const std::optional<TarMember> member = walk.next()) {
      require(member->offset >= end + kBlock, "members follow one another");
      require(member->size <= archive.size() - member->offset, "members lie within the archive");
      end = member->offset + member->size;
    }
  });
  read_or_refuse([&] {
    const TarIndex index = index_tar(archive);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < index.samples.size(); ++i) {
      const TarSample& sample = index.samples[i];
      require(sample.offset >= end + kBlock, "samples follow one another");
      require(sample.size <= archive.size() - sample.offset, "samples lie within the archive");
      require(!index.name(i).empty(), "samples have names");
      end = sample.offset + sample.size;
    }
  });
}

}  // namespace

FUZZ_TARGET(tar) {
  check(input);
  const std::vector<std::uint8_t> repaired = with_checksums(input);
  if (!std::ranges::equal(repaired, input)) check(repaired);
}

}  // namespace cutwater::fuzz
