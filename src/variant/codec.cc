// SPDX-License-Identifier: Apache-2.0
// Codecs by name, over lz4's and zstd's frames.
#include <lz4frame.h>
#include <zstd.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "cutwater/error.h"
#include "cutwater/variant.h"
#include "variant/filters.h"

namespace cutwater {
namespace {

constexpr int kDefaultLevel = 3, kLastLevel = 19;
constexpr std::size_t kMostKept = std::size_t{64} << 20;

[[noreturn]] void damaged(const std::string& why) {
  throw Error(Code::kBadSample, "the compressed bytes are damaged: " + why);
}

using Lz4Context = std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)>;

Lz4Context lz4_context() {
  LZ4F_dctx* made = nullptr;
  (void)LZ4F_createDecompressionContext(&made, LZ4F_VERSION);
  return {made, LZ4F_freeDecompressionContext};
}

// One per thread: making them costs more than a small sample.
struct Contexts {
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> pack{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> unpack{ZSTD_createDCtx(), ZSTD_freeDCtx};
  // One for frames as a whole, one for a look at their heads: lz4 1.9.4 takes what is left of a
  // frame that did not end for a part of the next.
  Lz4Context unpack_lz4 = lz4_context(), look_lz4 = lz4_context();
  std::vector<std::uint8_t> filtered;

  Contexts() {
    if (!pack || !unpack || !unpack_lz4 || !look_lz4) throw std::bad_alloc();
  }
};

Contexts& contexts() {
  thread_local Contexts of_this_thread;
  return of_this_thread;
}

void pack_zstd(int level, std::span<const std::uint8_t> bytes, std::vector<std::uint8_t>& out) {
  out.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compressCCtx(contexts().pack.get(), out.data(), out.size(),
                                             bytes.data(), bytes.size(), level);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // the bound holds: only memory can lack
  out.resize(size);
}

void unpack_zstd(std::span<const std::uint8_t> packed, std::span<std::uint8_t> into) {
  const std::size_t size = ZSTD_decompressDCtx(contexts().unpack.get(), into.data(), into.size(),
                                               packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) damaged(std::string("zstd says ") + ZSTD_getErrorName(size));
  if (size != into.size())
    damaged("they stand for " + std::to_string(size) + " bytes, not for " +
            std::to_string(into.size()));
}

void pack_lz4(std::span<const std::uint8_t> bytes, std::vector<std::uint8_t>& out) {
  LZ4F_preferences_t how{};
  how.frameInfo.blockSizeID = LZ4F_max4MB;
  how.frameInfo.contentSize = bytes.size();
  out.resize(LZ4F_compressFrameBound(bytes.size(), &how));
  const std::size_t size =
      LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), &how);
  if (LZ4F_isError(size) != 0) throw std::bad_alloc();
  out.resize(size);
}

void unpack_lz4(std::span<const std::uint8_t> packed, std::span<std::uint8_t> into) {
  Contexts& mine = contexts();
  if (!mine.unpack_lz4) mine.unpack_lz4 = lz4_context();
  if (!mine.unpack_lz4) throw std::bad_alloc();
  Lz4Context taken =
      std::exchange(mine.unpack_lz4, Lz4Context(nullptr, LZ4F_freeDecompressionContext));
  LZ4F_dctx* const context = taken.get();
  LZ4F_decompressOptions_t how{};
  how.stableDst = 1;
  std::size_t expected = 1, written = 0, read = 0;
  while (expected != 0) {
    std::size_t room = into.size() - written, rest = packed.size() - read;
    expected =
        LZ4F_decompress(context, into.data() + written, &room, packed.data() + read, &rest, &how);
    if (LZ4F_isError(expected) != 0)
      damaged(std::string("lz4 says ") + LZ4F_getErrorName(expected));
    written += room;
    read += rest;
    if (room == 0 && rest == 0) break;  // it wants more than there is
  }
  if (expected != 0 || written != into.size() || read != packed.size())
    damaged("they do not stand for exactly " + std::to_string(into.size()) + " bytes");
  mine.unpack_lz4 = std::move(taken);  // it has come to a frame's end and is as new
}

// Room for filtered bytes, kept for the next tensor of this thread unless it is very large.
class FilterRoom {
 public:
  explicit FilterRoom(std::size_t bytes) { contexts().filtered.resize(bytes); }
  ~FilterRoom() {
    std::vector<std::uint8_t>& kept = contexts().filtered;
    if (kept.capacity() > kMostKept) std::vector<std::uint8_t>().swap(kept);
  }
  FilterRoom(const FilterRoom&) = delete;
  FilterRoom& operator=(const FilterRoom&) = delete;

  std::span<std::uint8_t> span() const { return contexts().filtered; }
};

// What the frame's header says; nothing where it says nothing.
std::optional<std::uint64_t> stated_by_zstd(std::span<const std::uint8_t> frame) {
  const unsigned long long size = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) return std::nullopt;
  return size;
}

