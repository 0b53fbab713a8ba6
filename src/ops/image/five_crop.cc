// SPDX-License-Identifier: Apache-2.0
// five_crop: the four corners and the middle, stacked: 5 x rows x columns x channels, in
// torchvision's order (top left, top right, bottom left, bottom right, centre).
#include "ops/image/center_crop.h"
#include "ops/image/image_ops.h"
#include "ops/image/window.h"

namespace cutwater::image {
namespace {

struct FiveCrop {
  Size size;

  static constexpr std::tuple kParams{
      Param{"size", &FiveCrop::size, "Height and width of each window; one number: a square.",
            Need::kRequired}};

  void check() const { require_positive("five_crop", size); }
  TensorSpec out_spec(const TensorView& in) const {
    require_image("five_crop", in.spec());
    const std::int64_t height = size.height, width = size.width_or_square();
    if (in.spec().shape.known() && (height > in.dim(0) || width > in.dim(1)))
      throw Error(Code::kBadSample, "window " + to_string(Shape{height, width}) +
                                        " does not fit image " +
                                        to_string(Shape{in.dim(0), in.dim(1)}));
    return {DType::kU8, {5, height, width, in.dim(2)}, Layout::kPixels};
  }
  void apply(const TensorView& in, const TensorSpan& out) const {
    const std::int64_t height = size.height, width = size.width_or_square();
    const std::int64_t bottom = in.dim(0) - height, right = in.dim(1) - width;
    const std::array<Region, 5> windows = {{{0, 0, height, width},
                                            {0, right, height, width},
                                            {bottom, 0, height, width},
                                            {bottom, right, height, width},
                                            center_window(in.spec(), size)}};
    const TensorSpec one = resized(in.spec(), height, width);
    std::uint8_t* place = out.bytes();
    for (const Region& window : windows) {
      copy_window(in, window, {}, TensorSpan(one, place));
      place += one.bytes();
    }
  }
};

}  // namespace

constinit const OpDef kFiveCrop =
    define_op<FiveCrop>(image_op("five_crop", "Cut out the four corners and the middle."));

}  // namespace cutwater::image
