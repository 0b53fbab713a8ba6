// SPDX-License-Identifier: Apache-2.0
// StoreInMaking: a store as a by-product of the first epoch. Samples that come by are spooled; once
// they are all there, materialize() writes the store from the spool, the same files as ever, while
// training goes on. From then on samples come from the store.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/mutex.h"
#include "cutwater/options.h"
#include "cutwater/store.h"
#include "run/form_keeper.h"
#include "run/spool.h"

namespace cutwater {

class StoreInMaking final : public FormKeeper {
 public:
  // Throws Error: kInvalidArgument for a fresh cut or a folder with something else in it, kIo.
  // REQUIRES: there is no finished store at use.path.
  StoreInMaking(const What& what, const StoreUse& use, bool fuse, int threads);
  ~StoreInMaking() override;  // waits until a store that is being written is finished

  std::optional<Sample> find(SampleId id, const ReadContext& into) override;
  std::optional<Cut> wants(SampleId id) override;
  // A disk without room ends the making, not the epoch: report() tells.
  void keep(const Sample& sample) override;

  // An epoch was delivered to its end: time to write, if (nearly) all samples have come by.
  void epoch_over();
  // False: it is still being written when the time is over.
  bool wait(std::chrono::nanoseconds time);
  void cancel();  // stops writing; a later run begins anew

  Cut cut() const { return cut_; }
  StoreReport report() const;

 private:
  enum class State : std::uint8_t { kCollecting, kWriting, kFinished, kFailed };

  void write();
  void fail(const std::string& reason);

  const What& what_;
  const StoreUse use_;
  const Codec codec_;
  const Cut cut_;
  const int threads_;
  const std::unique_ptr<Spool> spool_;
  std::atomic<State> state_{State::kCollecting};
  std::atomic<bool> cancelled_{false};
  std::shared_ptr<const Source> store_;  // set before state_ says kFinished
  std::thread writer_;
  int epochs_ = 0;  // that were delivered to their end

  mutable Mutex mutex_;
  Condition changed_;
  std::string reason_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater
