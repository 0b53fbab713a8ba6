// SPDX-License-Identifier: Apache-2.0
// FormPlan: what a loader keeps of its samples in a cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cutwater/options.h"
#include "run/cut_choice.h"

namespace cutwater {

// A form, and the share of the samples that are kept in it.
struct FormShare {
  Cut cut = 0;
  Codec codec;
  double share = 1;
};

struct FormPlan {
  std::vector<FormShare> shares;    // empty: one form for all, the one that pays by the trials
  std::optional<CutTrials> trials;  // unset: the shares are given
  std::string why;                  // they were chosen
};

// What was asked for, or measures what it takes to choose. Throws Error(kInvalidArgument).
FormPlan plan_forms(const What& what, const CacheUse& use, bool fuse);
// One form for all samples.
FormPlan one_form(const CutChoice& choice, const Codec& codec);

// "source=0.3,decode:lz4=0.5". Throws Error(kInvalidArgument) where a cut is not stable, or the
// shares are more than all.
std::vector<FormShare> parse_split(const What& what, const std::string& text, const Codec& codec);

// Where to keep fresh forms for jobs that draw alike: of the cuts past the frontier with the fewest
// bytes, the last. Only what is known without a sample counts, so that all jobs with this pipeline
// keep the same one. Nothing: there is none, or no size is known.
std::optional<Cut> fresh_cut(const What& what);

}  // namespace cutwater
