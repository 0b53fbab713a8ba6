// SPDX-License-Identifier: Apache-2.0
// Tensors: what the bytes of a field mean. A spec says type and shape; a view reads bytes that
// somebody else owns, a span writes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace cutwater {

// Values are part of file and wire formats: never renumber.
enum class DType : std::uint8_t {
  kU8 = 0,
  kI16 = 1,
  kI32 = 2,
  kI64 = 3,
  kF16 = 4,  // bits only; no arithmetic
  kF32 = 5,
  kF64 = 6,
};

std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);  // NumPy's names: "uint8", "float32"…
std::optional<DType> dtype_named(std::string_view name);

inline constexpr std::int64_t kUnknown = -1;  // a dimension that depends on the sample

class Shape {
 public:
  static constexpr std::size_t kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::int64_t operator[](std::size_t axis) const { return dims_[axis]; }
  std::int64_t& operator[](std::size_t axis) { return dims_[axis]; }
  std::int64_t from_end(std::size_t axis) const { return dims_[rank_ - axis]; }  // 1: the last
  void push_back(std::int64_t dim);
  bool known() const;  // no dimension is kUnknown
  std::int64_t elements() const;
  bool operator==(const Shape&) const = default;

  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

std::string to_string(const Shape& shape);  // "3x224x224", '?' for an unknown dimension

// What the last three dimensions mean, where that is more than numbers.
enum class Layout : std::uint8_t {
  kPlain,
  kPixels,      // rows, columns, channels
  kPlanes,      // channels, rows, columns
  kPlanesLast,  // channels, rows, columns; in memory the channels of a pixel stand together
  kPacked,      // shape[0] bytes that stand for a tensor of the other dimensions
};

struct TensorSpec {
  DType dtype = DType::kU8;
  Shape shape;
  Layout layout = Layout::kPlain;

  std::size_t bytes() const {
    if (layout == Layout::kPacked) return static_cast<std::size_t>(shape[0]);
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  Shape array_shape() const;  // of the elements as they lie in memory: packed bytes are a row
  bool operator==(const TensorSpec&) const = default;
};

std::string to_string(const TensorSpec& spec);  // "uint8 480x640x3 pixels"

// Bytes of a tensor that a file or a wire describes; nothing where there cannot be such a tensor:
// pixels or planes without elements, or more elements than can be counted, be one dimension 0 or
// not. What it accepts is safe to compute with.
std::optional<std::uint64_t> stated_bytes(const TensorSpec& spec);

// A rectangle of an image: rows [top, top + height), columns [left, left + width).
struct Region {
  std::int64_t top = 0, left = 0, height = 0, width = 0;

  bool contains(const Region& other) const {
    return other.top >= top && other.left >= left && other.top + other.height <= top + height &&
           other.left + other.width <= left + width;
  }
  bool operator==(const Region&) const = default;
};

// The whole of an image of this spec (rows, columns, channels); for any other rank, a Region that
// stands for "everything".
Region whole(const TensorSpec& spec);

// Bytes with a meaning, owned by somebody else. An image may be present in part: its spec is that
// of the whole image, its bytes are those of one region, and coordinates stay those of the whole,
// so an op does not care how much was left out around the part it needs.
template <class Byte>
class BasicTensorView {
 public:
  BasicTensorView() = default;
  // The whole tensor, without gaps. `data` may be null: then only the spec is known.
  BasicTensorView(const TensorSpec& spec, Byte* data)
      : spec_(spec), data_(data), present_(whole(spec)), row_bytes_(packed_row_bytes()) {}
  // One region of an image, rows `row_bytes` apart; `data` is the region's first pixel.
  BasicTensorView(const TensorSpec& spec, Byte* data, const Region& present, std::int64_t row_bytes)
      : spec_(spec), data_(data), present_(present), row_bytes_(row_bytes) {}

  // A span can be read.
  operator BasicTensorView<const std::uint8_t>() const {
    return {spec_, data_, present_, row_bytes_};
  }

  const TensorSpec& spec() const { return spec_; }
  std::int64_t dim(std::size_t axis) const { return spec_.shape[axis]; }
  bool has_data() const { return data_ != nullptr; }
  const Region& present() const { return present_; }
  std::int64_t row_bytes() const { return row_bytes_; }
  std::int64_t pixel_bytes() const {
    return spec_.shape[2] * static_cast<std::int64_t>(size_of(spec_.dtype));
  }

  // Pixel (y, x) of the whole image. REQUIRES: rank 3, and (y, x) present.
  Byte* pixel(std::int64_t y, std::int64_t x) const {
    return data_ + (y - present_.top) * row_bytes_ + (x - present_.left) * pixel_bytes();
  }
  // All elements in order. REQUIRES: the whole tensor is present, without gaps.
  Byte* bytes() const { return data_; }

 private:
  std::int64_t packed_row_bytes() const {
    return spec_.shape.rank() == 3 ? spec_.shape[1] * pixel_bytes() : 0;
  }

  TensorSpec spec_;
  Byte* data_ = nullptr;
  Region present_;
  std::int64_t row_bytes_ = 0;
};

using TensorView = BasicTensorView<const std::uint8_t>;
using TensorSpan = BasicTensorView<std::uint8_t>;

}  // namespace cutwater
