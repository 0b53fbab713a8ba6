// SPDX-License-Identifier: Apache-2.0
// What a trainer orders of a near-storage server, and what it gets.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/shared_bytes.h"
#include "cutwater/cache.h"
#include "cutwater/error.h"
#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "serve/ways.h"
#include "source/hint_book.h"

namespace cutwater::serve {

// A stream of samples that a trainer makes. Immutable.
struct Stream {
  std::shared_ptr<const Source> source;
  Pipeline pipeline;
  std::uint64_t seed = 0;
  std::shared_ptr<WayBook> book = nullptr;  // its first way is "as stored"
  bool always = false;                      // the last way, whatever it weighs, if nobody waits
  std::uint64_t data = 0;                   // CacheKey::data
  SampleId first = 0;                       // Begin.first: added to an id where draws are made
  // What ops have learned of the data set's samples, whoever asked for them; null: nothing is.
  std::shared_ptr<HintBook> hints = nullptr;
};

struct Order {
  std::uint64_t token = 0;
  SampleId id = 0;
  std::uint32_t epoch = 0;
  double price = 0;  // bytes that a second of CPU must save
  std::shared_ptr<const Stream> stream;
  bool as_stored = false;
  double within_s = 0;  // that it may wait for a maker; 0: as long as the workshop thinks
  Worth worth = nullptr;
  std::shared_ptr<const std::atomic<bool>> given_up = nullptr;  // whoever ordered it has left
};

// Whether an answer was made of what the server's cache had. A miss: it could have been.
enum class CacheUse : std::uint8_t { kNone, kHit, kMiss };

struct Answer {
  std::uint64_t token = 0;
  std::size_t way = 0;
  double stored_bytes = 0, seconds = 0;  // CPU, besides reading
  std::vector<Offer> offers;             // as estimated; empty: there was nothing to choose
  std::string path = {};                 // of the sample, for people
  bool ran_less = false;                 // than the trainer asked for
  CacheUse cache = CacheUse::kNone;
  Result<SharedBytes> form = Failure{};
};

}  // namespace cutwater::serve
