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

  // One offer for each way; of those that nobody has tried yet, what can be told without.
  void estimate(const Facts& facts, std::vector<Offer>& offers) const;
  // The best of a sample's offers where a second is worth `price` bytes; 0: as stored.
  static std::size_t best(const std::vector<Offer>& offers, double price,
                          const Worth& worth = nullptr, const Facts& facts = {});

  void learn(std::size_t way, const Facts& facts, const Offer& was);
  // A way that should be tried on this sample besides: one that is hardly known for such samples
  // and not on trial already, or, now and then, one that nobody takes.
  std::optional<std::size_t> to_try(const Facts& facts);

 private:
  struct Cost {
    std::int64_t tried = 0, on_trial = 0;
    double seconds = 0;  // for each byte as stored
  };
  struct Known {
    std::int64_t tried = 0;
    double bytes = 0;  // for each unit
    Cost costs[2];     // of samples that ops see for the first time, and again

    const Cost& cost(const Facts& facts) const {
      return costs[facts.learned].tried > 0 ? costs[facts.learned] : costs[!facts.learned];
    }
  };
  double unit(std::size_t way, const Facts& facts) const;

  std::vector<Way> ways_;
  std::vector<double> fixed_bytes_;  // of each way's cut where every sample has the same; else 0
  mutable Mutex mutex_;
  std::vector<Known> known_ CUTWATER_GUARDED_BY(mutex_);
  std::uint64_t asked_ CUTWATER_GUARDED_BY(mutex_) = 0;
};

}  // namespace cutwater::serve
