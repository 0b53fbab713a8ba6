// SPDX-License-Identifier: Apache-2.0
// random_crop: a window at a drawn place, as torchvision.transforms.RandomCrop. With `padding` it
// stands for two ops, pad and the crop proper: padding does not draw, so it may be prepared once.
// Takes images, and planes (after to_tensor) as they are; only images can be padded.
#include "ops/image/image_ops.h"
#include "ops/image/window.h"

namespace cutwater::image {
namespace {

struct RandomCrop {
  Size size;
  List padding = {};
  bool pad_if_needed = false;
  List fill = {0};
  Padding padding_mode = Padding::kConstant;

  struct Draw {
    std::int64_t top = 0, left = 0, height = 0, width = 0;
    static constexpr std::tuple kFields{Param{"top", &Draw::top}, Param{"left", &Draw::left},
                                        Param{"height", &Draw::height},
                                        Param{"width", &Draw::width}};
  };

  static constexpr std::tuple kParams{
      Param{"size", &RandomCrop::size, "Height and width of the window; one number: a square.",
            Need::kRequired},
      Param{"padding", &RandomCrop::padding, "Pad first, by so many pixels (see pad)."},
      Param{"pad_if_needed", &RandomCrop::pad_if_needed, "Pad images smaller than the window."},
      Param{"fill", &RandomCrop::fill, "Colour of a constant border."},
      Param{"padding_mode", &RandomCrop::padding_mode, "constant, edge, reflect or symmetric."}};

  void check() const {
    require_positive("random_crop", size);
    if (!padding.empty()) parse_border("random_crop", padding);
    parse_fill("random_crop", fill);
  }

  std::vector<Op> expand() const {
    RandomCrop crop = *this;
    crop.padding.clear();
    std::vector<Op> ops;
    if (!padding.empty())
      ops.push_back(kPad.make(kPad, {{"padding", Value{padding}},
                                     {"fill", Value{fill}},
                                     {"padding_mode", ParamType<Padding>::to(padding_mode)}}));
    ops.emplace_back(kRandomCrop, std::make_shared<RandomCrop>(std::move(crop)));
    return ops;
  }

  // torchvision adds what is missing on both sides.
  std::int64_t border(std::int64_t length, std::int64_t window) const {
    return pad_if_needed && length < window ? window - length : 0;
  }

  // The drawn corner is that of the padded image, as torchvision's get_params gives it.
  Draw draw(const TensorSpec& in, Rng rng) const {
    const std::int64_t height = size.height, width = size.width_or_square();
    const Extent image = extent_of(in);
    const std::int64_t rows = image.rows + 2 * border(image.rows, height);
    const std::int64_t columns = image.columns + 2 * border(image.columns, width);
    if (rows < height || columns < width)
      throw Error(Code::kBadSample,
                  "window " + to_string(Shape{height, width}) + " does not fit image " +
                      to_string(Shape{image.rows, image.columns}) + "; pad_if_needed=True pads it");
    const auto place = [&](std::int64_t room) {
      return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(room) + 1));
    };
    const std::int64_t top = place(rows - height);
    return {top, place(columns - width), height, width};
  }

  Region window(const TensorSpec& in, const Draw& draw) const {
    const Extent image = extent_of(in);
    return {draw.top - border(image.rows, draw.height),
            draw.left - border(image.columns, draw.width), draw.height, draw.width};
  }
  TensorSpec out_spec(const TensorView& in, const Draw&) const {
    if (is_planes(in.spec())) {
      require_extents(in.spec());
      if (pad_if_needed)
        throw Error(
            Code::kInvalidArgument,
            "random_crop: pad_if_needed pads images, not the planes that to_tensor makes; put "
            "random_crop before to_tensor");
    } else {
      require_image("random_crop", in.spec());
    }
    return resized(in.spec(), size.height, size.width_or_square());
  }
  Region needs(const TensorSpec& in, const Draw& draw, const Region& out) const {
    if (is_planes(in)) return whole(in);
    return window_needs(in, window(in, draw), padding_mode, out);
  }
  void apply(const TensorView& in, const Draw& draw, const TensorSpan& out) const {
    if (is_planes(in.spec())) return copy_planes_window(in, window(in.spec(), draw), out);
    copy_window(in, window(in.spec(), draw), {padding_mode, parse_fill("random_crop", fill)}, out);
  }
};

}  // namespace

constinit const OpDef kRandomCrop = define_op<RandomCrop>(
    image_op("random_crop", "Cut a fixed-size window at a random place; also after to_tensor."));

}  // namespace cutwater::image
