// SPDX-License-Identifier: Apache-2.0
// The members of a tar archive (ustar, GNU, pax), one after another. Trusts nothing it reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "source/read_file.h"

namespace cutwater {

struct TarMember {
  std::string name;
  std::uint64_t offset = 0;  // of its data; offset + size lies within the archive
  std::uint64_t size = 0;
};

class TarWalk {
 public:
  // REQUIRES: the archive outlives the walk. Throws Error(kInvalidArgument) if it is compressed.
  explicit TarWalk(const File& archive);

  // The next regular file; folders, links, devices and unknown kinds are passed over. None at the
  // end mark. Throws Error(kInvalidArgument) at the first byte that is not as it must be; kIo.
  std::optional<TarMember> next();

 private:
  static constexpr std::size_t kBlock = 512;
  using Block = std::array<std::uint8_t, kBlock>;

  // What extended headers say about the member that follows them.
  struct Overrides {
    std::optional<std::string> name;
    std::optional<std::uint64_t> size;
  };

  Block read_header() const;
  bool checksum_holds(const Block& header) const;
  std::uint64_t number(const Block& header, std::size_t begin, std::size_t length,
                       const char* what) const;
  std::string read_extension(std::uint64_t offset, std::uint64_t size) const;
  void read_pax(const std::string& records, Overrides& overrides) const;
  [[noreturn]] void refuse(const std::string& reason) const;

  const File& archive_;
  std::uint64_t at_ = 0;  // of the header being read
};

}  // namespace cutwater
