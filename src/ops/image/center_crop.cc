// SPDX-License-Identifier: Apache-2.0
// center_crop: the middle of the image, as torchvision.transforms.CenterCrop; an image smaller than
// the window is padded with zeros, as there.
#include "ops/image/center_crop.h"

#include <cmath>

#include "ops/image/image_ops.h"
#include "ops/image/window.h"

namespace cutwater::image {
namespace {

// Where the window begins on an axis. torchvision pads first (the smaller half in front), then
// rounds half to even, as Python does.
std::int64_t centred(std::int64_t length, std::int64_t window) {
  if (window > length) return -((window - length) / 2);
  return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(length - window) / 2));
}

struct CenterCrop {
  Size size;

  static constexpr std::tuple kParams{Param{"size", &CenterCrop::size,
                                            "Height and width of the window; one number: a square.",
                                            Need::kRequired}};

  void check() const { require_positive("center_crop", size); }
  TensorSpec out_spec(const TensorView& in) const {
    require_image("center_crop", in.spec());
    return resized(in.spec(), size.height, size.width_or_square());
  }
  Region needs(const TensorSpec& in, const Region& out) const {
    return window_needs(in, center_window(in, size), Padding::kConstant, out);
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    copy_window(in, center_window(in.spec(), size), {}, out);
  }
};

}  // namespace

Region center_window(const TensorSpec& in, const Size& size) {
  return {centred(in.shape[0], size.height), centred(in.shape[1], size.width_or_square()),
          size.height, size.width_or_square()};
}

constinit const OpDef kCenterCrop =
    define_op<CenterCrop>(image_op("center_crop", "Cut a window out of the middle."));

}  // namespace cutwater::image
