// SPDX-License-Identifier: Apache-2.0
#include "cutwater/offload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "core/thread_clock.h"
#include "cutwater/error.h"
#include "plan/test_offload.h"

namespace cutwater {
namespace {

using test::at_cut;
using test::excerpt;
using test::Options;
using testing::Each;
using testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// raw, an excerpt, a cut, and the cut packed.
Options two_samples() {
  return {{{}, excerpt(), at_cut(1, "crop"), at_cut(1, "crop", "zstd:1")},
          {{100, 0, 4},
           {50, 1, 4},
           {40, 6, 1},
           {20, 9, 2},
           {60, 0, 3},
           {30, 2, 3},
           {80, 4, 1},
           kNoOption}};
}

TEST(Offload, TakesTheStepsThatSaveMostForASecondUntilStorageIsAsLong) {
  // Steps: first sample to its excerpt 50 bytes/s, to the packed cut 30/8 (past the plain one,
  // 10/5); second sample to its excerpt 15.
  const Options options = two_samples();
  OffloadMachine machine{.link_bytes_per_s = 10, .storage_threads = 1, .compute_threads = 100};
  OffloadDecision d = solve_offload(options.table(), machine);
  EXPECT_THAT(d.choice, ElementsAre(1, 1));
  EXPECT_EQ(d.made_by, OffloadPolicy::kSophon);
  EXPECT_EQ(d.prices.storage_s, 15);
  EXPECT_EQ(d.bytes_before, 160);
  EXPECT_EQ(d.bytes_after, 80);
  EXPECT_EQ(d.before.epoch_s(), 16);
  EXPECT_EQ(d.before.bound_by(), "network");
  EXPECT_EQ(d.after, (OffloadTimes{0, 0.07, 3, 8}));
  // The next step: 50 bytes and 11 s of storage, an epoch of 11 s. With two threads it is worth it,
  // and then nothing is left to do.
  machine.storage_threads = 2;
  d = solve_offload(options.table(), machine);
  EXPECT_THAT(d.choice, ElementsAre(3, 1));
  EXPECT_EQ(d.prices.storage_s, 0);
  EXPECT_EQ(d.after.epoch_s(), 5.5);
  EXPECT_EQ(d.after.bound_by(), "storage_cpu");
  // A row may stand for many.
  d = solve_offload(options.table(), machine, 1000);
  EXPECT_THAT(d.choice, ElementsAre(3, 1));
  EXPECT_EQ(d.bytes_after, 50'000);
  EXPECT_EQ(d.after.epoch_s(), 5500);
  // A faster server is as good as more threads.
  machine = {.link_bytes_per_s = 10, .storage_threads = 1, .compute_threads = 100};
  machine.storage_speed = 2;
  EXPECT_THAT(solve_offload(options.table(), machine).choice, ElementsAre(3, 1));
}

TEST(Offload, BehindASlowConsumerTrafficFallsAsFarAsStorageHasTime) {
  const Options options = two_samples();
  OffloadMachine machine{.link_bytes_per_s = 1e9, .storage_threads = 1, .compute_threads = 100};
  machine.consumer_samples_per_s = 2.0 / 3;  // an epoch of 3 s
  const OffloadDecision d = solve_offload(options.table(), machine);
  EXPECT_THAT(d.choice, ElementsAre(1, 1));
  EXPECT_EQ(d.after.epoch_s(), d.before.epoch_s());
  EXPECT_DOUBLE_EQ(d.least_epoch_s, 3);
  EXPECT_EQ(d.after.bound_by(), "consumer");
  machine.consumer_samples_per_s = 2 / 2.9;
  EXPECT_THAT(solve_offload(options.table(), machine).choice, ElementsAre(1, 0));
}

TEST(Offload, DoesNotUnpackWhatTheTrainerHasNoTimeFor) {
  // Packed it is half the bytes, but takes the trainer three times as long.
  const Options options{{{}, at_cut(0, "source", "zstd:1"), excerpt()},
                        {{100, 0, 1}, {50, 1, 3}, {60, 2, 1}, {100, 0, 1}, {50, 1, 3}, {60, 2, 1}}};
  OffloadMachine machine{.link_bytes_per_s = 100, .storage_threads = 100, .compute_threads = 100};
  EXPECT_THAT(solve_offload(options.table(), machine).choice, Each(1));
  machine.compute_threads = 1;  // 2 s of it, as long as the network takes for raw samples
  OffloadDecision d = solve_offload(options.table(), machine);
  EXPECT_THAT(d.choice, Each(2));
  EXPECT_EQ(d.after.epoch_s(), 2);
  EXPECT_GT(d.prices.compute_s, 0);
  EXPECT_EQ(d.least_epoch_s, 2);
  machine.compute_threads = 5 / 1.5;  // one of them is the best
  d = solve_offload(options.table(), machine);
  EXPECT_EQ(d.bytes_after, 110);
  EXPECT_NEAR(d.after.epoch_s(), 1.2, 1e-9);
}

TEST(Offload, WithoutStorageThreadsOrALinkThatBoundsAllIsRaw) {
  const Options options = two_samples();
  OffloadMachine machine{.link_bytes_per_s = 10, .storage_threads = 0, .compute_threads = 1};
  for (const OffloadPolicy policy : kOffloadPolicies) {
    const OffloadDecision d = solve_offload(options.table(), machine, 1, policy);
    EXPECT_THAT(d.choice, Each(0)) << name_of(policy);
    EXPECT_EQ(d.after, d.before);
  }
  machine.storage_threads = 4;
  machine.compute_threads = 100;
  for (const double none : {0.0, kInfinity}) {
    machine.link_bytes_per_s = none;
    machine.consumer_samples_per_s = 1;
    const OffloadDecision d = solve_offload(options.table(), machine);
    EXPECT_THAT(d.choice, Each(0));
    EXPECT_EQ(d.prices.storage_s, kInfinity);
  }
  // But the trainer is relieved where it is the longest: of 3 s of 7 by 3 of storage.
  machine = {.link_bytes_per_s = 0, .storage_threads = 2, .compute_threads = 1};
  const OffloadDecision d = solve_offload(options.table(), machine);
  EXPECT_EQ(d.before.epoch_s(), 7);
  EXPECT_THAT(d.choice, ElementsAre(2, 0));
  EXPECT_EQ(d.after, (OffloadTimes{0, 4, 3, 0}));
}

TEST(Offload, PoliciesBesideIt) {
  const Options options{{{},
                         excerpt(),
                         at_cut(1, "decode"),
                         at_cut(2, "crop"),
                         at_cut(2, "crop", "zstd:1"),
                         at_cut(3, "float")},
                        {{100, 0, 5},
                         {20, 1, 5},
                         {300, 2, 3},
                         {50, 3, 2},
                         {10, 4, 2},
                         {200, 4, 0},
                         {40, 0, 5},
                         {30, 1, 5},
                         {90, 2, 3},
                         {50, 3, 2},
                         {10, 4, 2},
                         {200, 4, 0}}};
  OffloadMachine machine{.link_bytes_per_s = 1, .storage_threads = 10, .compute_threads = 1};
  const auto choice = [&](OffloadPolicy policy) {
    return solve_offload(options.table(), machine, 1, policy).choice;
  };
  EXPECT_THAT(choice(OffloadPolicy::kNoOff), ElementsAre(0, 0));
  EXPECT_THAT(choice(OffloadPolicy::kAllOff), ElementsAre(5, 5));
  EXPECT_THAT(choice(OffloadPolicy::kResizeOff), ElementsAre(3, 3));
  EXPECT_THAT(choice(OffloadPolicy::kPaper), ElementsAre(3, 0));
  EXPECT_THAT(choice(OffloadPolicy::kSophon), ElementsAre(4, 4));
  // A network that is not the longest stays as it is.
  machine.link_bytes_per_s = 1000;
  EXPECT_THAT(choice(OffloadPolicy::kPaper), ElementsAre(0, 0));
}

TEST(Offload, ThePapersRuleAsksBeforeEachSample) {
  // 0.1 s of network saved by 1 s of storage, four times: the first makes storage the longest.
  Options options{{{}, at_cut(1, "crop")}, {}};
  for (int i = 0; i < 4; ++i)
    options.values.insert(options.values.end(), {{100, 0, 0}, {90, 1, 0}});
  const OffloadMachine machine{.link_bytes_per_s = 500, .storage_threads = 1, .compute_threads = 1};
  EXPECT_THAT(solve_offload(options.table(), machine, 1, OffloadPolicy::kPaper).choice,
              ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(solve_offload(options.table(), machine).choice, Each(0));
}

// Two kinds of files: those that are smaller after the crop, and the others. Sizes in kB are such
// that the means, and the share of the first kind, are those of the paper's data sets.
Options paper_data(int shrinking, double large, double small) {
  Options options{{{}, at_cut(1, "decode"), at_cut(2, "crop"), at_cut(3, "float")}, {}};
  for (int i = 0; i < 100; ++i) {
    const double raw = i < shrinking ? large : small;
    options.values.insert(
        options.values.end(),
        {{raw, 0, 5e-3}, {8 * raw, 4e-3, 1e-3}, {151, 5e-3, 3e-4}, {602, 5.3e-3, 0}});
  }
  return options;
}

TEST(Offload, ReproducesThePapersTable) {
  const OffloadMachine machine{
      .link_bytes_per_s = 62'500, .storage_threads = 48, .compute_threads = 48};
  const auto traffic = [&](const Options& options, OffloadPolicy policy) {
    const OffloadDecision d = solve_offload(options.table(), machine, 400, policy);
    return d.bytes_after / d.bytes_before;
  };
  const Options open_images = paper_data(76, 385.5, 100);
  EXPECT_NEAR(traffic(open_images, OffloadPolicy::kAllOff), 1.9, 0.05);
  EXPECT_NEAR(1 / traffic(open_images, OffloadPolicy::kResizeOff), 2.0, 0.15);
  EXPECT_NEAR(1 / traffic(open_images, OffloadPolicy::kPaper), 2.2, 0.1);
  const OffloadDecision d = solve_offload(open_images.table(), machine, 400, OffloadPolicy::kPaper);
  EXPECT_NEAR(d.before.epoch_s(), 192, 12);  // 12 GB at 500 Mb/s
  EXPECT_NEAR(d.after.epoch_s(), 87, 3);
  EXPECT_EQ(d.after.bound_by(), "network");

  const Options imagenet = paper_data(26, 226.6, 79.8);
  EXPECT_NEAR(traffic(imagenet, OffloadPolicy::kAllOff), 5.1, 0.05);
  EXPECT_NEAR(traffic(imagenet, OffloadPolicy::kResizeOff), 1.3, 0.05);
  EXPECT_NEAR(1 / traffic(imagenet, OffloadPolicy::kPaper), 1.2, 0.01);
  // With the same two choices for a sample, ours are the same.
  for (const Options* options : {&open_images, &imagenet})
    EXPECT_EQ(solve_offload(options->table(), machine, 400).choice,
              solve_offload(options->table(), machine, 400, OffloadPolicy::kPaper).choice);
}

TEST(Offload, RefusesWhatMakesNoSense) {
  const auto refused = [](const Options& options, const OffloadMachine& machine,
                          const std::string& why, double weight = 1) {
    EXPECT_THAT([&] { solve_offload(options.table(), machine, weight); },
                testing::ThrowsMessage<Error>(testing::HasSubstr(why)));
  };
  const OffloadMachine good{.link_bytes_per_s = 1, .storage_threads = 1, .compute_threads = 1};
  Options options = two_samples();
  refused(options, {.link_bytes_per_s = -1}, "the link's bytes per second");
  refused(options, {.storage_threads = -1}, "storage threads must not be negative, got -1.0");
  refused(options, {.compute_threads = 0}, "the trainer's threads must be positive");
  refused(options, good, "the weight of a row must be positive", 0);
  options.values.pop_back();
  refused(options, good, "the table has 7 values, which are no rows of 4");
  options = two_samples();
  options.values[6].compute_s = -1;
  refused(options, good, "sample 1 has no sound figures for option 'crop'");
  options = two_samples();
  options.values[4] = kNoOption;
  refused(options, good, "sample 1 has no sound figures for option 'raw'");
  options.variants[0].cut = 1;
  refused(options, good, "the first option must be raw");
  refused({}, good, "a sample has 1..256 options, got 0");
}

TEST(Offload, AMillionSamples) {
  Options options{{{},
                   excerpt(),
                   at_cut(1, "decode"),
                   at_cut(2, "crop"),
                   at_cut(2, "crop", "zstd:1"),
                   at_cut(3, "float")},
                  {}};
  std::mt19937_64 random(1);
  const auto between = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() % 10'000) / 10'000;
  };
  for (int i = 0; i < 1'000'000; ++i) {
    const double raw = between(2e4, 4e5), s = raw * 3e-8;
    options.values.insert(options.values.end(),
                          {{raw, 0, s},
                           {raw * between(0.1, 1), s * between(0.2, 0.4), s * between(0.5, 1)},
                           {raw * 6, s * 0.8, s * 0.3},
                           {150'528, s * 0.9, s * 0.1},
                           {150'528 * between(0.3, 0.9), s * 1.2, s * 0.2},
                           {602'112, s, 0}});
  }
  OffloadMachine machine{.link_bytes_per_s = 62.5e6, .storage_threads = 1, .compute_threads = 8};
  for (const double compute_threads : {8.0, 2.5}) {
    machine.compute_threads = compute_threads;
    OffloadDecision d;
    const double took = timed([&] { d = solve_offload(options.table(), machine); });
    std::printf(
        "a million samples, %.1f threads: %.3f s; %.3g bytes of %.3g, bound by %s, "
        "%.2g above what is proven\n",
        compute_threads, took, d.bytes_after, d.bytes_before,
        std::string(d.after.bound_by()).c_str(), d.above_least());
    EXPECT_EQ(d.made_by, OffloadPolicy::kSophon);
    EXPECT_LT(d.above_least(), 1e-3);
    std::size_t others = 0;  // but for those whose last step is worth exactly the price
    for (std::size_t i = 0; i < d.choice.size(); ++i)
      others += d.choice[i] != best_option(options.table().row(i), d.prices) ? 1 : 0;
    EXPECT_LE(others, 10U);
  }
}

}  // namespace
}  // namespace cutwater
