// SPDX-License-Identifier: Apache-2.0
// pad: adds a border, as torchvision.transforms.Pad on a Pillow image.
#include "ops/image/image_ops.h"
#include "ops/image/window.h"

namespace cutwater::image {
namespace {

struct Pad {
  List padding;
  List fill = {0};
  Padding padding_mode = Padding::kConstant;

  static constexpr std::tuple kParams{
      Param{"padding", &Pad::padding,
            "Pixels to add: all sides, or left/right and top/bottom, or left, top, right, bottom.",
            Need::kRequired},
      Param{"fill", &Pad::fill, "Colour of a constant border: one value, or one per channel."},
      Param{"padding_mode", &Pad::padding_mode, "constant, edge, reflect or symmetric."}};

  void check() const {
    parse_border("pad", padding);
    parse_fill("pad", fill);
  }
  Region window(const TensorSpec& in) const {
    const Border b = parse_border("pad", padding);
    return {-b.top, -b.left, in.shape[0] + b.top + b.bottom, in.shape[1] + b.left + b.right};
  }
  TensorSpec out_spec(const TensorView& in) const {
    require_image("pad", in.spec());
    const Region out = window(in.spec());
    return resized(in.spec(), in.dim(0) == kUnknown ? kUnknown : out.height,
                   in.dim(1) == kUnknown ? kUnknown : out.width);
  }
  Region needs(const TensorSpec& in, const Region& out) const {
    return window_needs(in, window(in), padding_mode, out);
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    copy_window(in, window(in.spec()), {padding_mode, parse_fill("pad", fill)}, out);
  }
};

}  // namespace

constinit const OpDef kPad = define_op<Pad>(image_op("pad", "Add a border on all sides."));

}  // namespace cutwater::image
