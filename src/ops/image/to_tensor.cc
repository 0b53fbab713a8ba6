// SPDX-License-Identifier: Apache-2.0
// to_tensor: uint8 rows x columns x channels to float32 channels x rows x columns in 0..1, as
// torchvision.transforms.ToTensor. A stack of images (five_crop) stays a stack.
#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"

namespace cutwater::image {

ValueTable unit_table() {
  ValueTable table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i) / 255.0F;
  return table;
}

ValueTable normalized_table(float mean, float std) {
  ValueTable table = unit_table();
  for (float& value : table) {
    // One rounding each, as torch's sub_ and div_.
    const float centred = value - mean;
    value = centred / std;
  }
  return table;
}

void look_up_planes(const TensorView& in, const ValueTable* tables, bool mirrored,
                    const TensorSpan& out) {
  const std::int64_t height = in.dim(0), width = in.dim(1), channels = in.dim(2);
  auto* plane = reinterpret_cast<float*>(out.bytes());
  for (std::int64_t c = 0; c < channels; ++c, plane += height * width)
    for (std::int64_t y = 0; y < height; ++y) {
      const std::uint8_t* from = in.pixel(y, mirrored ? width - 1 : 0) + c;
      const std::int64_t step = mirrored ? -channels : channels;
      float* to = plane + y * width;
      for (std::int64_t x = 0; x < width; ++x, from += step) to[x] = tables[c][*from];
    }
}

TensorSpec ToTensor::out_spec(const TensorView& in) const {
  const Shape& shape = in.spec().shape;
  if (shape.rank() != 4 || in.spec().dtype != DType::kU8 || in.spec().layout != Layout::kPixels)
    require_image("to_tensor", in.spec());
  const std::int64_t height = shape.from_end(3), width = shape.from_end(2),
                     channels = shape.from_end(1);
  if (shape.rank() == 3) return {DType::kF32, {channels, height, width}, Layout::kPlanes};
  return {DType::kF32, {shape[0], channels, height, width}, Layout::kPlanes};
}

void ToTensor::apply(const TensorView& in, const TensorSpan& out) const {
  static const ValueTable kUnit = unit_table();
  const ValueTable tables[] = {kUnit, kUnit, kUnit};
  if (in.spec().shape.rank() == 3) return look_up_planes(in, tables, false, out);

  const TensorSpec image = image_spec(in.dim(1), in.dim(2), in.dim(3));
  const TensorSpec planes{DType::kF32, {in.dim(3), in.dim(1), in.dim(2)}, Layout::kPlanes};
  for (std::int64_t i = 0; i < in.dim(0); ++i)
    look_up_planes(TensorView(image, in.bytes() + i * static_cast<std::int64_t>(image.bytes())),
                   tables, false,
                   TensorSpan(planes, out.bytes() + i * static_cast<std::int64_t>(planes.bytes())));
}

constinit const OpDef kToTensor = define_op<ToTensor>(
    image_op("to_tensor", "Make float32 in 0..1, channels first, of a uint8 image."));

}  // namespace cutwater::image
