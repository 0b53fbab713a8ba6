// SPDX-License-Identifier: Apache-2.0
// grayscale: luma as Pillow's convert("L") computes it (ITU-R 601, 16-bit fixed point).
#include "ops/image/image_ops.h"

namespace cutwater::image {
namespace {

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >>
                                   16);
}

struct Grayscale {
  std::int64_t num_output_channels = 1;

  static constexpr std::tuple kParams{
      Param{"num_output_channels", &Grayscale::num_output_channels, "1, or 3 equal channels."}};

  void check() const {
    if (num_output_channels != 1 && num_output_channels != 3)
      throw Error(Code::kInvalidArgument, "grayscale: num_output_channels must be 1 or 3, got " +
                                              std::to_string(num_output_channels));
  }
  TensorSpec out_spec(const TensorView& in) const {
    require_image("grayscale", in.spec());
    return image_spec(in.dim(0), in.dim(1), num_output_channels);
  }
  Region needs(const TensorSpec&, const Region& out) const { return out; }
  void apply(const TensorView& in, const TensorSpan& out) const {
    const Region& make = out.present();
    const std::int64_t in_channels = in.dim(2);
    for (std::int64_t y = make.top; y < make.top + make.height; ++y) {
      const std::uint8_t* from = in.pixel(y, make.left);
      std::uint8_t* to = out.pixel(y, make.left);
      for (std::int64_t x = 0; x < make.width; ++x, from += in_channels) {
        const std::uint8_t gray = in_channels == 1 ? *from : luma(from);
        for (std::int64_t c = 0; c < num_output_channels; ++c) *to++ = gray;
      }
    }
  }
};

}  // namespace

constinit const OpDef kGrayscale =
    define_op<Grayscale>(image_op("grayscale", "Keep the brightness, drop the colour."));

}  // namespace cutwater::image
