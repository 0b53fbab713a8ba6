// SPDX-License-Identifier: Apache-2.0
// Forms: a sample at a cut as one run of bytes, its tensors in a codec. What caches and wires hold.
// FORM.md has the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/shared_bytes.h"
#include "cutwater/sample.h"
#include "cutwater/variant.h"

namespace cutwater {

// Whether a form carries a hash of its bytes: for memory that others can write to.
enum class Checksum : std::uint8_t { kNone = 0, kXxh3 = 1 };

// A sample about to be written as a form. Encodes its tensors at once; one that the codec would not
// make smaller stays as it is. REQUIRES: the sample outlives this, all of every tensor is present.
class FormWriter {
 public:
  FormWriter(const Sample& sample, const Codec& codec, Checksum checksum = Checksum::kNone);

  std::size_t size() const { return size_; }
  // REQUIRES: place.size() == size().
  void write(std::span<std::uint8_t> place) const;

  // All but the largest tensor that is not encoded, which stands last: its bytes are where they
  // were. None where they are few.
  std::size_t head_size() const;
  std::span<const std::uint8_t> tail() const;
  // REQUIRES: place.size() == head_size().
  void write_head(std::span<std::uint8_t> place) const;

 private:
  struct Part {
    std::optional<std::vector<std::uint8_t>> encoded;  // nothing: the tensor's own bytes
    std::size_t offset = 0, size = 0;
  };

  const Sample& sample_;
  const Codec codec_;
  const Checksum checksum_;
  std::vector<Part> parts_;          // one per field
  std::optional<std::size_t> last_;  // of them: the tail
  std::size_t size_ = 0;
};

// A sample as a form, with the sample's own bytes in it as far as they need no copy.
SharedBytes shared_form(std::shared_ptr<const Sample> sample, const Codec& codec, Checksum checksum,
                        BufferPool& pool);

struct FormSource {
  std::span<const std::uint8_t> bytes;  // aligned to 64
  std::shared_ptr<const void> hold;     // keeps them alive
  BufferPool* pool = nullptr;           // where decoded tensors lie
  // Asked once, before anything is decoded, for all that will be; may wait. Null: nobody counts.
  std::function<void(std::size_t bytes)> reserve = {};
  std::size_t most_bytes = SIZE_MAX;  // that decoded tensors may take
  Checksum checksum = Checksum::kNone;
};

// The sample that such a form is of. Tensors that were not encoded are borrowed from the bytes, and
// the sample holds them. Total on any bytes: throws Error(kBadSample) where they are no form of
// this sample at this cut, not what was written (with a checksum), or stand for more than
// `most_bytes`.
Sample read_form(const FormSource& from, SampleId id, Cut cut);

}  // namespace cutwater
