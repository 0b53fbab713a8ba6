// SPDX-License-Identifier: Apache-2.0
// make_profile: which samples, how many, and when it is enough.
#include "cutwater/profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/machine.h"
#include "cutwater/rng.h"
#include "profile/empty_profile.h"
#include "profile/measure.h"
#include "profile/memory_probe.h"
#include "profile/storage_probe.h"
#include "profile/team.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEnough = 0.05;
constexpr std::int64_t kLeastSamples = 16, kMostSamples = 256;
constexpr std::size_t kGroup = 32;    // samples that are measured together
constexpr double kSampleShare = 0.9;  // of the time; the rest is for the whole, storage and memory
constexpr double kWholeShare = 1.25;  // of what a sample took so far, to time it as a whole

// Of the first so many.
double mean_of(const std::vector<double>& column, std::size_t count) {
  return std::accumulate(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

// Ids drawn from 0 .. size-1 without repetition, in an order that the seed fixes: a shuffle whose
// untouched places are not stored.
class DistinctIds {
 public:
  DistinctIds(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}

  std::int64_t left() const { return size_ - drawn_; }
  // REQUIRES: left() > 0.
  SampleId next() {
    Rng random({seed_, ~std::uint32_t{0}, static_cast<std::uint64_t>(drawn_), 0});
    const auto place =
        drawn_ + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(left())));
    const SampleId id = at(place);
    moved_[place] = at(drawn_++);
    return id;
  }

 private:
  SampleId at(std::int64_t place) const {
    const auto found = moved_.find(place);
    return found == moved_.end() ? place : found->second;
  }

  const std::int64_t size_;
  const std::uint64_t seed_;
  std::int64_t drawn_ = 0;
  std::unordered_map<std::int64_t, SampleId> moved_;
};

void append(const SampleValues& sample, const std::vector<std::vector<Codec>>& codecs,
            Profile& profile) {
  profile.ids.push_back(sample.id);
  for (std::size_t k = 0; k < profile.cuts.size(); ++k) {
    const CutValues& from = sample.cuts[k];
    CutProfile& to = profile.cuts[k];
    to.bytes.push_back(from.bytes);
    to.op_s.push_back(from.op_s);
    to.prefix_s.push_back(from.prefix_s);
    to.finish_s.push_back(from.finish_s);
    if (to.stable) {
      to.first_s.push_back(from.first_s);
      to.memory_s.push_back(from.memory_s);
    }
    if (to.variants.empty())
      for (const Codec& codec : codecs[k]) to.variants.push_back({codec, {}, {}, {}});
    for (std::size_t v = 0; v < to.variants.size(); ++v) {
      to.variants[v].bytes.push_back(from.variants[v].bytes);
      to.variants[v].encode_s.push_back(from.variants[v].encode_s);
      to.variants[v].decode_s.push_back(from.variants[v].decode_s);
    }
  }
  profile.excerpt.bytes.push_back(sample.excerpt.bytes);
  profile.excerpt.make_s.push_back(sample.excerpt.make_s);
  profile.excerpt.finish_s.push_back(sample.excerpt.finish_s);
}

// That no sample has one says nothing of its size.
bool any_excerpt(const Profile& profile) {
  const std::vector<double>& bytes = profile.excerpt.bytes;
  return std::any_of(bytes.begin(), bytes.end(), [](double one) { return one > 0; });
}

void check(const std::shared_ptr<const Source>& source, const ProfileOptions& options) {
  if (!source) refuse("profile: a source is needed");
  if (source->cut() != 0)
    refuse("profile: the source stands at cut " + std::to_string(source->cut()) +
           "; profile the data set that it was made of, which stands at cut 0");
  if (source->size() < 1) refuse("profile: the data set has no samples");
  if (options.samples && *options.samples < 1)
    refuse("profile: samples must be at least 1, got " + std::to_string(*options.samples));
  if (!(options.max_seconds > 0))
    refuse("profile: max_seconds must be greater than 0, got " +
           std::to_string(options.max_seconds));
  if (options.threads && (*options.threads < 1 || *options.threads > kMostThreads))
    refuse("profile: threads must be in 1.." + std::to_string(kMostThreads) + ", got " +
           std::to_string(*options.threads));
  if (options.consumer_samples_per_s &&
      !(*options.consumer_samples_per_s > 0 && std::isfinite(*options.consumer_samples_per_s)))
    refuse("profile: the consumer's samples per second must be greater than 0, got " +
           std::to_string(*options.consumer_samples_per_s));
}

}  // namespace

