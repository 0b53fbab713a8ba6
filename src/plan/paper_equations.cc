// SPDX-License-Identifier: Apache-2.0
#include "plan/paper_equations.h"

#include <algorithm>

namespace cutwater {
namespace {

// A bound that is never met, and that sums and means can still be made of.
constexpr double kNoBound = 1e12;

double bound(double rate, double amount = 1) { return rate > 0 ? rate / amount : kNoBound; }

}  // namespace

PaperRates paper_rates(const PaperInputs& in) {
  const double inflated = in.inflation * in.sample_bytes;
  const double gpu = bound(in.gpu_samples_per_s);
  PaperRates rates;
  rates.augmented =
      std::min({bound(in.cache_bytes_per_s, inflated), bound(in.link_bytes_per_s, inflated), gpu});
  rates.decoded = std::min(rates.augmented, bound(in.augment_samples_per_s));
  rates.encoded = std::min({bound(in.cache_bytes_per_s, in.sample_bytes),
                            bound(in.link_bytes_per_s, in.sample_bytes),
                            bound(in.decode_augment_samples_per_s), gpu});
  rates.stored = std::min(rates.encoded, bound(in.storage_bytes_per_s, in.sample_bytes));
  return rates;
}

PaperSplit paper_split_at(const PaperInputs& in, double encoded, double decoded, double augmented) {
  const double inflated = in.inflation * in.sample_bytes;
  const auto fits = [&](double share, double bytes) { return share * in.cache_bytes / bytes; };
  PaperSplit split{encoded, decoded, augmented, 0, 0, 0, 0};
  const double a = std::min(in.samples, fits(augmented, inflated));
  const double d = std::min(in.samples - a, fits(decoded, inflated));
  const double e = std::min(in.samples - a - d, fits(encoded, in.sample_bytes));
  split.augmented_samples = a / in.samples;
  split.decoded_samples = d / in.samples;
  split.encoded_samples = e / in.samples;
  const PaperRates rates = paper_rates(in);
  split.samples_per_s = (a * rates.augmented + d * rates.decoded + e * rates.encoded +
                         (in.samples - a - d - e) * rates.stored) /
                        in.samples;
  return split;
}

PaperSplit best_paper_split(const PaperInputs& in) {
  PaperSplit best = paper_split_at(in, 1, 0, 0);
  for (int e = 100; e >= 0; --e)
    for (int d = 100 - e; d >= 0; --d) {
      const PaperSplit split = paper_split_at(in, e / 100.0, d / 100.0, (100 - e - d) / 100.0);
      if (split.samples_per_s > best.samples_per_s * (1 + 1e-12)) best = split;
    }
  return best;
}

}  // namespace cutwater
