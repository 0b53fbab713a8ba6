// SPDX-License-Identifier: Apache-2.0
#include "profile/empty_profile.h"

#include <cmath>

namespace cutwater {
namespace {

// A thread's books per sample besides reading and ops: a ticket, a slot, the memory gate, the hand
// over. bench/overhead.py measures 1.8 to 2.0 us for a sample of 10 KB, its copy included; next to
// a sample's ops it does not matter how fast exactly this machine is.
constexpr double kEngineSeconds = 2e-6;

}  // namespace

Profile empty_profile(const Source& source, const Pipeline& pipeline) {
  Profile profile;
  profile.data = source.home();
  profile.pipeline = pipeline.to_string();
  profile.fingerprint = pipeline.fingerprint();
  profile.source_identity = source.identity();
  profile.data_samples = source.size();
  profile.engine_s = kEngineSeconds;
  for (Cut cut = 0; cut <= pipeline.last_cut(); ++cut) {
    CutProfile& one = profile.cuts.emplace_back();
    one.cut = cut;
    one.name = pipeline.cut_name(cut);
    if (cut > 0) one.after = pipeline.op_before(cut);
    one.stable = pipeline.stable(cut);
  }
  return profile;
}

double relative_error(const std::vector<double>& values, std::size_t bad, std::int64_t of) {
  const std::size_t drawn = values.size() + bad;
  if (drawn == static_cast<std::size_t>(of)) return 0;
  if (values.size() < 2) return 1;
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (mean <= 0) return 0;
  const double deviation =
      std::sqrt(squares / (n - 1) * (1 - static_cast<double>(drawn) / static_cast<double>(of)));
  return 1.96 * deviation / std::sqrt(n) / mean;
}

}  // namespace cutwater
