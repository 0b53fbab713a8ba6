// SPDX-License-Identifier: Apache-2.0
#include "plan/paper_equations.h"

#include <gtest/gtest.h>

namespace cutwater {
namespace {

// The Azure node of the paper's Table 5 with OpenImages V7.
PaperInputs azure_open_images() {
  PaperInputs in;
  in.samples = 517e9 / 315.84e3;  // 517 GB
  in.sample_bytes = 315.84e3;
  in.inflation = 5.12;
  in.cache_bytes = 400e9;
  in.gpu_samples_per_s = 14301;
  in.decode_augment_samples_per_s = 9783;
  in.augment_samples_per_s = 12930;
  in.link_bytes_per_s = 10e9;
  in.cache_bytes_per_s = 3.75e9;
  in.storage_bytes_per_s = 250e6;
  return in;
}

TEST(PaperEquations, RatesOfFourKinds) {
  const PaperRates rates = paper_rates(azure_open_images());
  const double inflated = 5.12 * 315.84e3;
  EXPECT_DOUBLE_EQ(rates.augmented, 3.75e9 / inflated);
  EXPECT_DOUBLE_EQ(rates.decoded, 3.75e9 / inflated);
  EXPECT_DOUBLE_EQ(rates.encoded, 9783);
  EXPECT_DOUBLE_EQ(rates.stored, 250e6 / 315.84e3);
}

TEST(PaperEquations, AMeanOfRates) {
  const PaperSplit split = paper_split_at(azure_open_images(), 1, 0, 0);
  EXPECT_NEAR(split.encoded_samples, 400.0 / 517, 1e-9);
  EXPECT_NEAR(split.samples_per_s, 7750, 50);
}

TEST(PaperEquations, AllEncodedIsReached) {
  const PaperSplit best = best_paper_split(azure_open_images());
  EXPECT_EQ(best.encoded, 1);
  EXPECT_EQ(best.decoded, 0);
  EXPECT_EQ(best.augmented, 0);
}

TEST(PaperEquations, NoOtherSplitInPercentsIsBetter) {
  PaperInputs in = azure_open_images();
  in.cache_bytes_per_s = in.link_bytes_per_s =
      0;  // in memory, and large enough: decoded samples pay
  in.cache_bytes = 2e12;
  const PaperSplit best = best_paper_split(in);
  EXPECT_LT(best.encoded, 1);
  for (int e = 0; e <= 100; ++e)
    for (int d = 0; e + d <= 100; ++d)
      EXPECT_LE(paper_split_at(in, e / 100.0, d / 100.0, (100 - e - d) / 100.0).samples_per_s,
                best.samples_per_s * (1 + 1e-9));
}

}  // namespace
}  // namespace cutwater
