// SPDX-License-Identifier: Apache-2.0
// Stores: samples prepared once, at a stable cut, as tar shards that other tools read as well. A
// store is a source that stands at that cut. src/store/FORMAT.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cutwater/pipeline.h"
#include "cutwater/source.h"
#include "cutwater/variant.h"

namespace cutwater {

// What a store will take, from some samples made on trial and some bytes written.
struct StoreForecast {
  std::int64_t samples = 0;
  std::uint64_t bytes = 0, free_bytes = 0;
  double seconds = 0;
};

struct MaterializeProgress {
  std::int64_t done = 0, samples = 0;  // bad samples are done, too
  std::int64_t resumed = 0;            // of the done ones: found finished
  std::uint64_t bytes = 0;
};

struct MaterializeOptions {
  Codec codec = {};
  std::optional<int> threads = {};  // unset: the cores this process may use
  // Called once, before anything is written that stays; not for a store that is finished.
  std::function<void(const StoreForecast&)> on_forecast = {};
  // Called by the calling thread some times a second, and at the end; what it throws ends the work,
  // which a later call goes on with.
  std::function<void(const MaterializeProgress&)> on_progress = {};
};

struct StoreInfo {
  std::int64_t samples = 0;     // of the data set, the bad ones included
  std::uint64_t bytes = 0;      // of the shards
  std::uint64_t raw_bytes = 0;  // of the tensors in them, before the codec
  // Of the same, encoded; known to materialize() only. More than raw_bytes: the codec does not pay.
  std::optional<std::uint64_t> payload_bytes = {};
  Cut cut = 0;
  std::string cut_name, pipeline, fingerprint;  // the pipeline's text up to the cut
  Codec codec;
  std::string source_identity, source_stamp;
  std::vector<Failure> bad;  // samples that could not be made, and why
};

// Runs the steps up to `cut` on every sample and writes the results to the folder `path`. The same
// data, pipeline, cut and codec give the same files, byte for byte, however often the work was
// killed and begun again. Goes on with what an earlier call left there; a finished store of the
// same is left as it is. Throws Error: kInvalidArgument (a fresh cut, a folder with something else
// in it), kStale (what is there was begun with other data or another pipeline), kIo (no room:
// before the work by the forecast, or in the middle; what is finished stays), the failure of a
// sample that is not kBadSample, and that of the first sample where not one is good.
StoreInfo materialize(const std::shared_ptr<const Source>& source, const Pipeline& pipeline,
                      Cut cut, const std::string& path, const MaterializeOptions& options = {});

bool is_store(const std::string& path);  // a finished one, damaged or not
StoreInfo store_info(const std::string& path);

// Whether a store can stand for this data and the beginning of this pipeline. Throws Error(kStale)
// that says what differs. May take a system call for each sample of the source (Source::stamp).
void check_store_is_of(const StoreInfo& store, const Source& source, const Pipeline& pipeline);

// Stands at the store's cut and has the labels, classes, identity and bad samples of the data it
// was made of: a state saved with one is a state of the other. Every read checks a checksum. Throws
// Error: kNotFound, kInvalidArgument for a damaged or hostile index.
std::shared_ptr<const Source> open_store(const std::string& path);

struct StoreDamage {
  std::string file;
  std::int64_t sample = -1;  // -1: not of one sample
  std::string reason;
};
// Reads every byte of the store; nothing is damaged when the list is empty. Throws Error(kNotFound)
// where there is no store at all.
std::vector<StoreDamage> verify_store(
    const std::string& path,
    const std::function<void(const MaterializeProgress&)>& on_progress = {});

}  // namespace cutwater
