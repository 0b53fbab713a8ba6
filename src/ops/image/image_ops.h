// SPDX-License-Identifier: Apache-2.0
// The image domain: its ops, its fusions, and what the op files share.
//
// An image is uint8 pixels (rows x columns x channels) until to_tensor makes it float32 planes
// (channels first).
#pragma once

#include <array>
#include <string_view>

#include "cutwater/op.h"

namespace cutwater::image {

extern const OpDef kDecode, kEntropy, kReconstruct, kResize, kCenterCrop, kFiveCrop, kRandomCrop,
    kRandomResizedCrop, kRandomHorizontalFlip, kRandomVerticalFlip, kPad, kGrayscale, kToTensor,
    kNormalize, kToDtype;

inline constexpr std::array<const OpDef*, 15> kOps = {&kDecode,
                                                      &kEntropy,
                                                      &kReconstruct,
                                                      &kResize,
                                                      &kCenterCrop,
                                                      &kFiveCrop,
                                                      &kRandomCrop,
                                                      &kRandomResizedCrop,
                                                      &kRandomHorizontalFlip,
                                                      &kRandomVerticalFlip,
                                                      &kPad,
                                                      &kGrayscale,
                                                      &kToTensor,
                                                      &kNormalize,
                                                      &kToDtype};

extern const std::array<Fusion, 1> kFusions;

// The text of an image op's table entry.
constexpr OpText image_op(std::string_view name, std::string_view doc) {
  return {name, doc, "image", kImageField};
}

// Throws Error: kInvalidArgument unless the spec is that of an image, kBadSample as below.
void require_image(std::string_view op, const TensorSpec& spec);
// Throws Error(kBadSample) where a side, or any other dimension, is known and cannot be that of an
// image. Samples that come from a store or a cache are what others say that they are.
void require_extents(const TensorSpec& spec);

// Whether it is what to_tensor makes of an image, or of several.
bool is_planes(const TensorSpec& spec);
// Rows and columns of an image or of planes.
struct Extent {
  std::int64_t rows, columns;
};
Extent extent_of(const TensorSpec& spec);

// The spec of an image.
TensorSpec image_spec(std::int64_t height, std::int64_t width, std::int64_t channels);

// The same image, or planes, with other extents.
TensorSpec resized(const TensorSpec& spec, std::int64_t height, std::int64_t width);

// Throws Error(kInvalidArgument) unless both sides are in 1..65536.
void require_positive(std::string_view op, const Size& size);

}  // namespace cutwater::image
