// SPDX-License-Identifier: Apache-2.0
#include "ops/presets.h"

#include <array>
#include <string>

#include "ops/all_ops.h"

namespace cutwater {
namespace {

// Pixels are centred before the crop: the image pipelines of the study of what to prepare once
// (Isenko et al., SIGMOD 2022), which differ in their data alone.
constexpr std::string_view kCentredCrop =
    "decode | resize(size=256) | to_tensor | "
    "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]) | random_crop(size=224)";

// The first two are the classic ImageNet recipes; mean and deviation are those of its training
// pixels.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kPresets = {{
    {"imagenet-train",
     "decode | random_resized_crop(size=224) | random_horizontal_flip | to_tensor | "
     "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"},
    {"imagenet-val",
     "decode | resize(size=256) | center_crop(size=224) | to_tensor | "
     "normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"},
    {"imagenet", kCentredCrop},
    {"cubepp-jpg", kCentredCrop},
    {"cubepp-png", kCentredCrop},
}};

}  // namespace

std::span<const std::pair<std::string_view, std::string_view>> presets() { return kPresets; }

Pipeline named_pipeline(std::string_view name_or_text) {
  for (const auto& [name, text] : kPresets)
    if (name == name_or_text) return Pipeline::parse(text, all_ops());
  if (name_or_text.find('-') != std::string_view::npos &&
      name_or_text.find_first_of("|( ") == std::string_view::npos) {
    std::string known;
    for (const auto& [name, text] : kPresets) known += " " + std::string(name);
    throw Error(Code::kInvalidArgument,
                "no preset '" + std::string(name_or_text) + "' (known:" + known + ")");
  }
  return Pipeline::parse(name_or_text, all_ops());
}

}  // namespace cutwater
