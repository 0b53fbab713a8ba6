// SPDX-License-Identifier: Apache-2.0
#include "loader_setup.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/machine.h"
#include "core/sha256.h"
#include "core/units.h"
#include "cutwater/remote.h"
#include "cutwater/store.h"

namespace cutwater {
namespace {

// Enough for one disk or server to be busy, and for a hundred samples of 100 KB a few megabytes.
constexpr int kReadsInFlight = 32, kFarReadsInFlight = 64;
constexpr int kMostReadsInFlight = 4096;

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

}  // namespace

void check(const What& what, const HowFast& how) {
  if (!what.source) refuse("a loader needs a source");
  if (what.batch_size < 1)
    refuse("batch_size must be at least 1, got " + std::to_string(what.batch_size));
  if (what.max_late_batches < 1)
    refuse("max_late_batches must be at least 1, got " + std::to_string(what.max_late_batches));
  if (what.source->cut() > what.pipeline.last_cut())
    refuse("the source stands at cut " + std::to_string(what.source->cut()) +
           ", past the pipeline's last cut " + std::to_string(what.pipeline.last_cut()));
  if (const std::string made_by = what.source->fingerprint();
      !made_by.empty() && made_by != what.pipeline.fingerprint(what.source->cut()))
    throw Error(Code::kStale, "the samples were prepared up to cut " +
                                  std::to_string(what.source->cut()) + " of another pipeline, '" +
                                  what.source->pipeline() + "', than this one, '" +
                                  what.pipeline.to_string() +
                                  "'; use that pipeline, or prepare the samples again");
  const BadSamples& bad = what.bad_samples;
  if (bad.max_count && *bad.max_count < 0)
    refuse("max_errors must not be negative, got " + std::to_string(*bad.max_count));
  if (bad.max_share && !(*bad.max_share >= 0 && *bad.max_share <= 1))
    refuse("max_errors as a share must be in 0..1, got " + std::to_string(*bad.max_share));
  if (how.threads && (*how.threads < 1 || *how.threads > kMostThreads))
    refuse("num_workers must be in 1.." + std::to_string(kMostThreads) + ", got " +
           std::to_string(*how.threads));
  check_offload_policy(how.policy);
  if (how.reads_in_flight &&
      (*how.reads_in_flight < 0 || *how.reads_in_flight > kMostReadsInFlight))
    refuse("reads_in_flight must be in 0.." + std::to_string(kMostReadsInFlight) + ", got " +
           std::to_string(*how.reads_in_flight));
  if (how.prefetch_batches && *how.prefetch_batches < 1)
    refuse("prefetch must be at least 1 batch, got " + std::to_string(*how.prefetch_batches));
}

ExecutorOptions resolve(const What& what, const HowFast& how) {
  constexpr std::size_t kMostByDefault = std::size_t{4} << 30;
  ExecutorOptions options;
  options.threads = how.threads ? *how.threads : default_threads();
  options.memory_limit = std::min(usable_memory_bytes() / 4, kMostByDefault);
  if (const char* limit = std::getenv("CUTWATER_MEMORY_LIMIT"); limit != nullptr)
    options.memory_limit = parse_bytes("the environment's CUTWATER_MEMORY_LIMIT", limit);
  options.memory_limit = how.memory_limit.value_or(options.memory_limit);
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  if (options.memory_limit < kLeast)
    refuse("memory_limit must be at least 1 MiB, got " + std::to_string(options.memory_limit) +
           " bytes");
  options.reads_in_flight =
      how.reads_in_flight.value_or(what.source->far_away() ? kFarReadsInFlight : kReadsInFlight);
  if (what.source->stored_bytes() == nullptr && !what.source->far_away())
    options.reads_in_flight = 0;
  options.policy = how.policy;
  if (options.reads_in_flight > 0)
    options.reads_in_flight = std::max(options.reads_in_flight, options.threads);
  const std::int64_t enough_for_threads =
      3 + (2 * options.threads + options.reads_in_flight) / what.batch_size;
  options.prefetch_batches =
      how.prefetch_batches.value_or(std::max<std::int64_t>(4, enough_for_threads));
  options.fuse = how.fuse;
  if (how.profile && what.source->cut() != 0)
    refuse("profile: samples come prepared from cut '" +
           what.pipeline.cut_name(what.source->cut()) +
           "' on; leave it off, or load the data set that they were prepared from");
  return options;
}

WithStore with_store(What what, const StoreUse& use) {
  if (use.path.empty() || !is_store(use.path)) return {std::move(what), {}};
  const StoreInfo store = store_info(use.path);
  check_store_is_of(store, *what.source, what.pipeline);
  const auto differs = [&](const char* what_differs, const std::string& there,
                           const std::string& asked) {
    throw Error(Code::kStale, "the store " + use.path + " has " + what_differs + " '" + there +
                                  "', not '" + asked +
                                  "'; leave that open, or give another folder");
  };
  if (!use.cut.empty() && what.pipeline.cut_named(use.cut) != store.cut)
    differs("the cut", store.cut_name, use.cut);
  if (!use.codec.empty() && codec_named(use.codec) != store.codec)
    differs("the codec", to_string(store.codec), use.codec);
  if (what.source->cut() > store.cut)
    refuse("the source stands at cut '" + what.pipeline.cut_name(what.source->cut()) +
           "' already, past that of the store " + use.path + ", '" + store.cut_name + "'");
  what.source = open_store(use.path);
  StoreReport report{use.path,      store.cut_name, to_string(store.codec), "source", {},
                     store.samples, store.bytes};
  return {std::move(what), std::move(report)};
}

Learned::Learned(const What& what, const HowFast& how, std::size_t memory_limit) {
  const bool kept = how.index != "memory" && how.index != "off", beside = how.index == "beside";
  // A word that was meant as one of these must not become a file.
  if (kept && !beside && how.index.find('/') == std::string::npos && !how.index.ends_with(".hints"))
    refuse("index must be memory, beside, off, or a path with a '/' or the ending .hints, got '" +
           how.index + "'");
  if (beside && what.source->home().empty())
    refuse("index: this source has no folder of its own to keep a file beside; give a path");
  if (how.index == "off" || !how.fuse) return;
  for (const Group& group :
       what.pipeline.groups(what.source->cut(), what.pipeline.last_cut(), true)) {
    if (group.fusion == nullptr || !group.fusion->takes_hints || group.begin != 0) continue;
    book_.emplace(what.source->size(), memory_limit / 8);
    // Hints are the first step's: what follows it may differ.
    if (kept)
      file_.emplace(
          *book_,
          sha256_hex(what.pipeline.fingerprint(1) + " " + what.source->identity()).substr(0, 32),
          what.source->home(), beside ? "" : how.index);
    return;
  }
}

}  // namespace cutwater