Profile make_profile(std::shared_ptr<const Source> source, const Pipeline& pipeline,
                     const ProfileOptions& options) {
  check(source, options);
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  Profile profile = empty_profile(*source, pipeline);
  profile.consumer_samples_per_s = options.consumer_samples_per_s;

  const std::int64_t most = std::min(
      source->size(), options.samples.value_or(std::max(kMostSamples, source->size() / 100)));
  profile.threads = options.threads ? *options.threads : default_threads();
  const auto done = [&] {
    return static_cast<std::int64_t>(profile.ids.size() + profile.bad.size());
  };
  Team team(static_cast<int>(std::min<std::int64_t>(profile.threads, most)), [&] {
    if (options.on_progress) options.on_progress(done(), most);
  });
  Measure measure(*source, pipeline, team);
  DistinctIds ids(source->size(), options.seed);

  const double time = kSampleShare * options.max_seconds;
  const auto each_s = [&] { return seconds() / static_cast<double>(done()); };
  const auto enough = [&] {
    profile.relative_error =
        relative_error(profile.cuts[0].finish_s, profile.bad.size(), source->size());
    if (done() == 0) return false;
    if (done() >= most) return true;
    if (!options.samples && std::ssize(profile.ids) >= kLeastSamples &&
        profile.relative_error <= kEnough)
      return true;
    return seconds() + each_s() * static_cast<double>(team.size()) > time;
  };
  // Few at first: even slow samples tell soon how long the others will take.
  std::size_t group = 2 * team.size();
  while (!enough()) {
    if (done() > 0)
      group = std::clamp(static_cast<std::size_t>((time - seconds()) / each_s()), team.size(),
                         std::max(kGroup, team.size()));
    std::vector<SampleId> drawn;
    while (drawn.size() < group && done() + std::ssize(drawn) < most) drawn.push_back(ids.next());
    for (const SampleValues& sample : measure.samples(drawn, profile.bad))
      append(sample, measure.codecs(), profile);
    if (options.on_progress) options.on_progress(done(), most);
  }
  if (profile.ids.empty()) throw Error(profile.bad.front());
  if (!any_excerpt(profile)) profile.excerpt = {};

  profile.reads_files = reads_files(*source, profile.ids);
  // As many samples as there is time for; what they take is then that of the mean sample.
  const double left_s = std::max(time - seconds(), 0.0) + (options.max_seconds - time) / 2;
  const auto whole = std::clamp<std::size_t>(
      static_cast<std::size_t>(left_s / (kWholeShare * each_s())), 1, profile.ids.size());
  profile.whole_s = measure.whole_s(std::span(profile.ids).first(whole)) *
                    mean_of(profile.cuts[0].finish_s, profile.ids.size()) /
                    std::max(mean_of(profile.cuts[0].finish_s, whole), 1e-12);
  profile.memory_bytes_per_s = probe_memory(team, measure);
  profile.fresh_memory_bytes_per_s = probe_fresh_memory(team, measure);
  const SharedMemoryRates shared = probe_shared_memory(team, measure);
  profile.shared_memory_bytes_per_s = shared.copied;
  profile.shared_checked_bytes_per_s = shared.checked;
  profile.checked_memory_bytes_per_s = shared.checked_again;
  profile.storage = probe_storage(*source, profile.ids, team, measure);
  profile.seconds = seconds();
  return profile;
}

}  // namespace cutwater
