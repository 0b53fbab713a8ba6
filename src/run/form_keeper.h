// SPDX-License-Identifier: Apache-2.0
// FormKeeper: the engine's side of caches and of stores in the making. It may have a sample at some
// cut already, or want one that is being made when it comes by such a cut.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cutwater/sample.h"
#include "cutwater/source.h"

namespace cutwater {

// Where a sample came from: as it is stored, or kept, in memory or on a disk.
enum class From : std::uint8_t { kSource, kCache, kStore };

struct Kept {
  Sample sample;
  From from = From::kCache;
};

// What keepers have done for one thread.
struct KeeperWork {
  std::uint64_t cache_ns = 0;      // looking up, decoding and keeping in memory
  std::uint64_t spool_ns = 0;      // putting aside for a store
  std::uint64_t stored_bytes = 0;  // read from what was put aside, or from the store
  std::uint64_t stored_ns = 0;     // reading them
  std::vector<std::int64_t> hits;  // in memory, by the keeper's forms

  void move_to(KeeperWork& sum);  // and starts anew
};

inline void KeeperWork::move_to(KeeperWork& sum) {
  sum.cache_ns += std::exchange(cache_ns, 0);
  sum.spool_ns += std::exchange(spool_ns, 0);
  sum.stored_bytes += std::exchange(stored_bytes, 0);
  sum.stored_ns += std::exchange(stored_ns, 0);
  sum.hits.resize(std::max(sum.hits.size(), hits.size()));
  for (std::size_t form = 0; form < hits.size(); ++form)
    sum.hits[form] += std::exchange(hits[form], 0);
}

// Adds the time that it lives to a sum.
class Timed {
 public:
  explicit Timed(std::uint64_t& sum_ns) : sum_ns_(sum_ns), start_(Clock::now()) {}
  ~Timed() {
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_);
    sum_ns_ += static_cast<std::uint64_t>(time.count());
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t& sum_ns_;
  const Clock::time_point start_;
};

// A sample in an epoch: past the frontier it is of that epoch alone.
struct Turn {
  SampleId id = 0;
  std::uint32_t epoch = 0;
};

// Every method may be called from any thread; `work` is the calling thread's. Nothing in here
// changes a byte: a sample stands at its cut as if it had been run there just now.
class FormKeeper {
 public:
  virtual ~FormKeeper() = default;

  // The sample at a cut; nothing: it has to be read. It asks `into` before it allocates, for what
  // it reads and what it unpacks; where it then finds nothing, that is given back by whoever
  // called.
  virtual std::optional<Kept> find(Turn turn, const ReadContext& into, KeeperWork& work) = 0;
  // The first cut, not before `from`, at which it wants a sample that is being made, from the
  // source or from what a keeper had; nothing: it does not want it any more.
  virtual std::optional<Cut> wants(Turn turn, Cut from, From made_from) = 0;
  // A sample at the cut that it wanted it at, and what it took to make it so far. Whether it is
  // kept is the keeper's matter, and so is whatever goes wrong: it does not throw.
  virtual void keep(const Sample& sample, std::uint32_t epoch, double seconds,
                    KeeperWork& work) = 0;

  // What a sample that had to be read usually takes of storage's time, by those of late.
  virtual void learn_read(double /*seconds*/) {}

  // Whether it may lack samples that it would take in spare time.
  virtual bool refills() const { return false; }
  // One that it lacks and has room for, so that nothing else makes way: each call looks at some of
  // the others; nothing: none of those.
  virtual std::optional<SampleId> lacks() { return std::nullopt; }
  // As keep(), of one that it lacks, but nothing makes way for it. Whether it was kept.
  virtual bool keep_ahead(const Sample& /*sample*/, std::uint32_t /*epoch*/, double /*seconds*/,
                          KeeperWork& /*work*/) {
    return false;
  }
};

// Two keepers, the faster one first. Nothing is made for them in spare time: what one lacks, the
// other may have.
class TwoKeepers final : public FormKeeper {
 public:
  // REQUIRES: both outlive this.
  TwoKeepers(FormKeeper& first, FormKeeper& second) : first_(first), second_(second) {}

  std::optional<Kept> find(Turn turn, const ReadContext& into, KeeperWork& work) override {
    std::optional<Kept> kept = first_.find(turn, into, work);
    return kept ? std::move(kept) : second_.find(turn, into, work);
  }
  std::optional<Cut> wants(Turn turn, Cut from, From made_from) override {
    const std::optional<Cut> one = first_.wants(turn, from, made_from),
                             other = second_.wants(turn, from, made_from);
    if (!one || !other) return one ? one : other;
    return std::min(*one, *other);
  }
  void keep(const Sample& sample, std::uint32_t epoch, double seconds, KeeperWork& work) override {
    for (FormKeeper* keeper : {&first_, &second_})
      if (keeper->wants({sample.id, epoch}, sample.cut, From::kSource) == sample.cut)
        keeper->keep(sample, epoch, seconds, work);
  }
  void learn_read(double seconds) override {
    first_.learn_read(seconds);
    second_.learn_read(seconds);
  }

 private:
  FormKeeper &first_, &second_;
};

}  // namespace cutwater
