// SPDX-License-Identifier: Apache-2.0
// For tests: loaders over memory, and what they deliver as values that can be compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/test_ops.h"
#include "cutwater/loader.h"
#include "run/test_source.h"

namespace cutwater::test {

// Small samples, some of them broken.
inline std::shared_ptr<FaultySource> faulty(std::int64_t size, std::set<SampleId> bad) {
  return std::make_shared<FaultySource>(std::make_shared<MemorySource>(size), std::move(bad));
}

// Without ops: the stored bytes are copied into the batch.
inline What what_from(std::shared_ptr<const Source> source, std::int64_t batch_size,
                      std::string_view pipeline = "") {
  What what{std::move(source), Pipeline::parse(pipeline, test_table())};
  what.batch_size = batch_size;
  return what;
}

inline HowFast with_threads(int threads, std::int64_t prefetch = 3) {
  HowFast how;
  how.threads = threads;
  how.prefetch_batches = prefetch;
  how.memory_limit = std::size_t{16} << 20;
  return how;
}

// All that a consumer can see of a batch.
struct Seen {
  std::uint32_t epoch;
  std::int64_t index;
  std::vector<SampleId> ids;
  std::vector<std::vector<std::uint8_t>> fields;
  bool operator==(const Seen&) const = default;
};

inline Seen seen(const Batch& batch) {
  Seen result{batch.epoch, batch.index, batch.ids, {}};
  for (const Batch::FieldView& field : batch.fields)
    result.fields.emplace_back(field.data, field.data + field.spec.bytes());
  return result;
}

// The rest of the epoch in progress.
inline std::vector<Seen> rest_of_epoch(Loader& loader) {
  std::vector<Seen> batches;
  while (const std::optional<Batch> batch = loader.next()) batches.push_back(seen(*batch));
  return batches;
}

inline std::vector<Seen> epochs(Loader& loader, int count) {
  std::vector<Seen> batches;
  for (int i = 0; i < count; ++i) {
    loader.begin();
    for (Seen& batch : rest_of_epoch(loader)) batches.push_back(std::move(batch));
  }
  return batches;
}

inline std::vector<SampleId> ids_of(const std::vector<Seen>& batches) {
  std::vector<SampleId> ids;
  for (const Seen& batch : batches) ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
  return ids;
}

inline std::vector<SampleId> sorted_ids(const std::vector<Seen>& batches) {
  std::vector<SampleId> ids = ids_of(batches);
  std::ranges::sort(ids);
  return ids;
}

inline std::vector<SampleId> counted_to(std::int64_t size) {
  std::vector<SampleId> ids;
  for (SampleId id = 0; id < size; ++id) ids.push_back(id);
  return ids;
}

}  // namespace cutwater::test
