// SPDX-License-Identifier: Apache-2.0
// Plan: which cut to prepare once, in which codec and where; what to keep in a cache that jobs
// share; or what a server near the storage does. Decided from a profile alone. Pure: the same
// profile and options give the same plan, anywhere. docs/plan.md explains the model.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/offload.h"
#include "cutwater/profile.h"
#include "cutwater/variant.h"

namespace cutwater {

enum class Policy : std::uint8_t {
  kAuto,    // the best of all policies: today, kPresto
  kNone,    // the unprepared pipeline
  kPresto,  // one stable cut of all samples, prepared once
  kSeneca,  // forms in one cache that several jobs share
  // What a server near the storage does of each sample (offload.h: OffloadPolicy).
  kSophon,
  kNoOff,
  kAllOff,
  kResizeOff,
  kPaper,
};

// Of kSophon to kPaper.
std::optional<OffloadPolicy> offload_policy(Policy policy);

enum class Place : std::uint8_t {
  kNone,    // nothing is prepared: every epoch begins at the source
  kStore,   // shards on disk, built before the first epoch
  kMemory,  // a cache of the loader, filled in the first epoch, never evicted
};

// What is in the page cache when a file is read.
enum class Residency : std::uint8_t {
  kFits,  // nothing at first; later whatever fits the memory as a whole
  kWarm,  // everything, from the start
  kCold,  // nothing, ever
};

// Money in any unit. A choice by price minimises disk + cores instead of seconds.
struct Prices {
  double disk_gb_month = 0;  // of 1e9 bytes
  double core_hour = 0;
  double months = 1;  // that a store is kept

  bool operator==(const Prices&) const = default;
};

// What so many bytes on disk and seconds of all threads cost.
double money_of(const Prices& prices, double disk_bytes, double seconds, double threads);

struct PlanOptions {
  Policy policy = Policy::kAuto;
  std::int64_t epochs = 10;                           // up to a million
  std::optional<std::uint64_t> disk_bytes = {};       // of a store; unset: no limit
  std::optional<std::uint64_t> memory_bytes = {};     // of caches, the page cache included
  std::optional<int> threads = {};                    // unset: the profile's
  std::optional<double> consumer_samples_per_s = {};  // unset: the profile's, if it has one
  Residency residency = Residency::kFits;
  std::optional<Prices> prices = {};
  // Of kSeneca alone. memory_bytes is the cache then; where the source as a whole fits beside what
  // is kept, it may lie in the page cache.
  double cache_books = 0;  // share of memory_bytes that the cache takes for itself: kCacheBooks
  int jobs = 1;            // that go through the data set at the same time; consumer: of each
  bool same_seed = false;  // they draw alike: fresh forms can be handed on
  bool processes = false;  // each is one, and the cache is a daemon's: what is found is checked
  std::optional<double> storage_bytes_per_s = {};  // of what is read, also from a page cache
  std::optional<double> cache_bytes_per_s = {};    // to and from the cache; unset: no bound
  // Of both together; with a server near the storage, from there to the trainer. Unset: no bound.
  std::optional<double> link_bytes_per_s = {};
  // Samples on their way from the job that made them to the last one that takes them. Unset: 16
  // for each job, or one percent of all, whichever is more. At most a quarter of all.
  std::optional<std::int64_t> window_samples = {};
  std::string split = {};  // to predict; empty: the best one
  // Of a server near the storage alone. Unset: as many as the profile's.
  std::optional<double> storage_threads = {};
  double storage_speed = 1;  // of its threads, beside those that were profiled

  bool operator==(const PlanOptions&) const = default;
};

// Samples that are sent in the same variant.
struct OffloadShare {
  OffloadVariant variant;
  double samples_share = 0;
  double bytes = 0;  // of an epoch

  bool operator==(const OffloadShare&) const = default;
};

// What one policy of offload makes of an epoch.
struct OffloadOutcome {
  OffloadPolicy policy = OffloadPolicy::kNoOff;
  double bytes = 0;  // on the wire
  OffloadTimes times;
  std::vector<OffloadShare> shares;  // the largest first

  bool operator==(const OffloadOutcome&) const = default;
};

// A strategy and what it is predicted to take, for the whole data set.
struct Strategy {
  Cut cut = 0;
  std::string cut_name;
  Codec codec = {};
  Place place = Place::kNone;
  bool page_cache = false;  // what it reads stays in the page cache from epoch to epoch

  double build_s = 0;        // before the first epoch
  double first_epoch_s = 0;  // of the training's first epoch, after the build
  double epoch_s = 0;        // each later one
  double total_s = 0;        // build and all epochs
  // Were the store a by-product of the first epoch: total_s then. Not ranked; 0 but for stores.
  double by_product_total_s = 0;
  double samples_per_s = 0;  // in later epochs
  double disk_bytes = 0, memory_bytes = 0;
  double cached_share = 0;  // of the samples, in the loader's cache
  // In later epochs: "cpu", "storage", "consumer"; "memory" where a larger cache would be faster.
  // With a server near the storage: "cpu", "storage_cpu", "network", "consumer".
  std::string bound_by;
  std::optional<double> money = {};  // with prices
  // The fewest epochs for which it is faster than the unprepared pipeline; unset: never.
  std::optional<std::int64_t> break_even_epochs = {};

