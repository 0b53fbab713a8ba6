// SPDX-License-Identifier: Apache-2.0
#include "store/layout.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "source/file_list.h"

namespace cutwater {
namespace {

std::string numbered(const char* format, std::int64_t number) {
  char text[64];
  std::snprintf(text, sizeof text, format, static_cast<long long>(number));
  return text;
}

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

void put_octal(std::uint8_t* at, std::size_t digits, std::uint64_t value) {
  for (std::size_t i = digits; i-- > 0; value /= 8)
    at[i] = static_cast<std::uint8_t>('0' + value % 8);
}

}  // namespace

std::string shard_name(std::int64_t shard) { return numbered("shard-%06lld.tar", shard); }
std::string part_name(std::int64_t shard) { return numbered("shard-%06lld.part", shard); }
std::string sample_key(SampleId id) { return numbered("%09lld", id); }

std::string member_suffix(std::string_view field, std::string_view extension, const Codec& codec) {
  std::string suffix(field);
  if (!field.empty()) suffix += '.';
  suffix += extension;
  if (codec.is_none()) return suffix;
  if (codec.filter == Filter::kShuffle) suffix += ".shuffle";
  if (codec.filter == Filter::kDelta) suffix += ".delta";
  return suffix + (codec.compressor == Compressor::kLz4 ? ".lz4" : ".zst");
}

std::string stored_extension(std::string_view path, std::span<const std::uint8_t> bytes) {
  const std::size_t dot = path.rfind('.');
  if (dot != std::string_view::npos && path.find('/', dot) == std::string_view::npos) {
    std::string extension = lower_case(std::string(path.substr(dot + 1)));
    const bool sane = !extension.empty() && extension.size() <= 8 &&
                      std::all_of(extension.begin(), extension.end(), is_plain);
    if (sane && extension != "cls") return extension;  // that is the label's
  }
  constexpr std::pair<std::string_view, std::string_view> kBegins[] = {{"\xff\xd8\xff", "jpg"},
                                                                       {"\x89PNG", "png"},
                                                                       {"GIF8", "gif"},
                                                                       {"RIFF", "webp"},
                                                                       {"BM", "bmp"}};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const auto& [begin, extension] : kBegins)
    if (text.starts_with(begin)) return std::string(extension);
  return "bin";
}

bool is_field_name(std::string_view name) {
  return !name.empty() && name.size() <= 48 && std::all_of(name.begin(), name.end(), [](char c) {
    return is_plain(c) || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

std::array<std::uint8_t, kTarBlock> tar_header(std::string_view name, std::uint64_t bytes) {
  constexpr std::size_t kMode = 100, kUid = 108, kGid = 116, kSize = 124, kTime = 136, kSum = 148,
                        kType = 156, kMagic = 257;
  std::array<std::uint8_t, kTarBlock> header{};
  std::memcpy(header.data(), name.data(), name.size());
  put_octal(&header[kMode], 7, 0644);
  put_octal(&header[kUid], 7, 0);
  put_octal(&header[kGid], 7, 0);
  put_octal(&header[kSize], 11, bytes);
  put_octal(&header[kTime], 11, 0);
  header[kType] = '0';
  std::memcpy(&header[kMagic],
              "ustar\0"
              "00",
              8);
  // The sum of all bytes, its own eight counted as spaces.
  std::uint64_t sum = 8 * ' ';
  for (const std::uint8_t byte : header) sum += byte;
  put_octal(&header[kSum], 6, sum);
  header[kSum + 7] = ' ';
  return header;
}

Shape npy_shape(const TensorSpec& spec) {
  Shape shape = spec.array_shape();
  if (spec.layout == Layout::kPlanesLast) {
    const std::size_t last = shape.rank() - 1;
    std::swap(shape[last - 2], shape[last - 1]);
    std::swap(shape[last - 1], shape[last]);
  }
  return shape;
}

}  // namespace cutwater