std::optional<std::uint64_t> stated_by_lz4(std::span<const std::uint8_t> frame) {
  LZ4F_dctx* const context = contexts().look_lz4.get();
  LZ4F_resetDecompressionContext(context);
  LZ4F_frameInfo_t info{};
  std::size_t read = frame.size();
  const std::size_t result = LZ4F_getFrameInfo(context, &info, frame.data(), &read);
  if (LZ4F_isError(result) != 0) return std::nullopt;
  return info.contentSize;
}

[[noreturn]] void refuse(std::string_view name) {
  throw Error(Code::kInvalidArgument,
              "codec '" + std::string(name) +
                  "' is not known; there are none, lz4, zstd:1 to zstd:19, shuffle-zstd:1 to "
                  "shuffle-zstd:19 (for floats) and delta-zstd:1 to delta-zstd:19 (for uint8)");
}

}  // namespace

Codec codec_named(std::string_view name) {
  if (name == "none") return {};
  if (name == "lz4") return {Filter::kNone, Compressor::kLz4, 0};
  Codec codec{Filter::kNone, Compressor::kZstd, kDefaultLevel};
  std::string_view rest = name;
  const auto takes = [&rest](std::string_view prefix) {
    const bool has = rest.starts_with(prefix);
    if (has) rest.remove_prefix(prefix.size());
    return has;
  };
  if (takes("shuffle-"))
    codec.filter = Filter::kShuffle;
  else if (takes("delta-"))
    codec.filter = Filter::kDelta;
  if (!takes("zstd")) refuse(name);
  if (rest.empty()) return codec;
  if (!takes(":")) refuse(name);
  const char* const end = rest.data() + rest.size();
  const auto [stop, error] = std::from_chars(rest.data(), end, codec.level);
  if (error != std::errc() || stop != end || codec.level < 1 || codec.level > kLastLevel)
    refuse(name);
  return codec;
}

std::string to_string(const Codec& codec) {
  if (codec.compressor == Compressor::kNone) return "none";
  if (codec.compressor == Compressor::kLz4) return "lz4";
  const char* const filter = codec.filter == Filter::kShuffle ? "shuffle-"
                             : codec.filter == Filter::kDelta ? "delta-"
                                                              : "";
  return std::string(filter) + "zstd:" + std::to_string(codec.level);
}

std::vector<Codec> codecs_for(const TensorSpec& spec) {
  std::vector<Codec> codecs = {{},
                               {Filter::kNone, Compressor::kLz4, 0},
                               {Filter::kNone, Compressor::kZstd, 1},
                               {Filter::kNone, Compressor::kZstd, 3}};
  if (size_of(spec.dtype) > 1)
    codecs.push_back({Filter::kShuffle, Compressor::kZstd, 1});
  else if (spec.shape.rank() > 1 && spec.layout != Layout::kPacked)
    codecs.push_back({Filter::kDelta, Compressor::kZstd, 1});
  return codecs;
}

void encode(const Codec& codec, const TensorSpec& spec, std::span<const std::uint8_t> bytes,
            std::vector<std::uint8_t>& out) {
  std::optional<FilterRoom> filtered;
  if (codec.filter != Filter::kNone) {
    filtered.emplace(bytes.size());
    apply_filter(codec.filter, spec, bytes, filtered->span());
    bytes = filtered->span();
  }
  switch (codec.compressor) {
    case Compressor::kNone: out.assign(bytes.begin(), bytes.end()); return;
    case Compressor::kLz4: pack_lz4(bytes, out); return;
    case Compressor::kZstd: pack_zstd(codec.level, bytes, out); return;
  }
}

void check_frame(const Codec& codec, std::span<const std::uint8_t> encoded, std::uint64_t bytes) {
  if (codec.is_none()) return;
  const std::optional<std::uint64_t> stated =
      codec.compressor == Compressor::kLz4 ? stated_by_lz4(encoded) : stated_by_zstd(encoded);
  if (!stated) damaged("they do not begin as a frame that says how many bytes it stands for");
  if (*stated != bytes)
    damaged("they stand for " + std::to_string(*stated) + " bytes, not for " +
            std::to_string(bytes));
}

void decode(const Codec& codec, const TensorSpec& spec, std::span<const std::uint8_t> encoded,
            std::span<std::uint8_t> into) {
  std::span<std::uint8_t> unpacked = into;
  std::optional<FilterRoom> filtered;
  if (codec.filter != Filter::kNone) unpacked = filtered.emplace(into.size()).span();
  switch (codec.compressor) {
    case Compressor::kNone:
      if (encoded.size() != unpacked.size())
        damaged(std::to_string(encoded.size()) + " bytes where " + std::to_string(into.size()) +
                " were expected");
      if (!encoded.empty()) std::memcpy(unpacked.data(), encoded.data(), encoded.size());
      break;
    case Compressor::kLz4: unpack_lz4(encoded, unpacked); break;
    case Compressor::kZstd: unpack_zstd(encoded, unpacked); break;
  }
  if (codec.filter != Filter::kNone) undo_filter(codec.filter, spec, unpacked, into);
}

}  // namespace cutwater
