// SPDX-License-Identifier: Apache-2.0
#include "cutwater/tensor.h"

#include <algorithm>

#include "cutwater/error.h"
#include "cutwater/param.h"

namespace cutwater {

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kU8: return 1;
    case DType::kI16:
    case DType::kF16: return 2;
    case DType::kI32:
    case DType::kF32: return 4;
    case DType::kI64:
    case DType::kF64: return 8;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  return EnumNames<DType>::kNames[static_cast<std::size_t>(dtype)];
}

std::optional<DType> dtype_named(std::string_view name) {
  const auto& names = EnumNames<DType>::kNames;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<DType>(found - names.begin());
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  for (const std::int64_t dim : dims) push_back(dim);
}

void Shape::push_back(std::int64_t dim) {
  if (rank_ == kMaxRank)
    throw Error(Code::kInvalidArgument,
                "a tensor has at most " + std::to_string(kMaxRank) + " dimensions");
  dims_[rank_++] = dim;
}

bool Shape::known() const {
  return std::none_of(begin(), end(), [](std::int64_t dim) { return dim == kUnknown; });
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : *this)
    if (__builtin_mul_overflow(product, dim, &product))
      throw Error(Code::kBadSample, "a tensor of " + to_string(*this) + " elements is too large");
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t dim : shape)
    text += (text.empty() ? "" : "x") + (dim == kUnknown ? std::string("?") : std::to_string(dim));
  return text.empty() ? "scalar" : text;
}

std::string to_string(const TensorSpec& spec) {
  std::string text = std::string(name_of(spec.dtype)) + " " + to_string(spec.shape);
  switch (spec.layout) {
    case Layout::kPlain: return text;
    case Layout::kPixels: return text + " pixels";
    case Layout::kPlanes: return text + " planes";
    case Layout::kPlanesLast: return text + " planes, channels last in memory";
    case Layout::kPacked: return text + " packed";
  }
  return text;
}

std::optional<std::uint64_t> stated_bytes(const TensorSpec& spec) {
  const Shape& shape = spec.shape;
  const bool packed = spec.layout == Layout::kPacked;
  const bool image = !packed && spec.layout != Layout::kPlain;
  if (shape.rank() < (packed ? 1 : image ? 3 : 0)) return std::nullopt;
  const std::int64_t least = image ? 1 : 0;
  if (std::any_of(shape.begin(), shape.end(), [=](std::int64_t dim) { return dim < least; }))
    return std::nullopt;
  // A dimension of 0 must not hide what the others would overflow.
  auto product = static_cast<std::int64_t>(size_of(spec.dtype));
  for (std::size_t axis = packed ? 1 : 0; axis < shape.rank(); ++axis)
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(shape[axis], 1), &product))
      return std::nullopt;
  return spec.bytes();
}

Shape TensorSpec::array_shape() const {
  return layout == Layout::kPacked ? Shape{shape[0]} : shape;
}

Region whole(const TensorSpec& spec) {
  if (spec.shape.rank() != 3) return {};
  return {0, 0, spec.shape[0], spec.shape[1]};
}

}  // namespace cutwater
