// SPDX-License-Identifier: Apache-2.0
#include "source/hint_book.h"

#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "core/xxh3.h"
#include "source/kept_file.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

constexpr std::string_view kMagic = "CWHINTS1";
constexpr std::size_t kOfBytes = 32, kDigestBytes = 8;
constexpr std::size_t kHeaderBytes = 8 + kOfBytes + 8 + 8;
constexpr std::size_t kEntryHead = 8 + 4;
// What an entry takes besides its bytes.
constexpr std::size_t kOverhead = sizeof(std::vector<std::uint8_t>) + 64;

static_assert(std::endian::native == std::endian::little, "the file is little-endian");

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
T get(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint64_t digest_of(std::string_view bytes) {
  return xxh3({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace

HintBook::HintBook(std::int64_t samples, std::size_t max_bytes)
    : samples_(samples), max_bytes_(max_bytes) {}

bool HintBook::knows(SampleId id) const {
  const Shard& one = shard(id);
  MutexLock lock(one.mutex);
  return one.entries.contains(id);
}

void HintBook::find(SampleId id, std::vector<std::uint8_t>& into) {
  into.clear();
  Shard& one = shard(id);
  MutexLock lock(one.mutex);
  const auto found = one.entries.find(id);
  if (found == one.entries.end()) return;
  into = found->second;
  uses_.fetch_add(1, std::memory_order_relaxed);
}

void HintBook::keep(SampleId id, const std::vector<std::uint8_t>& learned) {
  if (id < 0 || id >= samples_ || learned.empty()) return;
  Shard& one = shard(id);
  MutexLock lock(one.mutex);
  const auto found = one.entries.find(id);
  const std::size_t before = found == one.entries.end() ? 0 : found->second.size() + kOverhead;
  const std::size_t after = learned.size() + kOverhead;
  // Other shards have other locks: the room is taken in one step with the look whether it is there.
  std::size_t held = bytes_.load();
  do
    if (held - before + after > max_bytes_) return;
  while (!bytes_.compare_exchange_weak(held, held - before + after));
  if (before == 0) entries_.fetch_add(1);
  changes_.fetch_add(1);
  one.entries.insert_or_assign(id, learned);
}

std::string HintBook::encode(std::string_view of) const {
  std::string bytes(kMagic);
  bytes += of.substr(0, kOfBytes);
  bytes.resize(kMagic.size() + kOfBytes, '\0');
  put(bytes, static_cast<std::uint64_t>(samples_));
  const std::size_t count_at = bytes.size();
  put(bytes, std::uint64_t{0});
  std::uint64_t count = 0;
  for (std::size_t s = 0; s < kShards; ++s) {
    MutexLock lock(shards_[s].mutex);
    const std::map<SampleId, std::span<const std::uint8_t>> ordered(shards_[s].entries.begin(),
                                                                    shards_[s].entries.end());
    for (const auto& [id, entry] : ordered) {
      put(bytes, static_cast<std::uint64_t>(id));
      put(bytes, static_cast<std::uint32_t>(entry.size()));
      bytes.append(reinterpret_cast<const char*>(entry.data()), entry.size());
      ++count;
    }
  }
  std::memcpy(bytes.data() + count_at, &count, sizeof count);
  put(bytes, digest_of(bytes));
  return bytes;
}

bool HintBook::decode(std::string_view bytes, std::string_view of) {
  if (bytes.size() < kHeaderBytes + kDigestBytes || !bytes.starts_with(kMagic)) return false;
  const std::string_view body = bytes.substr(0, bytes.size() - kDigestBytes);
  std::string expected(of.substr(0, kOfBytes));
  expected.resize(kOfBytes, '\0');
  if (body.substr(kMagic.size(), kOfBytes) != expected ||
      get<std::uint64_t>(body, kMagic.size() + kOfBytes) != static_cast<std::uint64_t>(samples_) ||
      get<std::uint64_t>(bytes, body.size()) != digest_of(body))
    return false;
  // First all of it is looked at, then it is taken.
  for (const bool take : {false, true}) {
    std::uint64_t left = get<std::uint64_t>(body, kMagic.size() + kOfBytes + 8);
    std::size_t at = kHeaderBytes;
    for (; left > 0; --left) {
      if (body.size() - at < kEntryHead) return false;
      const auto id = get<std::uint64_t>(body, at);
      const std::size_t size = get<std::uint32_t>(body, at + 8);
      at += kEntryHead;
      if (id >= static_cast<std::uint64_t>(samples_) || size > body.size() - at) return false;
      const auto* entry = reinterpret_cast<const std::uint8_t*>(body.data()) + at;
      if (take) keep(static_cast<SampleId>(id), {entry, entry + size});
      at += size;
    }
    if (at != body.size()) return false;
  }
  return true;
}

KeptHints::KeptHints(HintBook& book, std::string of, const std::string& home,
                     const std::string& path)
    : book_(book), of_(std::move(of)) {
  if (path.empty()) {
    // Two data sets may share a folder.
    const std::string beside =
        home + (home.ends_with('/') ? "" : "/") + ".cutwater-" + of_.substr(0, 8) + ".hints";
    places_ = {beside, cached_path(beside, ".hints")};
  } else {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
      throw Error(Code::kInvalidArgument,
                  "index: cannot write '" + path + "': its folder does not exist or is read-only");
    places_ = {path};
  }
  const std::size_t most_bytes = kHeaderBytes + kDigestBytes + book_.max_bytes();
  for (const std::string& place : places_) {
    try {
      if (!place.empty() && book_.decode(File::open(place).text(most_bytes), of_)) break;
    } catch (const Error&) {  // there is none yet
    }
  }
  saved_changes_ = book_.changes();
}

void KeptHints::save() noexcept try {
  const std::int64_t changes = book_.changes();
  if (changes == saved_changes_) return;
  saved_changes_ = changes;  // also when no place will have it: the next epoch's try is no better
  const std::string bytes = book_.encode(of_);
  for (const std::string& place : places_) {
    if (place.empty()) continue;
    if (place != places_.front()) make_cache_folder(place);
    if (store_whole(place, bytes, 0644)) break;
  }
} catch (...) {  // no memory for a copy of the book
}

}  // namespace cutwater
