// SPDX-License-Identifier: Apache-2.0
// random_resized_crop: a box of drawn area and shape, resized, as torchvision's RandomResizedCrop:
// ten tries, then the largest box of an allowed shape in the middle.
#include <cmath>

#include "ops/image/image_ops.h"
#include "ops/image/portable_math.h"
#include "ops/image/resample.h"
#include "ops/image/resizing_ops.h"

namespace cutwater::image {
namespace {

struct RandomResizedCrop {
  Size size;
  List scale = {0.08, 1.0};
  List ratio = {3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
  bool antialias = true;
  std::int64_t pillow = kNewestPillow;

  struct Draw {
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    static constexpr std::tuple kFields{Param{"top", &Draw::top}, Param{"left", &Draw::left},
                                        Param{"height", &Draw::height},
                                        Param{"width", &Draw::width}};
    Region box() const { return {top, left, height, width}; }
  };

  static constexpr std::tuple kParams{
      Param{"size", &RandomResizedCrop::size,
            "Height and width of the result; one number: a square.", Need::kRequired},
      Param{"scale", &RandomResizedCrop::scale, "Least and greatest area, as shares of the image."},
      Param{"ratio", &RandomResizedCrop::ratio, "Least and greatest width / height of the box."},
      Param{"interpolation", &RandomResizedCrop::interpolation,
            "nearest, bilinear, bicubic, box, hamming or lanczos."},
      Param{"antialias", &RandomResizedCrop::antialias,
            "Pillow always filters when it shrinks: only True."},
      Param{"pillow", &RandomResizedCrop::pillow, "Whose pixels: Pillow 13, or 12 and older."}};

  void check() const {
    require_positive("random_resized_crop", size);
    require_pillow("random_resized_crop", pillow);
    const auto require_range = [](const char* name, const List& range) {
      if (range.size() != 2 || !(range[0] > 0) || !(range[0] <= range[1]) || !(range[1] < 1e6))
        throw Error(Code::kInvalidArgument,
                    std::string("random_resized_crop: ") + name +
                        " must be two numbers, 0 < least <= greatest, got " +
                        to_text(Value{range}));
    };
    require_range("scale", scale);
    require_range("ratio", ratio);
    if (!antialias)
      throw Error(
          Code::kInvalidArgument,
          "random_resized_crop: antialias=False has no exact counterpart (torchvision ignores "
          "it on Pillow images); use antialias=True");
  }

  Draw draw(const TensorSpec& in, Rng rng) const {
    const std::int64_t height = in.shape[0], width = in.shape[1];
    const double area = static_cast<double>(height) * static_cast<double>(width);
    const double log_least = portable_log(ratio[0]), log_greatest = portable_log(ratio[1]);
    const auto whole_pixels = [](double length) {
      return static_cast<std::int64_t>(std::nearbyint(length));  // half to even, as Python's round
    };
    const auto place = [&](std::int64_t room) {
      return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(room) + 1));
    };
    for (int attempt = 0; attempt < 10; ++attempt) {
      const double target_area = area * rng.uniform(scale[0], scale[1]);
      const double aspect = portable_exp(rng.uniform(log_least, log_greatest));
      const std::int64_t w = whole_pixels(std::sqrt(target_area * aspect));
      const std::int64_t h = whole_pixels(std::sqrt(target_area / aspect));
      if (w < 1 || w > width || h < 1 || h > height) continue;
      const std::int64_t top = place(height - h);
      return {top, place(width - w), h, w};
    }

    std::int64_t w = width, h = height;
    const double in_ratio = static_cast<double>(width) / static_cast<double>(height);
    if (in_ratio < ratio[0]) {
      h = whole_pixels(static_cast<double>(w) / ratio[0]);
    } else if (in_ratio > ratio[1]) {
      w = whole_pixels(static_cast<double>(h) * ratio[1]);
    }
    h = std::max<std::int64_t>(h, 1);
    w = std::max<std::int64_t>(w, 1);
    return {(height - h) / 2, (width - w) / 2, h, w};
  }

  TensorSpec out_spec(const TensorView& in, const Draw&) const {
    require_image("random_resized_crop", in.spec());
    return resized(in.spec(), size.height, size.width_or_square());
  }
  Resizing resizing(const Draw& draw, const Region& out) const {
    return {draw.box(), size.height, size.width_or_square(), {interpolation, pillow}, out};
  }
  Region needs(const TensorSpec&, const Draw& draw, const Region& out) const {
    return resample_needs(resizing(draw, out));
  }
  void apply(const TensorView& in, const Draw& draw, const TensorSpan& out) const {
    resample(in, draw.box(), {interpolation, pillow}, out);
  }
};

}  // namespace

Resizing resizing_of_random_resized_crop(const Op& op, const DrawnValues& drawn,
                                         const StepShape& shape) {
  RandomResizedCrop::Draw draw;
  std::memcpy(&draw, drawn.bytes.data(), sizeof draw);
  return op.as<RandomResizedCrop>().resizing(draw, shape.make);
}

constinit const OpDef kRandomResizedCrop = define_op<RandomResizedCrop>(
    image_op("random_resized_crop", "Cut out a box of random size and shape, and resize it."));

}  // namespace cutwater::image
