// SPDX-License-Identifier: Apache-2.0
// Slab: the memory of one batch. Samples are written straight into their slot of it; when its last
// reference is dropped, the bytes go back to the pool. Not synchronised: its owner's lock is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/buffer.h"
#include "cutwater/sample.h"
#include "cutwater/tensor.h"

namespace cutwater {

class Slab {
 public:
  struct FieldSlots {
    std::string name;
    TensorSpec spec;  // of one sample
    Buffer bytes;     // slots() of them
    SampleId first;   // the sample that set the spec
  };

  Slab(std::int64_t slots, BufferPool& pool);

  std::int64_t slots() const { return static_cast<std::int64_t>(ids.size()); }
  const std::vector<FieldSlots>& fields() const { return fields_; }
  std::size_t bytes() const;

  // Where a field of the sample in this slot goes. The first call for a field fixes its spec.
  // Throws Error(kInvalidArgument) when the sample cannot be in one batch with the first.
  TensorSpan slot(std::int64_t index, SampleId id, std::string_view field, const TensorSpec& spec);

  // Copies the sample in slot `from` to a slot of another slab or of this one.
  void copy_slot(std::int64_t from, Slab& other, std::int64_t to) const;

  void give_to_user();

  std::vector<SampleId> ids;            // per slot
  std::vector<std::int64_t> positions;  // per slot: the sample's place in the epoch's order

 private:
  BufferPool& pool_;
  std::vector<FieldSlots> fields_;
};

}  // namespace cutwater
