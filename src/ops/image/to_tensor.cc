// SPDX-License-Identifier: Apache-2.0
// to_tensor: uint8 rows x columns x channels to float32 channels x rows x columns in 0..1, as
// torchvision.transforms.ToTensor. A stack of images (five_crop) stays a stack.
#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"
#include "ops/image/resample.h"

namespace cutwater::image {

void write_planes(const TensorView& in, const PixelValues& values, bool mirrored,
                  const TensorSpan& out) {
  const Region all = whole(in.spec());
  PixelReader reader(in, all);
  FloatPlanesWriter writer(values, in.dim(2), all.height, all.width,
                           reinterpret_cast<float*>(out.bytes()));
  resample_rows({all, all.height, all.width, {}, all, mirrored}, in.dim(2), reader, writer);
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
  const PixelValues unit;
  if (in.spec().shape.rank() == 3) return write_planes(in, unit, false, out);

  const TensorSpec image = image_spec(in.dim(1), in.dim(2), in.dim(3));
  const TensorSpec planes{DType::kF32, {in.dim(3), in.dim(1), in.dim(2)}, Layout::kPlanes};
  for (std::int64_t i = 0; i < in.dim(0); ++i)
    write_planes(TensorView(image, in.bytes() + i * static_cast<std::int64_t>(image.bytes())), unit,
                 false,
                 TensorSpan(planes, out.bytes() + i * static_cast<std::int64_t>(planes.bytes())));
}

constinit const OpDef kToTensor = define_op<ToTensor>(
    image_op("to_tensor", "Make float32 in 0..1, channels first, of a uint8 image."));

}  // namespace cutwater::image
