// SPDX-License-Identifier: Apache-2.0
#include "core/npy.h"

#include <charconv>
#include <cstring>

#include "cutwater/error.h"

namespace cutwater {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kAlign = 64, kLongest = 1 << 20, kMostDims = 32;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Code::kInvalidArgument, "not an .npy file: " + why);
}

// The text of a value in Python's dictionary, up to its end at this level of brackets.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::size_t at = dictionary.find("'" + std::string(key) + "':");
  if (at == std::string_view::npos) refuse("its header has no '" + std::string(key) + "'");
  std::string_view rest = dictionary.substr(at + key.size() + 3);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '[') ++depth;
    if (depth == 0 && (c == ',' || c == '}')) return rest.substr(0, i);
    if (c == ')' || c == ']') --depth;
  }
  refuse("its header ends early");
}

std::vector<std::int64_t> parse_shape(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) refuse("its shape is " + std::string(text));
  std::vector<std::int64_t> shape;
  const char* at = text.data() + 1;
  const char* const end = text.data() + text.size() - 1;
  while (at != end) {
    std::int64_t dim = -1;
    const auto [stop, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0 || shape.size() == kMostDims)
      refuse("its shape is " + std::string(text));
    shape.push_back(dim);
    at = stop;
    while (at != end && (*at == ',' || *at == ' ')) ++at;
  }
  return shape;
}

}  // namespace

std::string_view npy_type(DType dtype) {
  switch (dtype) {
    case DType::kU8: return "'|u1'";
    case DType::kI16: return "'<i2'";
    case DType::kI32: return "'<i4'";
    case DType::kI64: return "'<i8'";
    case DType::kF16: return "'<f2'";
    case DType::kF32: return "'<f4'";
    case DType::kF64: return "'<f8'";
  }
  return "";
}

std::string npy_header(std::string_view descr, std::span<const std::int64_t> shape) {
  std::string text = "{'descr': " + std::string(descr) + ", 'fortran_order': False, 'shape': (";
  for (const std::int64_t dim : shape)
    text += std::to_string(dim) + (shape.size() > 1 ? ", " : ",");
  if (shape.size() > 1) text.resize(text.size() - 2);
  text += "), }";
  const bool is_long = text.size() + kAlign > 0xFFFF;  // version 2 has a length of four bytes
  const std::size_t before = kMagic.size() + 2 + (is_long ? 4 : 2);
  text.append((kAlign - (before + text.size() + 1) % kAlign) % kAlign, ' ');
  text += '\n';
  std::string header(kMagic);
  header += is_long ? '\2' : '\1';
  header += '\0';
  for (int i = 0; i < (is_long ? 4 : 2); ++i)
    header += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return header + text;
}

NpyHeader parse_npy_header(std::span<const std::uint8_t> file) {
  const auto byte = [&](std::size_t at) { return static_cast<std::size_t>(file[at]); };
  if (file.size() < 12 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    refuse("it does not begin as one");
  const bool is_long = file[6] >= 2;
  if (file[6] < 1 || file[6] > 3) refuse("its version is " + std::to_string(file[6]));
  std::size_t length = byte(8) | byte(9) << 8, before = 10;
  if (is_long) {
    length |= byte(10) << 16 | byte(11) << 24;
    before = 12;
  }
  if (length > kLongest || length > file.size() - before) refuse("its header is cut short");
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + before, length);
  if (value_of(text, "fortran_order") != "False") refuse("it is not in C order");
  return {std::string(value_of(text, "descr")), parse_shape(value_of(text, "shape")),
          before + length};
}

}  // namespace cutwater
