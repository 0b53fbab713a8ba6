// SPDX-License-Identifier: Apache-2.0
// What a loader is made with: options checked and completed, a store that is there in place of the
// data set, and what ops have learned about it.
#pragma once

#include <optional>

#include "cutwater/loader.h"
#include "run/executor.h"

namespace cutwater {

// Throws Error(kInvalidArgument) that names the field; kStale where the source was prepared for
// another pipeline.
void check(const What& what, const HowFast& how);

// What the options leave open comes from the environment (CUTWATER_THREADS, CUTWATER_MEMORY_LIMIT),
// then from the machine. Neither can change a byte. Throws Error(kInvalidArgument).
ExecutorOptions resolve(const What& what, const HowFast& how);

// A store that is there is the source: it stands for the data set and the beginning of the
// pipeline. Throws Error(kStale) where it is of another.
struct WithStore {
  What what;
  std::optional<StoreReport> store;  // that is the source
};
WithStore with_store(What what, const StoreUse& use);

// What ops learn about the samples, if there is an op that learns and somebody wants it.
class Learned {
 public:
  Learned(const What& what, const HowFast& how, std::size_t memory_limit);

  HintBook* book() { return book_ ? &*book_ : nullptr; }
  const HintBook* book() const { return book_ ? &*book_ : nullptr; }
  void save() {
    if (file_) file_->save();
  }

 private:
  std::optional<HintBook> book_;
  std::optional<KeptHints> file_;
};

}  // namespace cutwater
