// SPDX-License-Identifier: Apache-2.0
// Sample: an id, named tensors, and the cut it stands at.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/buffer.h"
#include "cutwater/tensor.h"

namespace cutwater {

using SampleId = std::int64_t;  // the sample's place in its source's listing
using Cut = int;                // 0: as stored; k: after op k of the pipeline

// A tensor that owns its bytes, or refers to bytes that outlive it (a batch slot).
class Tensor {
 public:
  Tensor() = default;
  Tensor(const TensorSpec& spec, Buffer storage) : storage_(std::move(storage)) {
    span_ = TensorSpan(spec, storage_.data());
  }
  // The part `present` of an image of this spec, its rows without gaps.
  Tensor(const TensorSpec& spec, const Region& present, Buffer storage);
  // REQUIRES: the span's bytes outlive this tensor.
  static Tensor borrowed(const TensorSpan& span) {
    Tensor tensor;
    tensor.span_ = span;
    tensor.borrowed_ = true;
    return tensor;
  }
  static Tensor scalar(std::int64_t value);

  const TensorSpec& spec() const { return span_.spec(); }
  TensorView view() const { return span_; }
  TensorSpan span() { return span_; }
  bool owns_bytes() const { return !borrowed_; }

 private:
  Buffer storage_;
  TensorSpan span_;
  bool borrowed_ = false;
};

struct Field {
  std::string name;
  Tensor tensor;
};

struct Sample {
  SampleId id = -1;
  Cut cut = 0;
  std::vector<Field> fields;
  // Keeps alive what tensors borrow from, where that is not the source: a cache's bytes.
  std::shared_ptr<const void> holds = nullptr;

  const Tensor* find(std::string_view name) const;
  Tensor* find(std::string_view name);
};

// A sample whose tensors are those of another. REQUIRES: that one outlives the result.
Sample lent(Sample& sample);

inline constexpr std::string_view kImageField = "image";
inline constexpr std::string_view kLabelField = "label";

}  // namespace cutwater
