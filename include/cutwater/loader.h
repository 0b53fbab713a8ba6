// SPDX-License-Identifier: Apache-2.0
// Loader: batches of a data set, epoch after epoch. Start here.
//
//   Loader loader({.source = open_folder("train"), .pipeline = Pipeline::parse("decode | …",
//   all_ops()),
//                  .batch_size = 64, .shuffle = true, .seed = 7});
//   loader.begin();
//   while (std::optional<Batch> batch = loader.next()) step(*batch);
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/options.h"
#include "cutwater/profile.h"
#include "cutwater/remote.h"
#include "cutwater/sample.h"
#include "cutwater/tensor.h"

namespace cutwater {

// What the command line takes as --data: a store, a server's data set (grpc://HOST:PORT/NAME), or
// what open_source() takes. A store stands for the beginning of the pipeline: the pipeline of a
// loader is still the whole one.
std::shared_ptr<const Source> open_data(const std::string& data);

// A batch owns its memory: it is never overwritten while any copy of it lives.
class Batch {
 public:
  struct FieldView {
    std::string name;
    TensorSpec spec;     // first dimension: the samples
    std::uint8_t* data;  // writable: the batch is the user's
  };

  std::uint32_t epoch = 0;
  std::int64_t index = 0;  // of this batch in its epoch
  std::vector<SampleId> ids;
  std::vector<FieldView> fields;  // in the source's order: image, label
  std::shared_ptr<const void> memory;

  std::int64_t size() const { return static_cast<std::int64_t>(ids.size()); }
  const FieldView* find(std::string_view name) const;
};

// Where a loader stands: what a checkpoint holds. Position counts samples of the epoch's order.
struct LoaderState {
  std::uint32_t epoch = 0;
  std::int64_t position = 0;
  std::int64_t batch = 0;
  // kReady: what was delivered out of order, beyond position. Hexadecimal digits of four samples
  // each, from position + 1 on, the first in the lowest bit; zeros at the end are left out.
  std::string done_beyond;
  // All that fixes the stream, by name: source, pipeline, seed, batch_size…
  std::vector<std::pair<std::string, std::string>> stream;
};

struct NamedOpTime {
  std::string name;
  double seconds = 0;
  std::uint64_t calls = 0;
};

// What ops have learned about samples (HowFast::index).
struct IndexStats {
  std::int64_t samples = 0, uses = 0;
  std::size_t bytes = 0;
};

struct LoaderStats {
  std::int64_t samples = 0, batches = 0;  // handed out
  std::int64_t reads = 0;                 // samples that were read, from the source or from a store
  std::uint64_t bytes_read = 0;           // for them
  double read_seconds = 0;                // summed over threads, as the ops
  std::uint64_t reads_queued = 0;         // that waited for storage without a thread; see HowFast
  std::vector<NamedOpTime> ops;           // in chain order
  double consumer_wait_seconds = 0;  // next() waited for a batch: high means the loader is slow
  double worker_wait_seconds = 0;    // threads waited for room: high means the consumer is slow
  double first_batch_seconds = 0;    // from begin() to the first batch
  double elapsed_seconds = 0;        // from the first begin() to the last batch
  int threads = 0;
  std::size_t memory_limit = 0, memory_peak = 0;
  IndexStats index;
  std::optional<CacheReport> cache;  // where there is one
  std::optional<StoreReport> store;  // where there is, or will be, one
  std::optional<FetchReport> fetch;  // where samples come from servers
  std::vector<Failure> skipped, substituted;
  std::string bound_by;  // "storage", "cpu", "consumer" or "memory", with the reason
};

// Not thread-safe, but stats(), cache_trouble(), cache_damage(), profile() and close() may be
// called from any thread.
class Loader {
 public:
  // Throws Error(kInvalidArgument) that names the field.
  explicit Loader(What what, const HowFast& how = {});
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  // Starts the next epoch (0 at first; see set_epoch). The rest of an unfinished one is dropped.
  void begin();
  // The next batch, or nothing at the end of the epoch. Throws Error: what was wrong with a sample
  // (kBadSample), kCancelled after close().
  std::optional<Batch> next();
  // Waits until next() would not; false when the time ran out first.
  bool wait(std::chrono::nanoseconds time);

  void set_epoch(std::uint32_t epoch);  // the epoch that the next begin() starts
  std::uint32_t next_epoch() const;
  std::int64_t batches_per_epoch() const;  // assuming no bad samples

  LoaderState state() const;
  // Continues exactly there. Throws Error(kInvalidArgument) when the state is of another stream.
  void restore(const LoaderState& state);

  // Waits while a store (HowFast::store) is being written, which begins when an epoch was had to
  // its end. False: it is still being written when the time is over. True: it is finished or
  // failed, as stats().store says, or there is none being written. The destructor waits for it as
  // well, unless close() ended that, too.
  bool finish_store(std::chrono::nanoseconds time);

  LoaderStats stats() const;
  // What is wrong with the cache just now, in words; empty: nothing. Samples are made without it
  // meanwhile.
  std::string cache_trouble() const;
  // That it has given other bytes than were kept in it, how often, and what that points to; empty:
  // it has not. Those samples were made anew.
  std::string cache_damage() const;
  // Of the samples so far that HowFast::profile had run op by op. Times are sums over ops: not less
  // than what fused ops take. It knows no codec but "none" and no rates of storage and memory.
  // Throws Error(kInvalidArgument) where nothing was recorded.
  Profile profile() const;
  // The consumer does not go on with this epoch: next() has nothing more until begin(), no more
  // samples are made, and who shares the cache need not keep any for it.
  void leave_epoch();
  // Ends all work; next() throws from now on. Batches handed out stay valid.
  void close();

  const What& what() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cutwater
