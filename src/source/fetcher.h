// SPDX-License-Identifier: Apache-2.0
// Fetcher: samples that come from far away, many at a time, each perhaps part of the way through
// its pipeline. What a source has that knows the stream of samples it is read for; Source::read()
// is the same one by one, as stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutwater/pipeline.h"
#include "cutwater/remote.h"
#include "cutwater/source.h"

namespace cutwater {

// What a fetcher brings samples for.
struct FetchJob {
  Pipeline pipeline;
  std::uint64_t seed = 0;
  std::string policy;  // what may be done at the other end
  int threads = 1;     // that finish samples here
  std::shared_ptr<BufferPool> pool;
  int in_flight = 64;  // samples that are asked for or wait here to be made, once it has begun
};

struct Fetched {
  std::uint64_t token = 0;
  std::optional<Result<Sample>> sample;  // nothing: read it from the source
  std::size_t bytes = 0;                 // that came for it
  std::string path = {};       // where it comes from, for people; empty: as the source says
  std::size_t way = 0;         // how it was sent, by the fetcher's own count
  double work_bytes = 0;       // of `bytes`, those that there is still work with
  std::size_t held_bytes = 0;  // that it takes in memory, where that is more than `bytes`
};

// Every method may be called from any thread.
class Fetcher {
 public:
  virtual ~Fetcher() = default;  // as close()

  // Each is among those that wait() returns, once, sooner or later: as a sample or as a failure.
  // `as_stored`: nothing may have been done to it.
  virtual void ask(std::uint64_t token, SampleId id, std::uint32_t epoch, bool as_stored) = 0;
  // What has arrived since the last call; waits for something. Empty: it is closed.
  virtual std::vector<Fetched> wait() = 0;
  virtual void close() = 0;

  virtual std::size_t usual_bytes() const = 0;  // of memory that a sample takes as it comes
  // How the job goes, for what is decided from it: seconds since it began, and in which the
  // consumer waited for batches; samples that were handed out; seconds in which its threads did not
  // wait, summed over them.
  struct Progress {
    double seconds = 0, consumer_waited = 0;
    std::int64_t samples = 0;
    double busy = 0;
  };
  virtual void note(const Progress& progress) = 0;
  // What it took to make a sample of what has come, in seconds of a thread's CPU.
  virtual void took(const Fetched& fetched, double seconds) = 0;
  virtual FetchReport report() const = 0;
};

}  // namespace cutwater
