// SPDX-License-Identifier: Apache-2.0
// What a strategy takes, predicted from the means of a profile: every resource is shared by all
// samples, so an epoch lasts as long as the resource that is busy longest.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "cutwater/plan.h"

namespace cutwater {

constexpr double kMostEpochs = 1'000'000;  // of a plan; the search for another choice ends there

// What a plan may use. Rates of zero: not known, or no bound.
struct Circumstances {
  double epochs = 1;
  double threads = 1;
  double disk_bytes = 0, memory_bytes = 0;  // may be infinite
  ReadCost cold;                            // of the device
  double write_bytes_per_s = 0;
  double consumer_samples_per_s = 0;
  Residency residency = Residency::kFits;
  std::optional<Prices> prices = {};
};

// Seconds of each resource for one sample, were all of the resource working on such samples.
struct Load {
  static constexpr std::size_t kCpu = 0, kReads = 1, kBytes = 2, kConsumer = 3;
  std::array<double, 4> seconds{};

  double longest() const;
  std::string_view bound_by() const;
};

// Means of one sample.
struct VariantMeans {
  Codec codec;
  double bytes = 0, encode_s = 0, decode_s = 0;
};
struct CutMeans {
  Cut cut = 0;
  std::string name;
  double bytes = 0, prefix_s = 0, finish_s = 0, first_s = 0, memory_s = 0;
  std::vector<VariantMeans> variants;  // "none" first, always there
};

class CostModel {
 public:
  // Throws Error(kInvalidArgument) for columns that do not fit together.
  explicit CostModel(const Profile& profile);

  double samples() const { return samples_; }                  // of an epoch
  const std::vector<CutMeans>& cuts() const { return cuts_; }  // the stable ones, from 0
  // Times as long as its parts a sample takes, when all threads take one after the other.
  double slower() const { return slower_; }

  // Everything but break_even_epochs. `later` gets the load of a sample in later epochs.
  Strategy unprepared(const Circumstances& c, Load& later) const;
  Strategy store(const CutMeans& cut, const VariantMeans& variant, bool page_cache,
                 const Circumstances& c, Load& later) const;
  // With as many samples as fit the memory, or fewer where that is faster.
  Strategy memory(const CutMeans& cut, const VariantMeans& variant, const Circumstances& c,
                  Load& later) const;

 private:
  double source_read_s() const;
  double store_read_s(double bytes) const;
  Load delivered(double cpu_s, const Circumstances& c) const;
  bool source_cold(double share, double other_bytes, bool first, const Circumstances& c) const;
  Load from_source(double cpu_s, bool cold, const Circumstances& c) const;
  Load written(Load made, const VariantMeans& variant, const Circumstances& c) const;
  double once_s(double make_s, const VariantMeans& variant, const Circumstances& c) const;
  double by_product_s(const CutMeans& cut, const VariantMeans& variant, double epoch_s,
                      const Circumstances& c) const;
  void finish(Strategy& strategy, const Load& first, const Load& later,
              const Circumstances& c) const;

  std::vector<CutMeans> cuts_;
  StorageProfile storage_;
  double samples_ = 0, engine_s_ = 0, slower_ = 1, fresh_memory_bytes_per_s_ = 0;
  bool reads_files_ = true;
};

// break_even_epochs.
void set_break_even(Strategy& strategy, const Strategy& unprepared);

}  // namespace cutwater
