// SPDX-License-Identifier: Apache-2.0
// Neighbouring image ops as one pass, row by row: decode, crop, resize, crop, flip, to_tensor and
// normalize, or any part of that chain, from the stored bytes straight into the batch.
#include <algorithm>
#include <optional>

#include "ops/image/encoded_image.h"
#include "ops/image/flip.h"
#include "ops/image/image_ops.h"
#include "ops/image/pixel_values.h"
#include "ops/image/resizing_ops.h"

namespace cutwater::image {
namespace {

// What of the chain is there, by its place among the steps.
struct ImageChain {
  std::size_t decoding = 0;  // how many steps: none, reconstruct, or entropy and reconstruct
  std::vector<std::size_t> crops;
  std::optional<std::size_t> resize, flip, to_tensor, normalize;
  std::size_t length = 0;

  explicit ImageChain(std::span<const Step> steps) {
    const auto is = [&](std::size_t k, const OpDef& def) {
      return k < steps.size() && &steps[k].op.def() == &def;
    };
    if (is(0, kEntropy) && is(1, kReconstruct)) decoding = 2;
    if (is(0, kReconstruct)) decoding = 1;
    std::size_t k = decoding;
    const auto take = [&](auto&... defs) { return (is(k, defs) || ...); };
    const auto take_crops = [&] {
      for (; take(kCenterCrop, kRandomCrop); ++k) crops.push_back(k);
    };
    take_crops();
    if (take(kResize, kRandomResizedCrop)) resize = k++;
    take_crops();
    if (take(kRandomHorizontalFlip)) flip = k++;
    if (take(kToTensor)) to_tensor = k++;
    if (to_tensor && take(kNormalize)) normalize = k++;
    // Crops and flips alone are better copied as they are.
    if (decoding > 0 || resize || to_tensor) length = k;
  }
};

std::size_t match(std::span<const Step> steps) { return ImageChain(steps).length; }

// The part of its input that step k needs.
Region needed_by(const FusedSteps& fused, std::size_t k) {
  const Op& op = fused.steps[k].op;
  const StepShape& shape = fused.shapes[k];
  if (op.def().needs == nullptr) return whole(shape.in);
  return op.def().needs(op.raw(), shape.in, shape.make, fused.drawn[k]);
}

// Not a stack of images (five_crop), and crops that lie within their image.
bool fits(const FusedSteps& fused) {
  const ImageChain pass(fused.steps);
  if (pass.decoding == 0 && fused.shapes[0].in.shape.rank() != 3) return false;
  for (const std::size_t k : pass.crops) {
    const Region &made = fused.shapes[k].make, read = needed_by(fused, k);
    if (made.height != read.height || made.width != read.width) return false;
  }
  return true;
}

// The image that the first steps decode. REQUIRES: there are such.
EncodedImage encoded(const FusedSteps& fused, const ImageChain& pass, const TensorView& in) {
  const auto& reconstruct = fused.steps[pass.decoding - 1].op.as<DecodeOptions>();
  Limits limits = reconstruct.limits();
  if (pass.decoding == 1) return {in, Encoding::kFileOrForm, limits, reconstruct.exif};
  const Limits first = fused.steps[0].op.as<DecodeLimits>().limits();
  limits = {std::min(limits.max_pixels, first.max_pixels),
            std::min(limits.max_bytes, first.max_bytes),
            std::min(limits.max_scans, first.max_scans)};
  return {in, Encoding::kFile, limits, reconstruct.exif};
}

// Where the rows come from: `part` is what the step after decoding needs.
std::unique_ptr<RowReader> rows_of(const FusedSteps& fused, const ImageChain& pass,
                                   const TensorView& in, const Region& part) {
  if (pass.decoding == 0) return std::make_unique<PixelReader>(in, part);
  return encoded(fused, pass, in).rows(part, fused.hint);
}

Resizing resizing_of(const FusedSteps& fused, const ImageChain& pass, const Region& part) {
  Resizing resizing;
  if (pass.resize) {
    const Op& op = fused.steps[*pass.resize].op;
    const StepShape& shape = fused.shapes[*pass.resize];
    resizing = &op.def() == &kResize
                   ? resizing_of_resize(op, shape)
                   : resizing_of_random_resized_crop(op, fused.drawn[*pass.resize], shape);
  } else {  // the part as it is
    resizing.box = part;
    resizing.height = part.height;
    resizing.width = part.width;
    resizing.make = {0, 0, part.height, part.width};
  }
  if (pass.flip) {
    FlipDraw draw;
    std::memcpy(&draw, fused.drawn[*pass.flip].bytes.data(), sizeof draw);
    resizing.mirrored = draw.flip;
    if (draw.flip) resizing.make.left = resizing.width - resizing.make.left - resizing.make.width;
  }
  return resizing;
}

std::unique_ptr<RowWriter> writer_to(const FusedSteps& fused, const ImageChain& pass,
                                     std::int64_t channels, const TensorSpan& out) {
  if (!pass.to_tensor) return std::make_unique<PixelWriter>(out);
  const PixelValues values =
      pass.normalize ? fused.steps[*pass.normalize].op.as<Normalize>().pixel_values(channels)
                     : PixelValues{};
  return write_floats(values, out);
}

void run(const FusedSteps& fused, const TensorView& in, OutputPlace& place) {
  const ImageChain pass(fused.steps);
  const bool only_decodes = pass.decoding == pass.length;
  if (only_decodes) {
    encoded(fused, pass, in).decode(place.get(), fused.hint);
    return;
  }
  const Region part = needed_by(fused, pass.decoding);
  const StepShape& first = fused.shapes[pass.decoding];
  const std::int64_t channels = first.in.shape[2];
  const auto rows = rows_of(fused, pass, in, part);
  const auto writer = writer_to(fused, pass, channels, place.get());
  resample_rows(resizing_of(fused, pass, part), channels, *rows, *writer);
}

// An excerpt has what the step that decodes is asked to make.
double excerpt_share(const FusedSteps& fused, const TensorView& in) {
  const ImageChain pass(fused.steps);
  if (pass.decoding == 0) return 1;
  return encoded(fused, pass, in).excerpt_share(fused.shapes[pass.decoding - 1].make);
}

std::optional<Tensor> excerpt(const FusedSteps& fused, const TensorView& in, BufferPool& pool) {
  const ImageChain pass(fused.steps);
  if (pass.decoding == 0) return std::nullopt;
  return encoded(fused, pass, in).excerpt(fused.shapes[pass.decoding - 1].make, fused.hint, pool);
}

}  // namespace

constinit const std::array<Fusion, 1> kFusions = {
    {{match, fits, run, true, excerpt_share, excerpt}}};

}  // namespace cutwater::image
