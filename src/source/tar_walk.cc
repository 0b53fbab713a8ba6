// SPDX-License-Identifier: Apache-2.0
#include "source/tar_walk.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace cutwater {
namespace {

// Far beyond any real name or set of pax records, and small enough to hold in memory.
constexpr std::uint64_t kMaxExtensionBytes = 1 << 20;

constexpr std::size_t kSizeAt = 124, kSizeLength = 12;
constexpr std::size_t kChecksumAt = 148, kChecksumLength = 8;
constexpr std::size_t kTypeAt = 156;

// The text of a header field, which ends at its first zero byte or with the field.
std::string_view text_of(const std::uint8_t* header, std::size_t begin, std::size_t length) {
  const std::string_view field(reinterpret_cast<const char*>(header) + begin, length);
  return field.substr(0, field.find('\0'));
}

std::string name_of_header(const std::uint8_t* header) {
  std::string name(text_of(header, 0, 100));
  // GNU's older format has other things where ustar has the first part of a long name.
  const std::string_view magic(reinterpret_cast<const char*>(header) + 257, 6);
  const std::string_view prefix = text_of(header, 345, 155);
  if (magic != std::string_view("ustar\0", 6) || prefix.empty()) return name;
  return std::string(prefix) + "/" + name;
}

// Links, devices, folders and pipes have no data, whatever their size field says.
bool has_data(char type) { return type < '1' || type > '6'; }

bool is_regular(char type, const std::string& name) {
  if (type == '\0') return !name.ends_with('/');  // how the oldest archives mark folders
  return type == '0' || type == '7';
}

std::string_view compressor_of(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return "gzip";
  if (start.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (start.starts_with("\xfd"
                        "7zXZ"))
    return "xz";
  if (start.starts_with("BZh")) return "bzip2";
  if (start.starts_with("\x04\x22\x4d\x18")) return "lz4";
  return {};
}

}  // namespace

TarWalk::TarWalk(const File& archive) : archive_(archive) {
  Block block{};
  const std::size_t size = std::min<std::uint64_t>(archive_.size(), kBlock);
  archive_.read(0, {block.data(), size});
  const std::string_view compressor =
      compressor_of({reinterpret_cast<const char*>(block.data()), size});
  if (!compressor.empty()) {
    throw path_error(Code::kInvalidArgument, archive_.path(),
                     "is compressed with " + std::string(compressor) +
                         ", and samples are read in place; decompress it first (" +
                         std::string(compressor) + " -d), images gain nothing from it");
  }
}

std::optional<TarMember> TarWalk::next() {
  Overrides overrides;
  while (true) {
    const Block header = read_header();
    if (std::all_of(header.begin(), header.end(), [](std::uint8_t byte) { return byte == 0; })) {
      return std::nullopt;
    }
    if (!checksum_holds(header)) {
      refuse(at_ == 0 ? "the checksum is wrong; this is not a tar archive"
                      : "the checksum is wrong; the archive is damaged");
    }
    const char type = static_cast<char>(header[kTypeAt]);
    const bool extension = type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g';
    std::uint64_t size = number(header, kSizeAt, kSizeLength, "size");
    if (!extension && overrides.size) size = *overrides.size;
    if (!has_data(type)) size = 0;

    const std::uint64_t data = at_ + kBlock;
    const std::uint64_t room = archive_.size() - data;
    if (size > room || (size + kBlock - 1) / kBlock * kBlock > room) {
      refuse("a member of " + std::to_string(size) + " bytes runs past the end of the archive (" +
             std::to_string(archive_.size()) + " bytes); it was cut short or is damaged");
    }
    if (type == 'S') refuse("sparse members are not supported; write the archive without --sparse");
    if (type == 'L') {
      overrides.name = read_extension(data, size);
      overrides.name->resize(std::min(overrides.name->size(), overrides.name->find('\0')));
    } else if (type == 'x' || type == 'X') {
      read_pax(read_extension(data, size), overrides);
    }
    at_ = data + (size + kBlock - 1) / kBlock * kBlock;
    if (extension) continue;

    std::string name = overrides.name ? std::move(*overrides.name) : name_of_header(header.data());
    overrides = {};
    if (is_regular(type, name)) return TarMember{std::move(name), data, size};
  }
}

TarWalk::Block TarWalk::read_header() const {
  if (at_ == archive_.size()) {
    refuse(
        "the end mark of a tar archive is missing; it was cut short or not closed by its writer");
  }
  if (archive_.size() - at_ < kBlock) refuse("the archive ends within a header; it was cut short");
  Block header;
  archive_.read(at_, header);
  return header;
}

bool TarWalk::checksum_holds(const Block& header) const {
  const std::uint64_t stored = number(header, kChecksumAt, kChecksumLength, "checksum");
  // The field itself counts as spaces. Some old writers summed signed bytes.
  std::uint64_t unsigned_sum = kChecksumLength * ' ';
  std::int64_t signed_sum = kChecksumLength * ' ';
  for (std::size_t i = 0; i < kBlock; ++i) {
    if (i >= kChecksumAt && i < kChecksumAt + kChecksumLength) continue;
    unsigned_sum += header[i];
    signed_sum += static_cast<std::int8_t>(header[i]);
  }
  return stored == unsigned_sum || static_cast<std::int64_t>(stored) == signed_sum;
}

// Octal digits, or (GNU) a binary number after a byte with the highest bit set.
std::uint64_t TarWalk::number(const Block& header, std::size_t begin, std::size_t length,
                              const char* what) const {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;  // no file is larger
  const std::string too_large = std::string("the ") + what + " field holds an impossible number";
  const std::uint8_t first = header[begin];
  std::uint64_t value = 0;
  if ((first & 0x80) != 0) {
    if ((first & 0x40) != 0) refuse(std::string("the ") + what + " is negative");
    value = first & 0x3f;
    for (std::size_t i = begin + 1; i < begin + length; ++i) {
      if (value >= kMax >> 8) refuse(too_large);
      value = value << 8 | header[i];
    }
    return value;
  }
  std::string_view text = text_of(header.data(), begin, length);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  while (text.ends_with(' ')) text.remove_suffix(1);
  for (const char digit : text) {
    if (digit == '-') refuse(std::string("the ") + what + " is negative");
    if (digit < '0' || digit > '7') {
      refuse(std::string("the ") + what + " field is not a number; " +
             (at_ == 0 ? "this is not a tar archive" : "the archive is damaged"));
    }
    value = value << 3 | static_cast<std::uint64_t>(digit - '0');
  }
  return value;
}

std::string TarWalk::read_extension(std::uint64_t offset, std::uint64_t size) const {
  if (size > kMaxExtensionBytes) {
    refuse("a long name or extended header of " + std::to_string(size) + " bytes; up to " +
           std::to_string(kMaxExtensionBytes) + " are accepted");
  }
  std::string text(static_cast<std::size_t>(size), '\0');
  archive_.read(offset, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return text;
}

// Records "LENGTH KEY=VALUE\n", where LENGTH counts the whole record.
void TarWalk::read_pax(const std::string& records, Overrides& overrides) const {
  std::string_view rest = records;
  while (!rest.empty() && rest.front() != '\0') {
    std::size_t length = 0;
    const auto [digits_end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), length);
    const auto digits = static_cast<std::size_t>(digits_end - rest.data());
    if (error != std::errc() || length > rest.size() || length < digits + 2 ||
        rest[digits] != ' ' || rest[length - 1] != '\n') {
      refuse("a pax record is malformed; the archive is damaged");
    }
    const std::string_view record = rest.substr(digits + 1, length - digits - 2);
    rest.remove_prefix(length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) refuse("a pax record has no '='; the archive is damaged");
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") {
      overrides.name = value;
    } else if (key == "size") {
      std::int64_t size = 0;
      const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (bad != std::errc() || end != value.data() + value.size()) {
        refuse("the pax size '" + std::string(value.substr(0, 40)) + "' is not a number");
      }
      if (size < 0) refuse("the pax size is negative");
      overrides.size = static_cast<std::uint64_t>(size);
    } else if (key.starts_with("GNU.sparse.")) {
      refuse("sparse members are not supported; write the archive without --sparse");
    }
  }
}

void TarWalk::refuse(const std::string& reason) const {
  throw path_error(Code::kInvalidArgument, archive_.path(),
                   "tar header at byte " + std::to_string(at_) + ": " + reason);
}

}  // namespace cutwater
