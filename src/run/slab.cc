// SPDX-License-Identifier: Apache-2.0
#include "run/slab.h"

#include <algorithm>
#include <cstring>

#include "cutwater/error.h"

namespace cutwater {

Slab::Slab(std::int64_t slots, BufferPool& pool)
    : ids(static_cast<std::size_t>(slots), -1),
      positions(static_cast<std::size_t>(slots), -1),
      pool_(pool) {}

std::size_t Slab::bytes() const {
  std::size_t total = 0;
  for (const FieldSlots& field : fields_) total += field.bytes.size();
  return total;
}

TensorSpan Slab::slot(std::int64_t index, SampleId id, std::string_view field,
                      const TensorSpec& spec) {
  auto found = std::find_if(fields_.begin(), fields_.end(),
                            [&](const FieldSlots& slots) { return slots.name == field; });
  if (found == fields_.end()) {
    const std::size_t total = spec.bytes() * static_cast<std::size_t>(slots());
    if (total > pool_.limit_bytes())
      throw Error(Code::kInvalidArgument, "a batch of " + std::to_string(slots()) + " x " +
                                              to_string(spec) + " takes " + std::to_string(total) +
                                              " bytes, more than memory_limit " +
                                              std::to_string(pool_.limit_bytes()) +
                                              "; raise memory_limit or lower batch_size");
    found = fields_.insert(fields_.end(),
                           FieldSlots{std::string(field), spec, pool_.allocate(total), id});
  } else if (found->spec != spec) {
    throw Error(Code::kInvalidArgument,
                "samples " + std::to_string(std::min(found->first, id)) + " and " +
                    std::to_string(std::max(found->first, id)) +
                    " cannot be in one batch: " + std::string(field) + " is " +
                    to_string(found->first < id ? found->spec : spec) + " and " +
                    to_string(found->first < id ? spec : found->spec) +
                    "; give them one shape (resize(size=[h, w]), a crop), or use batch_size=1");
  }
  return {spec, found->bytes.data() + static_cast<std::size_t>(index) * spec.bytes()};
}

void Slab::copy_slot(std::int64_t from, Slab& other, std::int64_t to) const {
  const SampleId id = ids[static_cast<std::size_t>(from)];
  for (const FieldSlots& field : fields_) {
    const std::size_t size = field.spec.bytes();
    const TensorSpan place = other.slot(to, id, field.name, field.spec);
    if (size > 0)
      std::memcpy(place.bytes(), field.bytes.data() + static_cast<std::size_t>(from) * size, size);
  }
  other.ids[static_cast<std::size_t>(to)] = id;
  other.positions[static_cast<std::size_t>(to)] = positions[static_cast<std::size_t>(from)];
}

void Slab::give_to_user() {
  for (FieldSlots& field : fields_) field.bytes.give_to_user();
}

}  // namespace cutwater
