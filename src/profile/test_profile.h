// SPDX-License-Identifier: Apache-2.0
// For tests: a small profile without any measuring.
#pragma once

#include "cutwater/profile.h"

namespace cutwater::test {

// Two samples, three cuts of which two are stable; no two values are the same.
inline Profile small_profile() {
  Profile profile;
  double next = 1;
  const auto column = [&next] { return std::vector<double>{next++, next++}; };
  profile.data = "train";
  profile.pipeline = "pixels | jitter";
  profile.fingerprint = "f";
  profile.source_identity = "s";
  profile.data_samples = 10;
  profile.ids = {7, 3};
  for (Cut cut = 0; cut < 3; ++cut) {
    CutProfile one;
    one.cut = cut;
    one.name = cut == 0 ? "source" : cut == 1 ? "pixels" : "jitter";
    if (cut > 0) one.after = one.name;
    one.stable = cut < 2;
    one.bytes = column();
    one.op_s = column();
    one.prefix_s = column();
    one.finish_s = column();
    if (one.stable) {
      one.first_s = column();
      one.memory_s = column();
    }
    for (const char* codec : {"none", "zstd:3"})
      one.variants.push_back({codec_named(codec), column(), column(), column()});
    profile.cuts.push_back(std::move(one));
  }
  profile.excerpt = {column(), column(), column()};
  profile.bad = {{Code::kBadSample, "cannot be", 5, "train/5.jpg", "pixels"}};
  profile.reads_files = false;
  profile.relative_error = 0.25;
  profile.storage = {{1, 2}, {3, 4}, 5, 6, 7, 8, 13, 14};
  profile.memory_bytes_per_s = 9;
  profile.fresh_memory_bytes_per_s = 14;
  profile.shared_memory_bytes_per_s = 16;
  profile.shared_checked_bytes_per_s = 17;
  profile.checked_memory_bytes_per_s = 18;
  profile.engine_s = 10;
  profile.whole_s = 15;
  profile.consumer_samples_per_s = 11;
  profile.threads = 2;
  profile.seconds = 12;
  return profile;
}

}  // namespace cutwater::test
