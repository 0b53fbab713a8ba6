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
#include <vector>

#include "core/mutex.h"
#include "cutwater/options.h"
#include "cutwater/store.h"
#include "run/form_keeper.h"
#include "run/spool.h"
#include "store/meta.h"

namespace cutwater {

class StoreInMaking final : public FormKeeper {
 public:
  // What use leaves open is as an earlier run has begun it, if one has. Throws Error:
  // kInvalidArgument for a fresh cut or a folder with something else in it, kStale where a store of
  // something else was begun there, kIo. REQUIRES: there is no finished store at use.path.
  StoreInMaking(const What& what, const StoreUse& use, bool fuse, int threads);
  ~StoreInMaking() override;  // waits until a store that is being written is finished

  std::optional<Kept> find(Turn turn, const ReadContext& into, KeeperWork& work) override;
  std::optional<Cut> wants(Turn turn, Cut from, From made_from) override;
  // A disk without room ends the making, not the epoch: report() tells.
  void keep(const Sample& sample, std::uint32_t epoch, double seconds, KeeperWork& work) override;

  // An epoch was delivered to its end: time to write, if (nearly) all samples have come by.
  void epoch_over();
  // False: it is still being written when the time is over. Never if it is not being written.
  bool wait(std::chrono::nanoseconds time);
  void cancel();  // stops writing; a later run begins anew

  Cut cut() const { return plan_.cut; }
  StoreReport report() const;

 private:
  enum class State : std::uint8_t { kCollecting, kWriting, kFinished, kFailed };

  std::optional<Sample> find_in_spool(SampleId id, const ReadContext& into);
  std::optional<Sample> find_in_store(SampleId id, const ReadContext& into);
  void write();
  void fail(const std::string& reason);

  const What& what_;
  const StoreUse use_;
  const StorePlan plan_;  // its stamp is that of the data before the first sample was read
  const int threads_;
  Spool spool_;
  std::atomic<State> state_{State::kCollecting};  // changed under the mutex
  std::atomic<bool> cancelled_{false};
  // Set before state_ says kFinished.
  std::shared_ptr<const Source> store_;
  std::vector<SampleId> bad_;                // samples that are not in it, in order
  std::atomic<std::int64_t> unreadable_{0};  // times that another one could not be read from it
  std::thread writer_;
  int epochs_ = 0;  // that were delivered to their end

  mutable Mutex mutex_;
  Condition changed_;
  std::string reason_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace cutwater
