// SPDX-License-Identifier: Apache-2.0
// The index of a shard as a file, so that a shard is read through only once. FORMAT.md has the
// layout. Such a file may be stale, cut short, damaged or hostile: what does not hold in every
// respect is as good as absent.
#include <optional>
#include <utility>

#include "core/sha256.h"
#include "source/kept_file.h"
#include "source/tar_index.h"

namespace cutwater {
namespace {

constexpr std::string_view kMagic = "CWTARIDX";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kHasLabels = 1;  // the only flag
constexpr std::size_t kHeaderBytes = 48;
constexpr std::size_t kSampleBytes = 32;
constexpr std::size_t kDigestBytes = 64;
constexpr std::uint64_t kTarBlock = 512;

template <class T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xff);
  }
}

// REQUIRES: at + sizeof(T) <= bytes.size().
template <class T>
T get(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes[at + i])} << 8 * i;
  }
  return static_cast<T>(value);
}

std::string encode(const TarIndex& index, const File& shard) {
  std::string bytes;
  bytes.reserve(kHeaderBytes + index.samples.size() * kSampleBytes + index.names.size() +
                kDigestBytes);
  bytes += kMagic;
  put(bytes, kVersion);
  put(bytes, index.has_labels ? kHasLabels : 0u);
  put(bytes, shard.size());
  put(bytes, shard.mtime_ns());
  put(bytes, std::uint64_t{index.samples.size()});
  put(bytes, std::uint64_t{index.names.size()});
  for (const TarSample& sample : index.samples) {
    put(bytes, sample.offset);
    put(bytes, sample.size);
    put(bytes, sample.label);
    put(bytes, sample.name_end);
  }
  bytes += index.names;
  return bytes += sha256_hex(bytes);
}

std::optional<TarIndex> decode(std::string_view bytes, const File& shard) {
  if (bytes.size() < kHeaderBytes + kDigestBytes || !bytes.starts_with(kMagic)) return {};
  const std::string_view body = bytes.substr(0, bytes.size() - kDigestBytes);
  const auto flags = get<std::uint32_t>(body, 12);
  if (get<std::uint32_t>(body, 8) != kVersion || (flags & ~kHasLabels) != 0 ||
      get<std::uint64_t>(body, 16) != shard.size() ||
      get<std::int64_t>(body, 24) != shard.mtime_ns() ||
      sha256_hex(body) != bytes.substr(body.size())) {
    return {};
  }
  const auto count = get<std::uint64_t>(body, 32);
  const auto name_bytes = get<std::uint64_t>(body, 40);
  const std::size_t rest = body.size() - kHeaderBytes;
  if (count > rest / kSampleBytes || name_bytes != rest - count * kSampleBytes) return {};

  TarIndex index;
  index.has_labels = (flags & kHasLabels) != 0;
  index.names = body.substr(kHeaderBytes + count * kSampleBytes);
  index.samples.reserve(count);
  std::uint64_t data_end = 0;
  std::uint64_t name_end = 0;
  for (std::size_t at = kHeaderBytes; index.samples.size() < count; at += kSampleBytes) {
    const TarSample sample{get<std::uint64_t>(body, at), get<std::uint64_t>(body, at + 8),
                           get<std::int64_t>(body, at + 16), get<std::uint64_t>(body, at + 24)};
    // Data begins after a header, in order, within the shard; names follow one another.
    if (sample.offset % kTarBlock != 0 || sample.offset < data_end + kTarBlock ||
        sample.offset > shard.size() || sample.size > shard.size() - sample.offset ||
        sample.name_end <= name_end || sample.name_end > name_bytes ||
        (!index.has_labels && sample.label != 0)) {
      return {};
    }
    data_end = sample.offset + sample.size;
    name_end = sample.name_end;
    index.samples.push_back(sample);
  }
  if (name_end != name_bytes) return {};
  return index;
}

std::optional<TarIndex> load(const std::string& path, const File& shard) {
  try {
    // A sample takes at least a block of the shard and, with its name, less in the index.
    return decode(File::open(path).text(shard.size() + kHeaderBytes + kDigestBytes), shard);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

TarIndex kept_tar_index(const File& shard) {
  const std::string beside = shard.path() + ".cwindex";
  if (std::optional<TarIndex> index = load(beside, shard)) return std::move(*index);
  const std::string cached = cached_path(shard.path(), ".cwindex");
  if (!cached.empty()) {
    if (std::optional<TarIndex> index = load(cached, shard)) return std::move(*index);
  }

  TarIndex index = index_tar(shard);
  const std::string bytes = encode(index, shard);
  // Whoever may read the shard may read its index.
  const mode_t mode = (shard.permissions() & 0444u) | 0600u;
  if (!store_whole(beside, bytes, mode) && !cached.empty()) {
    make_cache_folder(cached);
    store_whole(cached, bytes, mode);  // without it the shard is read through again next time
  }
  return index;
}

}  // namespace cutwater
