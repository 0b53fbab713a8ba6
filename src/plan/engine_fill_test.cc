// SPDX-License-Identifier: Apache-2.0
#include "plan/engine_fill.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "plan/test_profiles.h"

namespace cutwater {
namespace {

constexpr double kHit = 0.001, kBytes = 1e6;

// Samples of one size that take these seconds to decode, one thread, nothing else.
Profile profile_of(const std::vector<double>& decode_s) {
  Profile profile = test_profile(100'000, {{"source", 1e5, 0, 0}, {"decode", kBytes, 0, kHit}});
  const std::size_t count = decode_s.size();
  profile.ids.resize(count);
  for (CutProfile& cut : profile.cuts) {
    for (auto* column :
         {&cut.bytes, &cut.op_s, &cut.prefix_s, &cut.finish_s, &cut.first_s, &cut.memory_s})
      if (!column->empty()) column->resize(count, column->front());
    for (VariantProfile& v : cut.variants)
      v = {v.codec, cut.bytes, std::vector<double>(count), std::vector<double>(count)};
  }
  for (std::size_t i = 0; i < count; ++i) {
    profile.cuts[1].prefix_s[i] = decode_s[i];
    profile.cuts[0].finish_s[i] = decode_s[i] + kHit;
  }
  return profile;
}

double planned_s(const std::vector<double>& decode_s, double room) {
  const Profile profile = profile_of(decode_s);
  const CacheModel model(profile);
  const SharedRates rates;
  const Sharing alone;
  const EngineFill engine(model, rates, alone, room * model.samples * kBytes);
  return 1 / engine.with(std::vector<double>{0, 1}).samples_per_s;
}

// The policy itself, for one job: what comes finds a free place, or that of the least worthy if
// that is worth clearly less. What was never made is taken for the usual sample until it is. Epoch
// after epoch, until nothing moves.
double policy_s(const std::vector<double>& decode_s, double room, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::size_t> order(decode_s.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<double> sorted = decode_s;
  std::ranges::sort(sorted);
  const double usual = sorted[sorted.size() / 2];
  std::vector<double> known(decode_s.size(), usual);
  const auto places = static_cast<std::size_t>(room * static_cast<double>(order.size()));
  std::vector<std::size_t> kept;
  for (bool moved = true; moved;) {
    moved = false;
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) {
      if (std::ranges::find(kept, i) != kept.end()) continue;
      if (kept.size() < places) {
        known[i] = decode_s[i];
        kept.push_back(i);
        continue;
      }
      const auto least =
          std::ranges::min_element(kept, {}, [&](std::size_t k) { return decode_s[k]; });
      if (decode_s[*least] >= kClearlyLess * known[i]) continue;
      known[i] = decode_s[i];
      if (decode_s[*least] >= kClearlyLess * decode_s[i]) continue;
      *least = i;
      moved = true;
    }
  }
  double seconds = kHit;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (std::ranges::find(kept, i) == kept.end())
      seconds += decode_s[i] / static_cast<double>(order.size());
  return seconds;
}

TEST(EngineFill, ALoneJobKeepsWhatThePolicyKeeps) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::lognormal_distribution<double> worth(-5, 0.0125 * seed);
    std::vector<double> decode_s(400);
    for (double& one : decode_s) one = worth(random);
    for (const double room : {0.1, 0.3, 0.6, 0.9}) {
      double mean_s = 0;  // over orders
      for (unsigned order = 0; order < 8; ++order) mean_s += policy_s(decode_s, room, order) / 8;
      EXPECT_NEAR(planned_s(decode_s, room) / mean_s, 1, 0.05)
          << "seed " << seed << ", room " << room;
    }
  }
}

TEST(EngineFill, ALoneJobKeepsAPartOfWhatIsNotClearlyWorthLess) {
  EXPECT_NEAR(planned_s({0.010, 0.011, 0.012}, 0.5), kHit + 0.5 * 0.011, 1e-8);
  EXPECT_NEAR(planned_s({0.008, 0.020, 0.020}, 0.5), kHit + 0.008 / 3 + 0.010 / 3, 1e-8);
  EXPECT_NEAR(planned_s({0.010, 0.020}, 1), kHit, 1e-7);
  EXPECT_NEAR(planned_s({0.010, 0.020}, 0), kHit + 0.015, 1e-8);
}

// The other jobs come by chance for what one has made. In room for so many samples, each of them
// drives out the one that was made that many before: this counts who was in time.
TEST(EngineFill, InLittleRoomSomeComeTooLate) {
  const Profile profile = profile_of({0.010});
  const CacheModel model(profile);
  const SharedRates rates;
  std::mt19937_64 random(1);
  for (const int jobs : {2, 4, 8})
    for (const double room : {2.0, 20.0, 200.0}) {
      Sharing sharing;
      sharing.jobs = jobs;
      sharing.window_share = 60 / model.samples;
      const double lag = lag_share(sharing) * model.samples;
      std::exponential_distribution<double> comes(1 / lag);
      double in_time = 0, last = 0;
      constexpr int kTrials = 20'000;
      for (int i = 0; i < kTrials; ++i) {
        double latest = 0;
        for (int job = 1; job < jobs; ++job) {
          const double when = comes(random);
          in_time += when < room ? 1 : 0;
          latest = std::max(latest, when);
        }
        last += latest / kTrials;
      }
      EXPECT_NEAR(last, 60, 1.5) << "the window is until the last has come";
      const EngineFill engine(model, rates, sharing, room * kBytes);
      const Fill fill = engine.with(std::vector<double>{0, 1}).fill;
      EXPECT_NEAR(fill.hit_rate, in_time / kTrials / jobs, 0.01) << jobs << " jobs, room " << room;
      EXPECT_LE(fill.bytes * model.samples, room * kBytes * 1.0001);
    }
}

}  // namespace
}  // namespace cutwater
