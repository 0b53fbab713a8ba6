// SPDX-License-Identifier: Apache-2.0
// The equations of the Seneca paper (FAST '26) for the split of a cache into encoded, decoded and
// augmented samples, as they are printed there: a mean of the rates of four kinds of samples.
#pragma once

namespace cutwater {

// Rates of zero: no bound. Gradients do not travel here: one node, or a link of their own.
struct PaperInputs {
  double samples = 0;       // N_total
  double sample_bytes = 0;  // S_data
  double inflation = 1;     // M: of decoded and of augmented samples
  double cache_bytes = 0;   // S_cache
  double gpu_samples_per_s = 0, decode_augment_samples_per_s = 0, augment_samples_per_s = 0;
  double cache_bytes_per_s = 0, storage_bytes_per_s = 0, link_bytes_per_s = 0;
};

struct PaperRates {  // of samples that are all of this kind
  double augmented = 0, decoded = 0, encoded = 0, stored = 0;
};
PaperRates paper_rates(const PaperInputs& in);

struct PaperSplit {
  double encoded = 0, decoded = 0, augmented = 0;                          // of the cache's bytes
  double encoded_samples = 0, decoded_samples = 0, augmented_samples = 0;  // of all samples
  double samples_per_s = 0;
};
PaperSplit paper_split_at(const PaperInputs& in, double encoded, double decoded, double augmented);
// The best of all splits in whole percents; of equal ones, that with the most encoded, then the
// most decoded.
PaperSplit best_paper_split(const PaperInputs& in);

}  // namespace cutwater
