// SPDX-License-Identifier: Apache-2.0
// normalize: (value - mean) / std per channel in float32, as torchvision.transforms.Normalize.
#include <cmath>

#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"

namespace cutwater::image {

void Normalize::check() const {
  const auto refuse = [](const std::string& why) {
    throw Error(Code::kInvalidArgument, "normalize: " + why);
  };
  for (const List* list : {&mean, &std}) {
    if (list->size() != 1 && list->size() != 3)
      refuse("mean and std must have 1 or 3 values, got " + to_text(Value{*list}));
    for (const double value : *list)
      if (!std::isfinite(value))
        refuse("mean and std must be finite, got " + to_text(Value{*list}));
  }
  for (const double value : std)
    if (static_cast<float>(value) == 0) refuse("std must not be 0, got " + to_text(Value{std}));
}

TensorSpec Normalize::out_spec(const TensorView& in) const {
  const Shape& shape = in.spec().shape;
  if (in.spec().dtype != DType::kF32 || !is_planes(in.spec()))
    throw Error(Code::kInvalidArgument, "normalize: needs float32 planes (channels first), got " +
                                            to_string(in.spec()) + "; put to_tensor before it");
  require_extents(in.spec());
  const std::int64_t channels = shape.from_end(3);
  for (const List* list : {&mean, &std})
    if (list->size() != 1 && channels != kUnknown &&
        static_cast<std::int64_t>(list->size()) != channels)
      throw Error(Code::kInvalidArgument,
                  "normalize: " + std::to_string(list->size()) + " values for an image of " +
                      std::to_string(channels) + " channels; give one value, or one per channel");
  return in.spec();
}

void Normalize::apply(const TensorView& in, const TensorSpan& out) const {
  const Shape& shape = in.spec().shape;
  const std::int64_t channels = shape.from_end(3), plane = shape.from_end(2) * shape.from_end(1);
  const std::int64_t planes = shape.elements() / plane;
  const auto* from = reinterpret_cast<const float*>(in.bytes());
  auto* to = reinterpret_cast<float*>(out.bytes());
  if (in.spec().layout == Layout::kPlanesLast) {
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      to[i] = (from[i] - mean_of(i % channels)) / std_of(i % channels);
    return;
  }
  for (std::int64_t p = 0; p < planes; ++p, from += plane, to += plane) {
    const float centre = mean_of(p % channels), spread = std_of(p % channels);
    for (std::int64_t i = 0; i < plane; ++i) to[i] = (from[i] - centre) / spread;
  }
}

constinit const OpDef kNormalize = define_op<Normalize>(
    image_op("normalize", "Subtract a mean and divide by a deviation, per channel."));

}  // namespace cutwater::image
