// SPDX-License-Identifier: Apache-2.0
// Options in two halves: what is delivered, and how fast. No member of the second changes a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/cache.h"
#include "cutwater/pipeline.h"
#include "cutwater/source.h"

namespace cutwater {

enum class Order : std::uint8_t {
  kStrict,  // the seeded permutation; batches in order
  kReady,   // a batch closes when any B eligible samples are ready; same set, bounded displacement
};

enum class OnError : std::uint8_t {
  kRaise,       // a bad sample ends the epoch
  kSkip,        // it is left out and listed; batches stay full
  kSubstitute,  // the next good sample of the listing takes its place
};

// By their names in Python and on the command line. Throw Error(kInvalidArgument).
Order order_named(std::string_view name);
OnError on_error_named(std::string_view name);

// Bad samples and how many of them an epoch may have before it ends after all.
struct BadSamples {
  OnError policy = OnError::kRaise;
  std::optional<std::int64_t> max_count;
  std::optional<double> max_share;  // of the data set
};

// What is delivered: every member changes what the consumer sees.
struct What {
  std::shared_ptr<const Source> source;
  Pipeline pipeline;
  std::int64_t batch_size = 1;
  bool shuffle = false;
  std::uint64_t seed = 0;
  bool drop_last = false;
  Order order = Order::kStrict;
  // kReady: a sample is delivered at most so many batches after its turn, which is its place in the
  // strict order, unless other jobs at the same cache change that.
  std::int64_t max_late_batches = 4;
  BadSamples bad_samples = {};
};

// Samples kept in a cache at a stable cut, for later epochs and other jobs to go on from; where
// jobs draw alike (same seed, same epoch), also past the frontier.
struct CacheUse {
  std::shared_ptr<Cache> cache;  // null: none
  std::string cut;               // a name or a number; empty: chosen on some samples
  std::string codec = "none";
  // Several forms, each with the share of the samples that is kept in it: "source=0.3,decode=0.7",
  // or with a codec, "decode:lz4=0.7". What is left of 1 is not kept. Empty: one form.
  std::string split = {};
  std::string job = {};  // this loader's name among the cache's jobs; empty: by host and process
  int jobs = 1;          // that are expected to go through the data set together, this one included
  // The cache may have been there, or stay there, while files of the data set change.
  bool outlives_loader = false;
};

// The cache that a text stands for: "2GiB" is a new one in this process, of that size; "shared" and
// "unix:PATH" that of `cutwater cache serve`; "redis://…" and "rediss://…" a Redis server's. Throws
// Error(kInvalidArgument) that names what there is; also for a size that is more than the memory
// that this process may use.
std::shared_ptr<Cache> cache_named(std::string_view text);

// A store of a stable cut: used where it is there, else made as a by-product of the first epoch.
struct StoreUse {
  std::string path;   // empty: none
  std::string cut;    // a name or a number; empty: that of the store, or chosen on some samples
  std::string codec;  // empty: that of the store, or "none"
};

// What became of it.
struct StoreReport {
  std::string path, cut, codec;
  // "source": it was there; "collecting", "writing", then "finished", and samples come from it; or
  // "failed", with the reason, and samples come from where they always did.
  std::string state, reason;
  std::int64_t samples = 0;  // that have been put aside for it
  std::uint64_t bytes = 0;   // of them, on the disk until it is finished
  // Times that a sample put aside, or one of the store finished here, was not what had been
  // written, or could not be read: it was made from the data set again.
  std::int64_t damaged = 0;
  double seconds = 0;  // putting samples aside, summed over threads
};

// How fast: no member changes a byte.
struct HowFast {
  std::optional<int> threads;                    // unset: the cores this process may use
  std::optional<std::size_t> memory_limit;       // unset: a quarter of the memory, at most 4 GiB
  std::optional<std::int64_t> prefetch_batches;  // finished or in the making; unset: by threads
  bool fuse = true;
  // Reads from slow storage that are under way while the threads work; 0: each thread reads for
  // itself. Unset: 32. Where the operating system has no io_uring, it is as 0.
  std::optional<int> reads_in_flight = {};
  // What ops learn about samples in one epoch (where the parts of a JPEG begin) speeds up the next.
  // "memory": for as long as the loader lives; "beside": also kept as a file in the data set's
  // folder; "off"; or the path of that file.
  std::string index = "memory";
  // What servers of the data set (remote.h) may do before they send a sample: "auto", "none"… Where
  // there is no server, it says nothing.
  std::string policy = "auto";
  CacheUse cache = {};  // besides memory_limit
  StoreUse store = {};
  // Some samples run op by op, which is slower, and tell what they weigh and cost: one in 64, or
  // 256 an epoch if that is more, each once, 4096 in all. Loader::profile() has them.
  bool profile = false;
};

}  // namespace cutwater
