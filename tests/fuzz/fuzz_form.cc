// SPDX-License-Identifier: Apache-2.0
// A form from a cache that others can write to, as it comes and with the fields set right that
// would end it at once: a named error, or tensors of which every byte can be read.
#include <cstring>
#include <vector>

#include "cutwater/error.h"
#include "fuzz.h"
#include "variant/form.h"

namespace cutwater::fuzz {
namespace {

constexpr std::size_t kSizeAt = 16, kSampleAt = 24, kCutAt = 32, kLeast = 40;
constexpr SampleId kSample = 5;
constexpr Cut kCut = 2;

void check(Input input) {
  Buffer bytes(input.size());  // aligned, and its end is the form's
  if (!input.empty()) std::memcpy(bytes.data(), input.data(), input.size());
  static const std::shared_ptr<BufferPool> kPool = BufferPool::create(std::size_t{4} << 20);
  try {
    const Sample sample =
        read_form({bytes.view(), nullptr, kPool.get(), {}, std::size_t{1} << 20}, kSample, kCut);
    for (const Field& field : sample.fields)
      (void)hash_of({field.tensor.view().bytes(), field.tensor.spec().bytes()});
  } catch (const Error& error) {
    require(error.code() == Code::kBadSample, "a damaged form is a bad sample");
  }
}

}  // namespace

FUZZ_TARGET(form) {
  check(input);
  if (input.size() < kLeast) return;
  std::vector<std::uint8_t> repaired(input.begin(), input.end());
  const std::uint64_t size = repaired.size();
  std::memcpy(repaired.data(), "CWF1\0\0\0\0", 8);
  std::memcpy(repaired.data() + kSizeAt, &size, sizeof size);
  std::memcpy(repaired.data() + kSampleAt, &kSample, sizeof kSample);
  std::memcpy(repaired.data() + kCutAt, &kCut, sizeof kCut);
  check(repaired);
}

}  // namespace cutwater::fuzz
