// SPDX-License-Identifier: Apache-2.0
// resize: to a fixed size, or to a length of the shorter side, as torchvision.transforms.Resize on
// a Pillow image (antialiased, exact to the bit).
#include "ops/image/image_ops.h"
#include "ops/image/resample.h"
#include "ops/image/resizing_ops.h"

namespace cutwater::image {
namespace {

struct Resize {
  Size size;
  Interpolation interpolation = Interpolation::kBilinear;
  std::optional<std::int64_t> max_size;
  bool antialias = true;
  std::int64_t pillow = kNewestPillow;

  static constexpr std::tuple kParams{
      Param{"size", &Resize::size, "Height and width; one number: length of the shorter side.",
            Need::kRequired},
      Param{"interpolation", &Resize::interpolation,
            "nearest, bilinear, bicubic, box, hamming or lanczos."},
      Param{"max_size", &Resize::max_size, "With one number: the longer side is at most this."},
      Param{"antialias", &Resize::antialias, "Pillow always filters when it shrinks: only True."},
      Param{"pillow", &Resize::pillow, "Whose pixels: Pillow 13, or 12 and older."}};

  void check() const {
    require_positive("resize", size);
    require_pillow("resize", pillow);
    if (!antialias)
      throw Error(
          Code::kInvalidArgument,
          "resize: antialias=False has no exact counterpart (torchvision ignores it on Pillow "
          "images); use antialias=True, or interpolation=\"nearest\"");
    if (!max_size) return;
    if (*max_size > 65536)
      throw Error(Code::kInvalidArgument,
                  "resize: max_size must be at most 65536, got " + std::to_string(*max_size));
    if (size.width)
      throw Error(Code::kInvalidArgument, "resize: max_size goes with one number as size, got " +
                                              cutwater::to_string(size));
    if (*max_size <= size.height)
      throw Error(Code::kInvalidArgument, "resize: max_size " + std::to_string(*max_size) +
                                              " must be greater than size " +
                                              cutwater::to_string(size));
  }

  TensorSpec out_spec(const TensorView& in) const {
    require_image("resize", in.spec());
    if (size.width) return resized(in.spec(), size.height, *size.width);
    const std::int64_t height = in.dim(0), width = in.dim(1);
    if (height == kUnknown || width == kUnknown) return resized(in.spec(), kUnknown, kUnknown);

    const std::int64_t shorter = std::min(height, width), longer = std::max(height, width);
    const auto scaled = [](std::int64_t a, std::int64_t b,
                           std::int64_t c) {  // Python: int(a * b / c)
      return static_cast<std::int64_t>(static_cast<double>(a * b) / static_cast<double>(c));
    };
    std::int64_t new_shorter = size.height, new_longer = scaled(size.height, longer, shorter);
    if (max_size && new_longer > *max_size) {
      new_shorter = scaled(*max_size, new_shorter, new_longer);
      new_longer = *max_size;
    }
    if (new_shorter < 1)
      throw Error(Code::kBadSample, "an image of " + to_string(Shape{height, width}) +
                                        " would get a side of 0 pixels; give a larger max_size");
    return width <= height ? resized(in.spec(), new_longer, new_shorter)
                           : resized(in.spec(), new_shorter, new_longer);
  }
  Resizing resizing(const TensorSpec& in, const Region& out) const {
    const TensorSpec result = out_spec(TensorView(in, nullptr));
    return {whole(in), result.shape[0], result.shape[1], {interpolation, pillow}, out};
  }
  Region needs(const TensorSpec& in, const Region& out) const {
    return resample_needs(resizing(in, out));
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    resample(in, whole(in.spec()), {interpolation, pillow}, out);
  }
};

}  // namespace

Resizing resizing_of_resize(const Op& op, const StepShape& shape) {
  return op.as<Resize>().resizing(shape.in, shape.make);
}

constinit const OpDef kResize = define_op<Resize>(image_op("resize", "Resize, with antialiasing."));

}  // namespace cutwater::image
