// SPDX-License-Identifier: Apache-2.0
#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cutwater/error.h"
#include "plan/plan_text.h"

namespace cutwater {
namespace {

// What a sample of a store takes beside its bytes: tar and .npy headers, padding, its label and
// its row of the index.
constexpr double kStoreBytesPerSample = 2048;
// What materialize() does beside making samples and writing them (src/store/materialize.cc). One
// thread makes some on trial, and writes a sixteenth of the store, at most so much, to see how long
// that takes. Then every shard, and the list of what is in it, is waited for until it is on the
// disk; so are the request, the trial, the index and meta.json.
constexpr double kTrials = 32, kTrialBytes = 8 << 20;
constexpr double kShardBytes = 256 << 20, kLeastShards = 16;
constexpr double kFilesPerShard = 2, kOtherFiles = 4;
constexpr double kMostSlower = 2;  // what is more is a read that the model does not know

double mean(const std::vector<double>& column, std::size_t samples, const std::string& what) {
  if (column.size() != samples)
    throw Error(Code::kInvalidArgument, "the profile has " + std::to_string(column.size()) +
                                            " values of " + what + " for " +
                                            std::to_string(samples) + " samples");
  for (const double value : column)
    if (!std::isfinite(value) || value < 0)
      throw Error(Code::kInvalidArgument,
                  "the profile has " + std::to_string(value) + " among its " + what);
  const double found =
      std::accumulate(column.begin(), column.end(), 0.0) / static_cast<double>(samples);
  if (!std::isfinite(found))
    throw Error(Code::kInvalidArgument, "the mean of the profile's " + what + " is not finite");
  return found;
}

CutMeans means_of(const CutProfile& cut, std::size_t samples) {
  const std::string at = " at cut '" + cut.name + "'";
  CutMeans means;
  means.cut = cut.cut;
  means.name = cut.name;
  means.bytes = mean(cut.bytes, samples, "bytes" + at);
  means.prefix_s = mean(cut.prefix_s, samples, "prefix_s" + at);
  means.finish_s = mean(cut.finish_s, samples, "finish_s" + at);
  means.first_s = mean(cut.first_s, samples, "first_s" + at);
  means.memory_s = mean(cut.memory_s, samples, "memory_s" + at);
  means.variants.push_back({{}, means.bytes, 0, 0});
  for (const VariantProfile& variant : cut.variants) {
    const std::string of = " of " + to_string(variant.codec) + at;
    const VariantMeans found{variant.codec, mean(variant.bytes, samples, "bytes" + of),
                             mean(variant.encode_s, samples, "encode_s" + of),
                             mean(variant.decode_s, samples, "decode_s" + of)};
    if (found.codec.is_none())
      means.variants.front() = found;
    else
      means.variants.push_back(found);
  }
  return means;
}

double per(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

Load mix(const Load& a, const Load& b, double share_of_a) {
  Load mixed;
  for (std::size_t r = 0; r < mixed.seconds.size(); ++r)
    mixed.seconds[r] = share_of_a * a.seconds[r] + (1 - share_of_a) * b.seconds[r];
  return mixed;
}

// The shares in (0, most) at which two resources of mix(a, b, share) are equally long: between
// two of them, the longest one is a straight line.
void add_bends(const Load& a, const Load& b, double most, std::vector<double>& shares) {
  for (std::size_t r = 0; r < a.seconds.size(); ++r)
    for (std::size_t q = 0; q < r; ++q) {
      const double at_b = b.seconds[r] - b.seconds[q];
      const double share = at_b / (at_b - (a.seconds[r] - a.seconds[q]));
      if (share > 0 && share < most) shares.push_back(share);
    }
}

}  // namespace

double money_of(const Prices& prices, double disk_bytes, double seconds, double threads) {
  return disk_bytes * 1e-9 * prices.disk_gb_month * prices.months +
         seconds / 3600 * threads * prices.core_hour;
}

void set_break_even(Strategy& s, const Strategy& unprepared) {
  const double more = s.build_s + s.first_epoch_s - unprepared.first_epoch_s;
  const double saved = unprepared.epoch_s - s.epoch_s;
  if (more < 0)
    s.break_even_epochs = 1;
  else if (saved > 0 && more / saved < kMostEpochs)
    s.break_even_epochs = 2 + static_cast<std::int64_t>(std::floor(more / saved));
}

double Load::longest() const { return *std::max_element(seconds.begin(), seconds.end()); }

std::string_view Load::bound_by() const {
  // In this order where they are equal: a consumer that is always busy is not waiting for anything.
  constexpr std::array<std::size_t, 4> kOrder = {kConsumer, kCpu, kReads, kBytes};
  constexpr std::array<std::string_view, 4> kNames = {"cpu", "storage", "storage", "consumer"};
  const double most = longest();
  for (const std::size_t r : kOrder)
    if (seconds[r] >= most) return kNames[r];
  return "cpu";
}

CostModel::CostModel(const Profile& profile)
    : storage_(profile.storage),
      engine_s_(profile.engine_s),
      fresh_memory_bytes_per_s_(profile.fresh_memory_bytes_per_s),
      reads_files_(profile.reads_files) {
  const std::size_t samples = profile.ids.size();
  if (samples == 0 || profile.cuts.empty())
    throw Error(Code::kInvalidArgument,
                "the profile has no samples: make it from data with at least one good sample");
  if (profile.data_samples <= 0)
    throw Error(Code::kInvalidArgument, "the profile is of a data set of " +
                                            std::to_string(profile.data_samples) + " samples");
  for (const CutProfile& cut : profile.cuts) {
    if (!cut.stable) break;
    cuts_.push_back(means_of(cut, samples));
  }
  if (cuts_.empty())
    throw Error(Code::kInvalidArgument, "the profile says that its cut 0 is not stable");
  const double good = static_cast<double>(samples);
  samples_ = static_cast<double>(profile.data_samples) * good /
             (good + static_cast<double>(profile.bad.size()));
  const double parts_s = source_read_s() + cuts_.front().finish_s;
  if (!std::isfinite(profile.whole_s) || profile.whole_s < 0)
    throw Error(Code::kInvalidArgument,
                "the profile's whole_s is " + std::to_string(profile.whole_s));
  if (parts_s > 0) slower_ = std::clamp(profile.whole_s / parts_s, 1.0, kMostSlower);
}

double CostModel::source_read_s() const {
  return (reads_files_ ? storage_.warm_file_s : storage_.warm_part_s) +
         cuts_.front().bytes * storage_.warm_per_byte_s;
}

// A store checks what it reads.
double CostModel::store_read_s(double bytes) const {
  return storage_.warm_part_s + bytes * (storage_.warm_per_byte_s + storage_.check_per_byte_s);
}

// A sample that takes so much of a thread and ends in a batch.
Load CostModel::delivered(double cpu_s, const Circumstances& c) const {
  Load load;
  load.seconds[Load::kCpu] = (slower_ * cpu_s + engine_s_) / c.threads;
  load.seconds[Load::kConsumer] = per(1, c.consumer_samples_per_s);
  return load;
}

Load CostModel::from_source(double cpu_s, bool cold, const Circumstances& c) const {
  Load load = delivered(source_read_s() + cpu_s, c);
  if (cold) {
    load.seconds[Load::kReads] = per(1, c.cold.reads_per_s);
    load.seconds[Load::kBytes] = per(cuts_.front().bytes, c.cold.bytes_per_s);
  }
  return load;
}

// Whether `share` of the source comes from the device while `other_bytes` of memory are taken.
bool CostModel::source_cold(double share, double other_bytes, bool first,
                            const Circumstances& c) const {
  if (c.residency == Residency::kWarm) return false;
  if (c.residency == Residency::kCold || first) return true;
  // What just fits is not made too large by rounding.
  return share * samples_ * cuts_.front().bytes + other_bytes > c.memory_bytes * (1 + 1e-9);
}

void CostModel::finish(Strategy& strategy, const Load& first, const Load& later,
                       const Circumstances& c) const {
  strategy.first_epoch_s = samples_ * first.longest();
  strategy.epoch_s = samples_ * later.longest();
  strategy.total_s = strategy.build_s + strategy.first_epoch_s + (c.epochs - 1) * strategy.epoch_s;
  strategy.samples_per_s = per(samples_, strategy.epoch_s);
  strategy.bound_by = later.bound_by();
  if (c.prices)
    strategy.money = money_of(*c.prices, strategy.disk_bytes, strategy.total_s, c.threads);
  for (const double found : {strategy.total_s, strategy.samples_per_s, strategy.disk_bytes,
                             strategy.memory_bytes, strategy.money.value_or(0)})
    if (!std::isfinite(found))
      throw Error(Code::kInvalidArgument,
                  "the profile's figures are beyond all measure: " + to_string(strategy) +
                      " comes to " + std::to_string(found) + "; profile again");
}

Strategy CostModel::unprepared(const Circumstances& c, Load& later) const {
  const CutMeans& source = cuts_.front();
  Strategy strategy;
  strategy.cut_name = source.name;
  strategy.page_cache = !source_cold(1, 0, false, c);
  if (strategy.page_cache) strategy.memory_bytes = samples_ * source.bytes;
  const Load first = from_source(source.first_s, source_cold(1, 0, true, c), c);
  later = from_source(source.finish_s, !strategy.page_cache, c);
  finish(strategy, first, later, c);
  return strategy;
}

// A sample that is made so, and then written to a shard. The device reads the source and writes the
// store; a thread waits for what it writes, and reckons two checksums of it.
Load CostModel::written(Load made, const VariantMeans& variant, const Circumstances& c) const {
  const double bytes = variant.bytes + kStoreBytesPerSample;
  const double write_s = per(bytes, c.write_bytes_per_s);
  const double each_shard =
      std::clamp(std::floor(kShardBytes / bytes), 1.0, std::ceil(samples_ / kLeastShards));
  const double files_s = kFilesPerShard * storage_.write_file_s / each_shard;
  made.seconds[Load::kCpu] +=
      (2 * bytes * storage_.check_per_byte_s + write_s + files_s) / c.threads;
  made.seconds[Load::kBytes] += write_s;
  made.seconds[Load::kConsumer] = 0;
  return made;
}

// What materialize() takes once, before the first shard and after the last one.
double CostModel::once_s(double make_s, const VariantMeans& variant, const Circumstances& c) const {
  const double all_bytes = samples_ * (variant.bytes + kStoreBytesPerSample);
  return std::min(kTrials, samples_) * make_s +
         per(std::min(all_bytes / 16, kTrialBytes), c.write_bytes_per_s) +
         kOtherFiles * storage_.write_file_s;
}

// The first epoch spools its samples as they are at the cut. While the second reads the spool, the
// store is written from it, too; without a second epoch, that is waited for.
double CostModel::by_product_s(const CutMeans& cut, const VariantMeans& variant, double epoch_s,
                               const Circumstances& c) const {
  Load first = from_source(std::max(cut.prefix_s + cut.first_s, cuts_.front().first_s),
                           source_cold(1, 0, true, c), c);
  first.seconds[Load::kBytes] += per(cut.bytes, c.write_bytes_per_s);
  const double read_s = storage_.warm_part_s + cut.bytes * storage_.warm_per_byte_s;
  const bool cold = c.residency == Residency::kCold ||
                    (c.residency == Residency::kFits && samples_ * cut.bytes > c.memory_bytes);
  const auto from_spool = [&](double cpu_s) {
    Load load = delivered(read_s + cpu_s, c);
    if (cold) load.seconds[Load::kReads] = per(1, c.cold.reads_per_s);
    if (cold) load.seconds[Load::kBytes] = per(cut.bytes, c.cold.bytes_per_s);
    return load;
  };
  Load second = written(from_spool(variant.encode_s), variant, c);
  if (c.epochs > 1) {
    const Load epoch = from_spool(cut.finish_s);
    for (std::size_t r = 0; r < second.seconds.size(); ++r) second.seconds[r] += epoch.seconds[r];
  }
  return samples_ * (first.longest() + second.longest()) +
         once_s(read_s + variant.encode_s, variant, c) + std::max(c.epochs - 2, 0.0) * epoch_s;
}

Strategy CostModel::store(const CutMeans& cut, const VariantMeans& variant, bool page_cache,
                          const Circumstances& c, Load& later) const {
  Strategy strategy;
  strategy.cut = cut.cut;
  strategy.cut_name = cut.name;
  strategy.codec = variant.codec;
  strategy.place = Place::kStore;
  strategy.page_cache = page_cache;
  strategy.disk_bytes = samples_ * (variant.bytes + kStoreBytesPerSample);
  if (page_cache) strategy.memory_bytes = strategy.disk_bytes;

  const double make_s = cut.prefix_s + variant.encode_s;
  const Load build = written(from_source(make_s, source_cold(1, 0, true, c), c), variant, c);
  strategy.build_s = once_s(source_read_s() + make_s, variant, c) + samples_ * build.longest();

  const auto from_store = [&](double rest_s) {
    Load load = delivered(store_read_s(variant.bytes) + variant.decode_s + rest_s, c);
    if (!page_cache && c.residency != Residency::kWarm) {
      load.seconds[Load::kReads] = per(1, c.cold.reads_per_s);
      load.seconds[Load::kBytes] = per(variant.bytes, c.cold.bytes_per_s);
    }
    return load;
  };
  later = from_store(cut.finish_s);
  finish(strategy, from_store(cut.first_s), later, c);
  strategy.by_product_total_s = by_product_s(cut, variant, strategy.epoch_s, c);

  if (strategy.disk_bytes > c.disk_bytes)
    strategy.why_not = needs(strategy.disk_bytes, "disk", c.disk_bytes);
  else if (page_cache && c.residency == Residency::kCold)
    strategy.why_not = "the page cache is not to be counted on";
  else if (page_cache && c.residency == Residency::kFits && strategy.memory_bytes > c.memory_bytes)
    strategy.why_not = needs(strategy.memory_bytes, "page cache", c.memory_bytes);
  strategy.feasible = strategy.why_not.empty();
  return strategy;
}

Strategy CostModel::memory(const CutMeans& cut, const VariantMeans& variant, const Circumstances& c,
                           Load& later) const {
  Strategy strategy;
  strategy.cut = cut.cut;
  strategy.cut_name = cut.name;
  strategy.codec = variant.codec;
  strategy.place = Place::kMemory;

  const CutMeans& source = cuts_.front();
  const double all_bytes = samples_ * variant.bytes;
  const double most = all_bytes > c.memory_bytes ? c.memory_bytes / all_bytes : 1;
  const bool first_cold = source_cold(1, 0, true, c);
  // A run that stops at the cut on its way is never faster than one that does not, and the copy
  // that is kept goes into memory that nobody has used before.
  const double kept_s =
      variant.encode_s +
      (fresh_memory_bytes_per_s_ > 0 ? variant.bytes / fresh_memory_bytes_per_s_ : 0);
  const Load fill =
      from_source(std::max(cut.prefix_s + cut.first_s, source.first_s) + kept_s, first_cold, c);
  const Load pass = from_source(source.first_s, first_cold, c);
  // What was just decoded is in the processor's caches; what is lent as it is comes from memory.
  const double hit_s = variant.codec.is_none() ? cut.memory_s : variant.decode_s + cut.finish_s;
  const Load hit = delivered(hit_s, c);
  const auto miss = [&](double share) {
    return from_source(source.finish_s, source_cold(1 - share, share * all_bytes, false, c), c);
  };
  const auto total_s = [&](double share) {
    return mix(fill, pass, share).longest() +
           (c.epochs - 1) * mix(hit, miss(share), share).longest();
  };

  // The best share lies at an end, at a bend, or where the source's page cache just fits beside.
  std::vector<double> shares;
  add_bends(fill, pass, most, shares);
  add_bends(hit, from_source(source.finish_s, true, c), most, shares);
  add_bends(hit, from_source(source.finish_s, false, c), most, shares);
  const double source_bytes = samples_ * source.bytes;
  const double beside = (c.memory_bytes - source_bytes) / (all_bytes - source_bytes);
  if (beside > 0 && beside < most) shares.push_back(beside);
  double best = most;
  for (const double share : shares)
    if (total_s(share) < total_s(best)) best = share;

  strategy.cached_share = best;
  strategy.memory_bytes = best * all_bytes;
  later = mix(hit, miss(best), best);
  finish(strategy, mix(fill, pass, best), later, c);
  if (best == most && most < 1 && strategy.bound_by != "consumer") strategy.bound_by = "memory";
  if (!(best > 0)) {
    strategy.feasible = false;
    strategy.why_not = "there is no memory for a cache";
  }
  return strategy;
}

}  // namespace cutwater
