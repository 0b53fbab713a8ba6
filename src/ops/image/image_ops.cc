// SPDX-License-Identifier: Apache-2.0
#include "ops/image/image_ops.h"

#include <algorithm>

namespace cutwater::image {

void require_extents(const TensorSpec& spec) {
  constexpr std::int64_t kMost = std::int64_t{1}
                                 << 31;  // products of a side and a parameter do not overflow
  const auto possible = [](std::int64_t dim) {
    return dim == kUnknown || (dim >= 1 && dim <= kMost);
  };
  if (!std::all_of(spec.shape.begin(), spec.shape.end(), possible))
    throw Error(Code::kBadSample,
                "there is no image of " + to_string(spec) + "; what it was read from is damaged");
}

void require_image(std::string_view op, const TensorSpec& spec) {
  const bool pixels =
      spec.dtype == DType::kU8 && spec.layout == Layout::kPixels && spec.shape.rank() == 3;
  if (pixels && (spec.shape[2] == 1 || spec.shape[2] == 3)) return require_extents(spec);
  if (pixels)
    throw Error(Code::kInvalidArgument,
                std::string(op) + ": needs an image of 1 or 3 channels, got " + to_string(spec));
  const bool bytes = spec.dtype == DType::kU8 && spec.shape.rank() == 1;
  throw Error(Code::kInvalidArgument,
              std::string(op) + ": needs an image (uint8 pixels, rows x columns x channels), got " +
                  to_string(spec) +
                  (bytes ? "; put decode before it" : "; put it before to_tensor and five_crop"));
}

TensorSpec image_spec(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {DType::kU8, {height, width, channels}, Layout::kPixels};
}

bool is_planes(const TensorSpec& spec) {
  return (spec.layout == Layout::kPlanes || spec.layout == Layout::kPlanesLast) &&
         spec.shape.rank() >= 3;
}

Extent extent_of(const TensorSpec& spec) {
  if (is_planes(spec)) return {spec.shape.from_end(2), spec.shape.from_end(1)};
  return {spec.shape[0], spec.shape[1]};
}

TensorSpec resized(const TensorSpec& spec, std::int64_t height, std::int64_t width) {
  if (is_planes(spec)) {
    TensorSpec planes = spec;
    planes.shape[spec.shape.rank() - 2] = height;
    planes.shape[spec.shape.rank() - 1] = width;
    return planes;
  }
  return image_spec(height, width, spec.shape[2]);
}

void require_positive(std::string_view op, const Size& size) {
  constexpr std::int64_t kMost = 65536;  // more than any JPEG
  const std::int64_t height = size.height, width = size.width_or_square();
  if (height < 1 || width < 1 || height > kMost || width > kMost)
    throw Error(Code::kInvalidArgument, std::string(op) + ": size must be in 1.." +
                                            std::to_string(kMost) + ", got " + to_string(size));
}

}  // namespace cutwater::image
