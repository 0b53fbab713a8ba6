// SPDX-License-Identifier: Apache-2.0
// OpRecord: what some samples of a running loader weigh at every cut, and how long each op takes.
// They run op by op instead of fused, which gives the same bytes more slowly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "core/mutex.h"
#include "cutwater/pipeline.h"

namespace cutwater {

// One sample; a value for each cut.
struct OpRow {
  SampleId id = -1;
  std::vector<double> bytes;  // of all fields
  std::vector<double> op_s;   // of a thread, for the op before the cut; zero at cut 0
};

// Any thread.
class OpRecord {
 public:
  static constexpr std::size_t kMostSamples = 4096;

  explicit OpRecord(std::int64_t data_samples);

  // Whether this sample is to be recorded in this epoch: some 256 an epoch or one in 64, whichever
  // is more. Who is drawn depends on sample and epoch, not on time, so that slow ones are no rarer
  // than fast ones. True at most once for a sample, and kMostSamples times in all.
  bool draw(SampleId id, std::uint32_t epoch);
  // Whether draw() would say so.
  bool would_draw(SampleId id, std::uint32_t epoch) const;

  // Takes a sample that was drawn to the last cut, as Pipeline::run() would with these slots;
  // `at_cut` sees it at every cut. Memory is asked for before each op. What fails is not recorded.
  // REQUIRES: the sample stands at cut 0.
  Result<Sample> run(const Pipeline& pipeline, Sample sample, const Draws& draws, RunContext how,
                     SlotProvider& slots, const std::function<void(const Sample&)>& at_cut);

  struct Content {
    std::vector<OpRow> rows;
    std::set<SampleId> drawn;        // those of the rows, those on their way, and those that failed
    std::optional<Failure> failure;  // the last that was not the sample's fault
  };
  Content content() const;

 private:
  bool is_to_be_drawn(SampleId id, std::uint32_t epoch) const CUTWATER_REQUIRES(mutex_);

  const std::uint64_t every_;
  mutable Mutex mutex_;
  Content content_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater
