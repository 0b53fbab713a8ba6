// SPDX-License-Identifier: Apache-2.0
// What jobs that share one cache take of the machine: sample by sample and form by form, from the
// columns of a profile. Each profiled sample stands for as many of the data set as any other.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cutwater/plan.h"

namespace cutwater {

// What an access of a job to a sample takes, on average.
struct Amounts {
  double cpu_s = 0;  // of one thread
  double reads = 0, read_bytes = 0;
  double cache_bytes = 0;  // to the cache and from it

  void add(double times, const Amounts& other);
};

// Resources that all jobs share. Rates of zero: no bound.
struct SharedRates {
  double threads = 1;
  ReadCost storage;
  double cache_bytes_per_s = 0;
  double link_bytes_per_s = 0;  // for what is read and for the cache together
};

// Seconds of each resource for one access, were all of the resource working on such accesses.
struct Demand {
  static constexpr std::size_t kCpu = 0, kReads = 1, kStorage = 2, kCache = 3, kLink = 4;
  static constexpr std::size_t kResources = 5;
  static constexpr std::array<std::string_view, kResources> kNames = {"cpu", "storage", "storage",
                                                                      "cache", "link"};
  std::array<double, kResources> seconds{};

  Demand(const Amounts& amounts, const SharedRates& rates);
  double longest() const;
};

struct FormName {
  Cut cut = 0;
  std::string cut_name;
  Codec codec = {};

  bool operator==(const FormName&) const = default;
};
// "entropy"; with a codec "entropy:zstd:1"
std::string to_string(const FormName& form);

// One value per profiled sample; seconds are those of one thread.
struct FormColumns {
  FormName name;
  std::vector<double> bytes;
  std::vector<double> hit_s;         // from the form to the batch
  std::vector<double> first_hit_s;   // the same, of what this job has not touched before
  std::vector<double> make_s;        // from the source to the batch, and a copy into the cache
  std::vector<double> first_make_s;  // the same, while ops have not learned anything yet
  std::vector<double> until_s;       // the read and the way to the form: what the engine counts
};

// A fresh cut that jobs of one seed hand to each other: means.
struct FreshForm {
  Cut cut = 0;
  std::string cut_name;
  double bytes = 0, hit_s = 0, put_s = 0;
};

struct CacheModel {
  // Processes: each job is one, and the cache a daemon's. Throws Error(kInvalidArgument) for
  // columns that do not fit together.
  explicit CacheModel(const Profile& profile, bool processes = false);

  double samples = 0;                // of an epoch
  std::vector<double> source_bytes;  // by profiled sample
  std::vector<double> miss_s, first_miss_s;
  std::vector<FormColumns> forms;  // stable ones; "source" without a codec first
  std::vector<FreshForm> fresh;
  std::size_t decoded = 0;  // of forms: the last stable cut without a codec

  std::size_t classes() const { return source_bytes.size(); }
  Amounts miss(std::size_t sample) const;
  Amounts make(std::size_t form, std::size_t sample) const;
  Amounts hit(std::size_t form, std::size_t sample) const;
  Amounts first_hit(std::size_t form, std::size_t sample) const;
  double mean_source_bytes() const;
};

}  // namespace cutwater
