// SPDX-License-Identifier: Apache-2.0
// CachedForms: keeps samples in a Cache, each in one stable form, as many as it takes, and finds
// them there in whichever form any job has kept them. Where other jobs draw alike, also fresh ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "cutwater/cache.h"
#include "cutwater/options.h"
#include "run/form_keeper.h"
#include "run/form_plan.h"
#include "run/leaving_seat.h"
#include "variant/form.h"

namespace cutwater {

class CachedForms final : public FormKeeper {
 public:
  // REQUIRES: use.cache; stable cuts, not before the source's; `what` outlives this.
  CachedForms(const What& what, const CacheUse& use, FormPlan plan);

  std::optional<Kept> find(Turn turn, const ReadContext& into, KeeperWork& work) override;
  std::optional<Cut> wants(Turn turn, Cut from, From made_from) override;
  void keep(const Sample& sample, std::uint32_t epoch, double seconds, KeeperWork& work) override {
    (void)put(sample, epoch, seconds, Room::kThatIsMade, work);
  }

  void learn_read(double seconds) override;

  bool refills() const override { return cache_->can_be_searched(); }
  std::optional<SampleId> lacks() override;
  bool keep_ahead(const Sample& sample, std::uint32_t epoch, double seconds,
                  KeeperWork& work) override {
    return put(sample, epoch, seconds, Room::kThatIsFree, work);
  }

  CacheSeat* seat() { return seat_ ? &*seat_ : nullptr; }  // null: the cache knows no jobs
  // The job is over; what its threads still do counts no more.
  void leave() {
    if (seat_) seat_->leave();
  }
  // What is wrong with the cache just now, in words; empty: nothing.
  std::string trouble() const { return cache_->trouble(); }
  // What was wrong in it so far: values that were not as they were kept. Empty: nothing.
  std::string damage() const;

  // `work` and `misses` are the engine's, which knows what became of them.
  CacheReport report(const KeeperWork& work, std::int64_t misses) const;

 private:
  // A form that this loader can go on from.
  struct Form {
    Form(const Pipeline& pipeline, Cut at, const Codec& in)
        : cut(at),
          codec(in),
          fresh(!pipeline.stable(at)),
          number(form_number(pipeline.fingerprint(at), in)) {}

    const Cut cut;
    const Codec codec;
    const bool fresh;
    const std::uint64_t number;  // CacheKey::form
    std::atomic<std::int64_t> kept{0}, kept_bytes{0}, offered{0}, offered_bytes{0};
    std::atomic<double> usual_density{0};  // about the median of what samples took, by the byte

    // Of a sample; nothing: none was offered yet.
    std::optional<double> usual_bytes() const {
      const std::int64_t samples = offered.load(std::memory_order_relaxed);
      if (samples == 0) return std::nullopt;
      return static_cast<double>(offered_bytes.load(std::memory_order_relaxed)) /
             static_cast<double>(samples);
    }
  };
  enum class Room : std::uint8_t { kThatIsMade, kThatIsFree };

  CacheKey key(const Form& form, Turn turn) const;
  Checksum checksum() const { return cache_->shared() ? Checksum::kXxh3 : Checksum::kNone; }
  Form* add(Cut cut, const Codec& codec);
  Form* at(Cut cut, const Codec& codec);
  Form* stable_form(SampleId id);
  Form* fresh_form();
  int jobs() const { return seat_ ? seat_->others() + 1 : 1; }
  int jobs_that_share() const;
  void choose_again();
  bool has_room(const Form& form, Turn turn) const;
  // Nothing need be made for it: what it weighs is known before it is asked for.
  bool stands_at(const Form& form, Cut from) const {
    return form.cut == from && from == what_.source->cut() && form.codec.is_none();
  }
  bool put(const Sample& sample, std::uint32_t epoch, double seconds, Room room, KeeperWork& work);
  // Of the seconds until a form is there, those that a hit saves.
  double saved_share(const Form& form) const {
    MutexLock lock(mutex_);
    return trials_ ? trials_->saved_share(form.cut) : 1;
  }
  double saved_seconds(Form& form, double seconds, double bytes) const;
  std::string name_of(const Form& form) const;

  const What& what_;
  const std::shared_ptr<Cache> cache_;
  const Codec codec_;
  const int jobs_expected_;  // who comes to a shared cache expects others
  const FormPlan plan_;
  const std::uint64_t data_;
  std::deque<Form> forms_;     // fresh first, then from the latest cut to the earliest
  std::vector<Form*> shares_;  // those of the plan's shares
  Form* fresh_ = nullptr;      // past the frontier
  std::optional<LeavingSeat> seat_;

  // One form for all samples, chosen for so many jobs, and by these trials.
  std::atomic<Form*> chosen_{nullptr};
  std::atomic<int> chosen_for_{0};
  // Each sample in its stable form, as when it was last made; zeros: it never was, or in another
  // form.
  struct Made {
    std::atomic<float> bytes{0}, density{0};  // seconds that it saves, by the byte
    std::atomic<bool> refused{false};
  };
  std::vector<Made> made_;
  // For a job that is alone nothing changes by itself: what was refused gets room that is free.
  bool drives_nothing_out(const Made& made) const {
    return made.refused.load(std::memory_order_relaxed) && jobs() == 1;
  }
  mutable Mutex mutex_;
  std::string why_ CUTWATER_GUARDED_BY(mutex_);
  std::optional<CutTrials> trials_
      CUTWATER_GUARDED_BY(mutex_);             // the plan's, with reads as of late
  int reads_ CUTWATER_GUARDED_BY(mutex_) = 0;  // since they were outdated

  std::atomic<std::int64_t> damaged_{0}, refused_{0};
  std::atomic<std::uint64_t> looked_at_{0};  // by lacks(); it does not begin at 0
};

}  // namespace cutwater
