// SPDX-License-Identifier: Apache-2.0
// Measure: what some samples weigh and cost at every cut. Each kind of work is done in passes, as
// in small epochs: all threads go over the samples together, and a sample's figure is the median of
// its passes. The same sample twice in a row would find its own bytes in the caches and its own
// branches foreseen, which no epoch does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "cutwater/variant.h"
#include "profile/output_ring.h"
#include "profile/team.h"

namespace cutwater {

struct VariantValues {
  double bytes = 0, encode_s = 0, decode_s = 0;
};
// As the columns of CutProfile.
struct CutValues {
  double bytes = 0, op_s = 0, prefix_s = 0, finish_s = 0, first_s = 0, memory_s = 0;
  std::vector<VariantValues> variants;
};
// As the columns of ExcerptProfile.
struct ExcerptValues {
  double bytes = 0, make_s = 0, finish_s = 0;
};
struct SampleValues {
  SampleId id = -1;
  std::vector<CutValues> cuts;
  ExcerptValues excerpt;
};

class Measure {
 public:
  // REQUIRES: the source stands at cut 0, and all three outlive this.
  Measure(const Source& source, const Pipeline& pipeline, Team& team);

  // The good ones of these samples, in order; the others are added to `bad`. Throws Error for what
  // is no sample's fault. Holds some 256 MiB, or one sample with what is made of it if that is
  // more.
  std::vector<SampleValues> samples(std::span<const SampleId> ids, std::vector<Failure>& bad);

  // Profile::whole_s of these samples, which were good.
  double whole_s(std::span<const SampleId> ids);

  // Of all cuts; known once a sample was good.
  const std::vector<std::vector<Codec>>& codecs() const { return codecs_; }

  const std::shared_ptr<BufferPool>& pool() const { return pool_; }
  std::vector<OutputRing>& rings() { return rings_; }  // one for each thread

 private:
  // One sample taken from cut to cut, op by op.
  struct Walk {
    std::vector<double> bytes, op_s;  // at each cut
    std::vector<TensorSpec> largest;  // field at each cut, labels left aside
  };
  using One = std::function<double(std::size_t worker, std::size_t i)>;

  Result<Walk> walk(SampleId id) const;
  std::vector<SampleValues> walk_all(std::span<const SampleId> ids, std::vector<Failure>& bad);
  void measure(std::span<SampleValues> group);
  void measure_finish(std::span<SampleValues> group, Cut cut, std::vector<Sample>& forms);
  void measure_fresh_finish(std::span<SampleValues> group, Cut cut,
                            const std::vector<Sample>& forms);
  void measure_excerpts(std::span<SampleValues> group, const std::vector<Sample>& stored,
                        const std::vector<Draws>& draws);
  void measure_variants(std::span<SampleValues> group, Cut cut, const std::vector<Sample>& forms);
  double finish(std::size_t worker, Sample sample, std::uint32_t epoch, Hints* hints);

  // Of each sample, the median over passes of what `one` returns. Evicted: before each pass, for a
  // small group would stay in the processor's caches from one to the next.
  enum class Caches : std::uint8_t { kAsTheyAre, kEvicted };
  std::vector<double> medians(std::size_t count, const One& one,
                              Caches caches = Caches::kAsTheyAre);

  template <class T>
  T value_of(Result<T> result) const;
  bool made_after(Cut cut, std::string_view field) const;

  const Source& source_;
  const Pipeline& pipeline_;
  Team& team_;
  const bool learns_;  // ops of the unprepared path take hints
  const std::shared_ptr<BufferPool> pool_;
  std::vector<OutputRing> rings_;
  std::vector<std::vector<Codec>> codecs_;
};

}  // namespace cutwater
