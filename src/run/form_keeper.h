// SPDX-License-Identifier: Apache-2.0
// FormKeeper: the engine's side of caches and of stores in the making. It may have a sample at some
// stable cut already, or want one that is being made when it comes by such a cut.
#pragma once

#include <optional>
#include <utility>

#include "cutwater/sample.h"
#include "cutwater/source.h"

namespace cutwater {

// Every method may be called from any thread. Nothing in here changes a byte: a sample stands at
// its cut as if it had been run there just now.
class FormKeeper {
 public:
  virtual ~FormKeeper() = default;

  // The sample at a stable cut; nothing: it has to be read. It asks `into` at most once for memory.
  virtual std::optional<Sample> find(SampleId id, const ReadContext& into) = 0;
  // The stable cut at which it wants a sample that was read; nothing: it does not want it. Never
  // before the source's cut.
  virtual std::optional<Cut> wants(SampleId id) = 0;
  // A sample at the cut that it wanted it at. Whether it is kept is the keeper's matter.
  virtual void keep(const Sample& sample) = 0;
};

// Two keepers of the same cut, the faster one first.
class TwoKeepers final : public FormKeeper {
 public:
  // REQUIRES: both outlive this.
  TwoKeepers(FormKeeper& first, FormKeeper& second) : first_(first), second_(second) {}

  std::optional<Sample> find(SampleId id, const ReadContext& into) override {
    std::optional<Sample> sample = first_.find(id, into);
    return sample ? std::move(sample) : second_.find(id, into);
  }
  std::optional<Cut> wants(SampleId id) override {
    const std::optional<Cut> cut = first_.wants(id);
    return cut ? cut : second_.wants(id);
  }
  void keep(const Sample& sample) override {
    for (FormKeeper* keeper : {&first_, &second_})
      if (keeper->wants(sample.id)) keeper->keep(sample);
  }

 private:
  FormKeeper &first_, &second_;
};

}  // namespace cutwater
