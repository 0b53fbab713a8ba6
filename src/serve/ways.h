// SPDX-License-Identifier: Apache-2.0
// Ways to send a sample: as stored, an excerpt of it, or at a later cut in some codec. What each
// would weigh and cost is estimated from the sample's own size, header and draws, by what earlier
// ones turned out to be.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/mutex.h"
#include "cutwater/cache.h"
#include "cutwater/pipeline.h"
#include "cutwater/variant.h"

namespace cutwater::serve {

struct Way {
  Cut cut = 0;
  Codec codec;
  bool excerpt = false;  // at cut 0: only what the draws need

  bool operator==(const Way&) const = default;
};

// What a sample takes in one way. Infinite bytes: it is not to be had so.
struct Offer {
  double bytes = 0;    // on the wire
  double seconds = 0;  // of this machine's CPU, besides reading
};

// What is known of a sample before any op has run.
struct Facts {
  double stored_bytes = 0;
  double excerpt_share = 1;  // of them; 1: there is no excerpt
  bool learned = false;      // ops have seen it before, and go on from what they learned
  double needed_bytes = 0;   // of those as stored: an excerpt's, or all where there is none
  bool kept = false;         // a cache has it at the frontier: fresh cuts are made from there
};

// What a byte in each way costs whoever gets it, and, as stored, one of the needed part besides.
// Null: 1 in all ways.
struct Worths {
  std::vector<double> byte;
  double needed = 0;
};
using Worth = std::shared_ptr<const Worths>;
// What so many bytes of a sample cost in all.
inline double cost_of(const Worth& worth, const Facts& facts, std::size_t way, double bytes) {
  if (!worth) return bytes;
  return worth->byte[way] * bytes + (way == 0 ? worth->needed * facts.needed_bytes : 0);
}

// Of one data set and pipeline; shared by all who ask for it. Any thread.
class WayBook {
 public:
  // The first way is "as stored".
  WayBook(const Pipeline& pipeline, std::vector<Way> ways);

  const std::vector<Way>& ways() const { return ways_; }
  // CacheKey::form of a way that is the same in every epoch; none: it is not, or is as stored.
  const std::optional<std::uint64_t>& form(std::size_t way) const { return forms_[way]; }
  // That of the frontier, without a codec: what ways at fresh cuts can be made from. None: samples
  // are stored there, or past it.
  const std::optional<std::uint64_t>& frontier_form() const { return frontier_form_; }
  bool is_fresh(const Way& way) const { return !way.excerpt && way.cut > frontier_; }

  // One offer for each way; of those that nobody has tried yet, what can be told without.
  void estimate(const Facts& facts, std::vector<Offer>& offers) const;
  // The best of a sample's offers where a second is worth `price` bytes; 0: as stored.
  static std::size_t best(const std::vector<Offer>& offers, double price,
                          const Worth& worth = nullptr, const Facts& facts = {});

  // What a sample took; and, of a way with a codec, the seconds before that: so much one takes
  // without it. 0: nobody knows.
  void learn(std::size_t way, const Facts& facts, const Offer& was, double before_codec_s = 0);
  // A way that should be tried on this sample besides: one that is hardly known for such samples
  // and not on trial already, or, now and then, one that nobody takes.
  std::optional<std::size_t> to_try(const Facts& facts);
  // Whether its cost for such samples is only guessed, or was measured once, with nothing warm.
  bool is_guessed(std::size_t way, const Facts& facts) const;

 private:
  struct Cost {
    std::int64_t tried = 0, on_trial = 0;
    double seconds = 0;  // for each byte as stored
  };
  // What ops begin with, on which a way's cost depends: a file that they see for the first time, or
  // again, or a form that was kept.
  enum Start : std::uint8_t { kNew, kLearned, kKept, kStarts };
  struct Known {
    std::int64_t tried = 0;
    double bytes = 0;  // for each unit
    Cost costs[kStarts];

    const Cost& cost(Start start) const;
  };
  Start start(std::size_t way, const Facts& facts) const;
  double unit(std::size_t way, const Facts& facts) const;

  std::vector<Way> ways_;
  Cut frontier_;
  std::vector<std::optional<std::uint64_t>> forms_;
  std::optional<std::uint64_t> frontier_form_;
  std::vector<double> fixed_bytes_;  // of each way's cut where every sample has the same; else 0
  std::vector<std::optional<std::size_t>> plain_;  // of each with a codec: the one without
  mutable Mutex mutex_;
  std::vector<Known> known_ CUTWATER_GUARDED_BY(mutex_);
  std::uint64_t asked_ CUTWATER_GUARDED_BY(mutex_) = 0;
};

}  // namespace cutwater::serve
