// SPDX-License-Identifier: Apache-2.0
#include "cutwater/sample.h"

#include <algorithm>
#include <cstring>

namespace cutwater {

Tensor::Tensor(const TensorSpec& spec, const Region& present, Buffer storage)
    : storage_(std::move(storage)) {
  const bool image = spec.shape.rank() == 3;
  const std::int64_t pixel_bytes =
      image ? spec.shape[2] * static_cast<std::int64_t>(size_of(spec.dtype)) : 0;
  span_ = TensorSpan(spec, storage_.data(), present, present.width * pixel_bytes);
}

Tensor Tensor::scalar(std::int64_t value) {
  Buffer storage(sizeof value);
  std::memcpy(storage.data(), &value, sizeof value);
  return {TensorSpec{DType::kI64, {}}, std::move(storage)};
}

const Tensor* Sample::find(std::string_view name) const {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &found->tensor;
}

Tensor* Sample::find(std::string_view name) {
  return const_cast<Tensor*>(std::as_const(*this).find(name));
}

Sample lent(Sample& sample) {
  Sample same{sample.id, sample.cut, {}};
  for (Field& field : sample.fields)
    same.fields.push_back({field.name, Tensor::borrowed(field.tensor.span())});
  return same;
}

}  // namespace cutwater
