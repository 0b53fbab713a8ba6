// SPDX-License-Identifier: Apache-2.0
// Keeping: what it takes of the machine and of the cache to keep samples in one way or another.
#pragma once

#include <optional>
#include <vector>

#include "plan/cache_model.h"

namespace cutwater {

// A sample is not kept; or it passes: one of the jobs makes it, the others take it from the cache
// soon after, and it makes way; or it is resident, and all jobs take it from the cache.
enum class Kept { kNot, kPassing, kResident };

struct Sharing {
  double jobs = 1;
  // Of the samples that pass, this share is in the cache at any time, where there is room: on its
  // way from the job that made them to the last one that takes them.
  double window_share = 0;
  // Of the other jobs, those that find a sample which passes. The rest come too late, and make it.
  double handed = 1;
  // Of CacheModel::fresh: jobs of one seed hand it to each other. One of them makes it of a miss or
  // of a resident stable form; nothing else passes then.
  std::optional<std::size_t> fresh = {};
};

// By how many samples, of all, a job comes after the one that made a sample, on average. Each of
// the others comes by chance, so the last of them takes 1 + 1/2 + … + 1 / (jobs - 1) times as long.
double lag_share(const Sharing& sharing);

struct FormUse {
  double share = 0;           // of the samples that are assigned to the form
  double resident_share = 0;  // of all samples: resident in it
  double bytes = 0;           // per sample of the data set, those that pass included
};

// Averages over all accesses, or per sample of the data set.
struct Fill {
  Amounts later, first;  // in the first epoch, the cache is empty
  double bytes = 0, window_bytes = 0;
  double hit_rate = 0;
  std::vector<FormUse> forms;  // as in the model

  void add(double times, const Fill& other);
};

class Keeping {
 public:
  // REQUIRES: the model outlives this.
  Keeping(const CacheModel& model, const Sharing& sharing) : model_(model), sharing_(sharing) {}

  Fill empty() const;     // no sample yet; what is handed on fresh is there
  Fill not_kept() const;  // all samples
  // Adds `share` of the data set: samples like this profiled one. REQUIRES: passes(), if it passes.
  void add(std::size_t form, std::size_t sample, Kept kept, double share, Fill& fill) const;

  bool passes() const { return sharing_.jobs > 1 && !sharing_.fresh; }
  Amounts miss(std::size_t sample) const { return part(model_.miss(sample)); }
  Amounts hit(std::size_t form, std::size_t sample) const { return part(model_.hit(form, sample)); }
  Amounts passing(std::size_t form, std::size_t sample) const;
  Amounts handed_on() const;       // fresh forms, by an access; nothing where there are none
  double handed_on_bytes() const;  // on their way, per sample of the data set
  double weight() const { return 1 / static_cast<double>(model_.classes()); }
  const Sharing& sharing() const { return sharing_; }

 private:
  // Of the accesses to a sample, those that go to its stable form or to the source.
  double makers() const { return sharing_.fresh ? 1 / sharing_.jobs : 1; }
  // Of the accesses to a sample that passes, those that find it.
  double found() const { return sharing_.handed * (1 - 1 / sharing_.jobs); }
  Amounts part(const Amounts& of) const;

  const CacheModel& model_;
  const Sharing sharing_;
};

}  // namespace cutwater
