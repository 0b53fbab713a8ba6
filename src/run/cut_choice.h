// SPDX-License-Identifier: Apache-2.0
// Which stable cut a cache or a store keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cutwater/options.h"

namespace cutwater {

// Which cut to keep, and why, in words.
struct CutChoice {
  Cut cut = 0;
  std::string why;
};

// What samples weigh and cost at each stable cut, by some that were read and run. No profile is
// needed, and whatever is chosen by it, the bytes delivered are the same.
class CutTrials {
 public:
  // Runs the samples, a second at most. `bytes_per_second`: what the place where they will be kept
  // gives to a thread. Throws Error(kInvalidArgument) that begins with `what_for`.
  CutTrials(const std::string& what_for, const What& what, const Codec& codec,
            double bytes_per_second, bool fuse);

  // The cut with which an epoch would take the least time when samples at it fill `room_bytes`.
  // Where several jobs share what is kept, each sample being taken by all of them while it is
  // there, only one of them misses what does not fit: so a later cut pays in less room, as long as
  // what is there outlasts the distance between the jobs.
  CutChoice choose(std::size_t room_bytes, int jobs = 1) const;

  // How much a hit at a cut saves, measured by what it takes to make a sample and keep it there,
  // which may be more than to make it in one go; past the frontier, a hit saves nearly all.
  double saved_share(Cut cut) const;

  // Whether a sample takes clearly more or less time than in these trials if reads take so long:
  // what was chosen may then be wrong.
  bool outdated(double read_seconds) const;
  // The same trials, had reads taken so long.
  CutTrials with_reads(double read_seconds) const;

  // As bytes, for other jobs: who chooses by the same figures chooses the same.
  std::vector<double> numbers() const;
  // Nothing: these are no trials of such a data set and pipeline.
  static std::optional<CutTrials> from_numbers(const What& what, std::span<const double> numbers);

 private:
  CutTrials() = default;

  struct AtCut {  // of a sample, on average
    double bytes = 0, make_seconds = 0, finish_seconds = 0;
  };

  double miss_seconds() const { return read_seconds_ + cuts_[0].finish_seconds; }

  Cut first_ = 0;  // the source's
  std::int64_t tried_ = 0, all_ = 0;
  double reach_ = 1;         // samples by which a job may leave its order to take what is there
  std::vector<AtCut> cuts_;  // from there to the frontier
  double read_seconds_ = 0;
};

// The cut that somebody chose. Throws Error(kInvalidArgument) for one that is not stable or lies
// before the source's.
CutChoice given_cut(const std::string& what_for, const What& what, const std::string& text);

}  // namespace cutwater