  bool feasible = true;
  std::string why_not;                         // "needs 340 GB of disk, 100 GB given"
  std::optional<OffloadOutcome> offload = {};  // with a policy of offload

  bool operator==(const Strategy&) const = default;
};

// A codec that gives no fewer bytes at this cut: no strategy uses it.
struct RefusedCodec {
  Cut cut = 0;
  std::string cut_name;
  Codec codec = {};
  std::string why;

  bool operator==(const RefusedCodec&) const = default;
};

struct ResourceUse {
  std::string name;  // cpu, storage, consumer: busy some of the time; memory, disk: budgets
  double use = 0;    // the share of the time of later epochs, or of the budget
  // Seconds of total_s that ten percent more of it would save, the choice made anew; with prices,
  // money. Unset: the resource has no limit or no known rate.
  std::optional<double> price = {};

  bool operator==(const ResourceUse&) const = default;
};

// The plan for other circumstances.
struct WhatIf {
  std::string when;    // "from 14 epochs on", "with half the memory (32 GB)"
  std::string choice;  // in words
  double total_s = 0;
  bool differs = false;  // from the choice

  bool operator==(const WhatIf&) const = default;
};

// A form in a cache that jobs share.
struct CacheForm {
  Cut cut = 0;
  std::string cut_name;
  Codec codec = {};
  double samples_share = 0;   // assigned to it
  double resident_share = 0;  // of all samples: in the cache from epoch to epoch
  double bytes = 0;           // in the cache, those on their way included
  double bytes_share = 0;     // of all that is kept

  bool operator==(const CacheForm&) const = default;
};

// The Seneca paper's own equations with the same figures, and what our model says of their split.
struct PaperPlan {
  double encoded = 0, decoded = 0, augmented = 0;  // of the cache's bytes
  double samples_per_s = 0, by_our_model = 0;

  bool operator==(const PaperPlan&) const = default;
};

// Of Policy::kSeneca: samples per second are those of all jobs together, in later epochs.
struct CachePlan {
  std::string split;             // "source=0.3,entropy=0.7", as cutwater run takes it
  std::vector<CacheForm> forms;  // the largest share first
  std::string fresh;             // the cut that jobs of one seed hand to each other; empty: none
  double hit_rate = 0;
  double samples_per_s = 0, per_job = 0, first_epoch_samples_per_s = 0;
  double per_sample_choice = 0;  // samples per second, had every sample its own best form
  double window_bytes = 0;       // of samples on their way
  // By how much one more byte of cache shortens an epoch.
  double price_s_per_byte = 0;
  PaperPlan paper;

  bool operator==(const CachePlan&) const = default;
};

// The policies with so many storage threads.
struct OffloadTraffic {
  double storage_threads = 0;
  std::vector<double> bytes, epoch_s;  // in the order of kOffloadPolicies

  bool operator==(const OffloadTraffic&) const = default;
};

// Of a policy of offload, besides what its strategies say.
struct OffloadPlan {
  OffloadPrices prices;      // of kSophon, whatever the policy
  double least_epoch_s = 0;  // that any choice could have
  std::vector<OffloadTraffic> by_threads;

  bool operator==(const OffloadPlan&) const = default;
};

struct Plan {
  PlanOptions options;
  std::string data, pipeline, fingerprint, source_identity;
  std::int64_t samples = 0;  // of an epoch: the data set without its share of bad samples
  Strategy choice;
  std::vector<Strategy> alternatives;  // best first, the infeasible ones last
  std::vector<RefusedCodec> refused;
  std::vector<ResourceUse> resources;
  std::vector<WhatIf> what_if;
  std::optional<CachePlan> cache = {};      // with Policy::kSeneca
  std::optional<OffloadPlan> offload = {};  // with Policy::kSophon to kPaper
  std::vector<std::string> reason;          // sentences
  std::vector<std::string> notes;           // what the prediction does not know

  bool operator==(const Plan&) const = default;
};

// The strategy that finishes all epochs soonest (with prices: cheapest) within disk and memory;
// within one percent of it, the simplest. With kSeneca, the split that gives all jobs together the
// most samples per second: `choice` has its largest form, `cache` all of it. With a policy of
// offload, `choice` is that policy and the others are `alternatives`, the shortest epoch first.
// Throws Error(kInvalidArgument) for options that make no sense and for a profile whose columns do
// not fit together.
Plan make_plan(const Profile& profile, const PlanOptions& options = {});

// "store at 'resize', zstd:1, in the page cache"
std::string to_string(const Strategy& strategy);
std::string_view name_of(Policy policy);
std::string_view name_of(Place place);
std::string_view name_of(Residency residency);
// "application", "page" or "none": where a strategy's samples are read from in later epochs.
std::string_view cache_name(const Strategy& strategy);
// By their names. Throw Error(kInvalidArgument) that lists them.
Policy policy_named(std::string_view name);
Residency residency_named(std::string_view name);

// The ranked table and the reason in words; at most `rows` strategies.
std::string explain(const Plan& plan, std::size_t rows = std::numeric_limits<std::size_t>::max());

// One JSON object; the keys are in docs/plan.md. plan_from_json reads it back and throws
// Error(kInvalidArgument) for text that is no plan.
std::string to_json(const Plan& plan);
Plan plan_from_json(std::string_view text);

}  // namespace cutwater
