// SPDX-License-Identifier: Apache-2.0
#include "variant/filters.h"

#include <algorithm>
#include <cstring>

namespace cutwater {
namespace {

// Bytes between an element and the one that it resembles most: the one a row above, as far as the
// layout tells; else the one before.
std::size_t row_bytes(const TensorSpec& spec) {
  const Shape& shape = spec.shape;
  const std::size_t element = size_of(spec.dtype);
  if (spec.layout == Layout::kPacked || shape.rank() < 2) return element;
  std::int64_t elements = shape.from_end(1);
  if (spec.layout == Layout::kPixels) elements *= shape.from_end(2);
  if (spec.layout == Layout::kPlanesLast) elements *= shape.from_end(3);
  return std::max<std::size_t>(static_cast<std::size_t>(elements) * element, 1);
}

void subtract_rows(std::size_t distance, std::span<const std::uint8_t> bytes,
                   std::span<std::uint8_t> out) {
  const std::size_t first = std::min(distance, bytes.size());
  std::copy_n(bytes.begin(), first, out.begin());
  for (std::size_t i = first; i < bytes.size(); ++i)
    out[i] = static_cast<std::uint8_t>(bytes[i] - bytes[i - distance]);
}

// Row by row: within a row nothing depends on what was just written, so the compiler may vectorize.
void add_rows(std::size_t distance, std::span<const std::uint8_t> filtered,
              std::span<std::uint8_t> out) {
  const std::size_t first = std::min(distance, filtered.size());
  std::copy_n(filtered.begin(), first, out.begin());
  for (std::size_t row = first; row < filtered.size(); row += distance) {
    const std::size_t count = std::min(distance, filtered.size() - row);
    const std::uint8_t* __restrict above = out.data() + row - distance;
    const std::uint8_t* __restrict difference = filtered.data() + row;
    std::uint8_t* __restrict now = out.data() + row;
    for (std::size_t i = 0; i < count; ++i)
      now[i] = static_cast<std::uint8_t>(difference[i] + above[i]);
  }
}

template <std::size_t kSize>
void gather(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out) {
  const std::size_t count = bytes.size() / kSize;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < kSize; ++k) out[k * count + i] = bytes[i * kSize + k];
}

template <std::size_t kSize>
void scatter(std::span<const std::uint8_t> filtered, std::span<std::uint8_t> out) {
  const std::size_t count = filtered.size() / kSize;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < kSize; ++k) out[i * kSize + k] = filtered[k * count + i];
}

void copy(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out) {
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
}

}  // namespace

void apply_filter(Filter filter, const TensorSpec& spec, std::span<const std::uint8_t> bytes,
                  std::span<std::uint8_t> out) {
  if (filter == Filter::kDelta) return subtract_rows(row_bytes(spec), bytes, out);
  if (filter == Filter::kShuffle) switch (size_of(spec.dtype)) {
      case 2: return gather<2>(bytes, out);
      case 4: return gather<4>(bytes, out);
      case 8: return gather<8>(bytes, out);
      default: break;  // bytes of one-byte elements stand together already
    }
  copy(bytes, out);
}

void undo_filter(Filter filter, const TensorSpec& spec, std::span<const std::uint8_t> filtered,
                 std::span<std::uint8_t> out) {
  if (filter == Filter::kDelta) return add_rows(row_bytes(spec), filtered, out);
  if (filter == Filter::kShuffle) switch (size_of(spec.dtype)) {
      case 2: return scatter<2>(filtered, out);
      case 4: return scatter<4>(filtered, out);
      case 8: return scatter<8>(filtered, out);
      default: break;
    }
  copy(filtered, out);
}

}  // namespace cutwater
