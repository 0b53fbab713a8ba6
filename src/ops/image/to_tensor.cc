// SPDX-License-Identifier: Apache-2.0
// to_tensor: uint8 rows x columns x channels to float32 channels x rows x columns in 0..1, as
// torchvision.transforms.ToTensor. A stack of images (five_crop) stays a stack.
#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"

namespace cutwater::image {

std::unique_ptr<RowWriter> write_floats(const PixelValues& values, const TensorSpan& out) {
  auto* const to = reinterpret_cast<float*>(out.bytes());
  const std::int64_t channels = out.dim(0), height = out.dim(1), width = out.dim(2);
  if (out.spec().layout == Layout::kPlanesLast)
    return std::make_unique<FloatPixelsWriter>(values, channels, width, to);
  return std::make_unique<FloatPlanesWriter>(values, channels, height, width, to);
}

TensorSpec ToTensor::out_spec(const TensorView& in) const {
  const Shape& shape = in.spec().shape;
  TensorSpec one = in.spec();  // of a stack of images
  if (shape.rank() == 4 && one.layout == Layout::kPixels)
    one.shape = {shape[1], shape[2], shape[3]};
  require_image("to_tensor", one);
  require_extents(in.spec());
  const std::int64_t height = shape.from_end(3), width = shape.from_end(2),
                     channels = shape.from_end(1);
  const Layout layout = channels_last ? Layout::kPlanesLast : Layout::kPlanes;
  if (shape.rank() == 3) return {DType::kF32, {channels, height, width}, layout};
  return {DType::kF32, {shape[0], channels, height, width}, layout};
}

void ToTensor::apply(const TensorView& in, const TensorSpan& out) const {
  const Shape &from = in.spec().shape, &to = out.spec().shape;
  const TensorSpec image = image_spec(from.from_end(3), from.from_end(2), from.from_end(1));
  const TensorSpec floats{
      DType::kF32, {to.from_end(3), to.from_end(2), to.from_end(1)}, out.spec().layout};
  const std::int64_t images = from.rank() == 4 ? from[0] : 1;
  for (std::int64_t i = 0; i < images; ++i) {
    const TensorView one(image, in.bytes() + i * static_cast<std::int64_t>(image.bytes()));
    const TensorSpan made(floats, out.bytes() + i * static_cast<std::int64_t>(floats.bytes()));
    PixelReader reader(one, whole(image));
    const auto writer = write_floats({}, made);
    for (std::int64_t y = 0; y < image.shape[0]; ++y) writer->put(reader.next());
  }
}

constinit const OpDef kToTensor = define_op<ToTensor>(
    image_op("to_tensor", "Make float32 in 0..1, channels first, of a uint8 image."));

}  // namespace cutwater::image
