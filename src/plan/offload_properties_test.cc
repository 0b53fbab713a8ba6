// SPDX-License-Identifier: Apache-2.0
// What holds for the decision about any table of options.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/offload_model.h"
#include "plan/offload_steps.h"
#include "plan/test_offload.h"

namespace cutwater {
namespace {

using test::random_case;
using test::RandomCase;

constexpr double kRounding = 1e-8;

OffloadDecision solve(const RandomCase& c, OffloadPolicy policy = OffloadPolicy::kSophon) {
  return solve_offload(c.options.table(), c.machine, c.weight, policy);
}

bool no_more(double a, double b) { return a <= b * (1 + kRounding); }
bool alike(double a, double b) { return no_more(a, b) && no_more(b, a); }

// The most seconds by which one sample's choice can change any resource.
double one_step_s(const RandomCase& c) {
  const OffloadTable table = c.options.table();
  const OffloadModel model(table, c.machine, c.weight);
  double most = 0;
  for (std::size_t i = 0; i < table.samples(); ++i) {
    OffloadSums high;
    for (const OffloadOption& o : table.row(i)) {
      if (!exists(o)) continue;
      high.bytes = std::max(high.bytes, o.bytes);
      high.storage_s = std::max(high.storage_s, o.storage_s);
      high.compute_s = std::max(high.compute_s, o.compute_s);
    }
    const OffloadTimes times = model.times(high);
    most = std::max({most, times.compute_s, times.storage_s, times.network_s});
  }
  return most;
}

TEST(OffloadProperties, NeverWorseThanAnotherPolicy) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c = random_case(seed, 40, 7);
    const OffloadDecision ours = solve(c);
    for (const OffloadPolicy policy : kOffloadPolicies) {
      SCOPED_TRACE(name_of(policy));
      const OffloadDecision other = solve(c, policy);
      ASSERT_TRUE(no_more(ours.after.epoch_s(), other.after.epoch_s()))
          << ours.after.epoch_s() << " > " << other.after.epoch_s();
      if (c.machine.link_bytes_per_s > 0 && alike(ours.after.epoch_s(), other.after.epoch_s())) {
        ASSERT_TRUE(no_more(ours.bytes_after, other.bytes_after))
            << ours.bytes_after << " > " << other.bytes_after;
      }
    }
  }
}

TEST(OffloadProperties, ALittleTimeIsGivenForBytesIfAllowed) {
  constexpr double kLonger = 0.05, kMost = 0.1, kSlowLink = 1;
  int fewer = 0, longer = 0, outdone = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomCase c = random_case(seed, 40, 7);
    const OffloadDecision shortest = solve(c);
    c.machine.for_bytes = kLonger;
    c.machine.for_fewest_bytes = kMost;
    const OffloadDecision thrifty = solve(c);
    const double limit = (1 + kMost) * shortest.after.epoch_s();
    ASSERT_TRUE(no_more(thrifty.after.epoch_s(), limit));
    RandomCase on_a_slow_link = c;
    if (c.machine.link_bytes_per_s > 0) on_a_slow_link.machine.link_bytes_per_s = kSlowLink;
    bool others_have_fewer =
        solve(on_a_slow_link, OffloadPolicy::kPaper).bytes_after < shortest.bytes_after;
    bool within = false;
    for (const OffloadPolicy policy : kOffloadPolicies) {
      const OffloadDecision other = solve(c, policy);
      if (policy == OffloadPolicy::kSophon || c.machine.link_bytes_per_s == 0) continue;
      others_have_fewer |= other.bytes_after < shortest.bytes_after;
      within |= other.bytes_after < 0.999 * thrifty.bytes_after && other.after.epoch_s() < limit;
    }
    outdone += within ? 1 : 0;
    if (!no_more(thrifty.after.epoch_s(), (1 + kLonger) * shortest.after.epoch_s())) {
      ++longer;
      ASSERT_TRUE(others_have_fewer) << "nothing else is worth more than what was allowed";
    }
    if (c.machine.link_bytes_per_s > 0) {
      ASSERT_TRUE(no_more(thrifty.bytes_after, shortest.bytes_after));
    }
    fewer += thrifty.bytes_after < 0.99 * shortest.bytes_after ? 1 : 0;
    if (thrifty.made_by != OffloadPolicy::kSophon) continue;
    const OffloadTable table = c.options.table();
    const OffloadWorth worth{thrifty.prices.byte, thrifty.prices.compute_s};
    for (std::size_t i = 0; i < table.samples(); ++i) {
      const std::size_t best = best_option(table.row(i), thrifty.prices);
      if (best == thrifty.choice[i]) continue;
      const NextOption next = next_option(table.row(i), worth, thrifty.choice[i]);
      ASSERT_EQ(next.option, best) << "one step less, which is worth exactly the price";
      ASSERT_EQ(next.efficiency, thrifty.prices.storage_s);
    }
  }
  EXPECT_GT(fewer, 300);
  EXPECT_GT(longer, 30);
  EXPECT_LT(outdone, 10) << longer;
}

TEST(OffloadProperties, SumsAreThoseOfTheChoice) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c = random_case(seed, 40, 7);
    const OffloadTable table = c.options.table();
    for (const OffloadPolicy policy : kOffloadPolicies) {
      const OffloadDecision d = solve(c, policy);
      ASSERT_EQ(d.choice.size(), table.samples());
      double bytes = 0, storage_s = 0, compute_s = 0;
      for (std::size_t i = 0; i < d.choice.size(); ++i) {
        const OffloadOption& o = table.row(i)[d.choice[i]];
        ASSERT_TRUE(exists(o));
        bytes += c.weight * o.bytes;
        storage_s += c.weight * o.storage_s / c.machine.storage_speed;
        compute_s += c.weight * o.compute_s;
      }
      EXPECT_TRUE(alike(d.bytes_after, bytes));
      EXPECT_TRUE(alike(d.after.compute_s * c.machine.compute_threads, compute_s));
      if (c.machine.storage_threads > 0) {
        EXPECT_TRUE(alike(d.after.storage_s * c.machine.storage_threads, storage_s));
      }
      if (c.machine.link_bytes_per_s > 0) {
        EXPECT_TRUE(alike(d.after.network_s * c.machine.link_bytes_per_s, bytes));
      }
      EXPECT_TRUE(no_more(d.least_epoch_s, d.after.epoch_s()));
    }
  }
}

TEST(OffloadProperties, ThePriceGivesTheChoice) {
  int by_price = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c = random_case(seed, 40, 7);
    const OffloadDecision d = solve(c);
    if (d.made_by != OffloadPolicy::kSophon) continue;
    ++by_price;
    const OffloadTable table = c.options.table();
    const OffloadWorth worth{d.prices.byte, d.prices.compute_s};
    for (std::size_t i = 0; i < d.choice.size(); ++i) {
      const std::size_t best = best_option(table.row(i), d.prices);
      if (best == d.choice[i]) continue;
      // One step less, and that step is worth exactly the price.
      const NextOption next = next_option(table.row(i), worth, d.choice[i]);
      ASSERT_EQ(next.option, best);
      ASSERT_EQ(next.efficiency, d.prices.storage_s);
    }
  }
  EXPECT_GT(by_price, 1500);
}

TEST(OffloadProperties, WithinStepsOfSamplesOfWhatIsProven) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c = random_case(seed, 40, 7);
    // Where the trainer bounds, a price of its seconds does not divide samples that are all alike.
    if (c.machine.storage_threads == 0 || c.alike) continue;
    const OffloadDecision d = solve(c);
    ASSERT_LE(d.after.epoch_s(), d.least_epoch_s * (1 + kRounding) + 2 * one_step_s(c));
  }
}

TEST(OffloadProperties, WithinOneStepOfTheBestOfAllChoices) {
  int exact = 0, cases = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    const RandomCase c = random_case(seed, 6, 4);
    if (c.machine.storage_threads == 0) continue;
    const OffloadTable table = c.options.table();
    const OffloadModel model(table, c.machine, c.weight);
    const OffloadDecision d = solve(c);
    double best = d.before.epoch_s();
    std::vector<std::uint8_t> choice(table.samples());
    for (std::size_t at = 0; at < choice.size();) {
      bool sound = true;
      for (std::size_t i = 0; i < choice.size(); ++i) sound &= exists(table.row(i)[choice[i]]);
      if (sound) best = std::min(best, model.times(model.sums(choice)).epoch_s());
      for (at = 0; at < choice.size(); ++at) {  // the next number, its digits by sample
        if (++choice[at] < table.variants.size()) break;
        choice[at] = 0;
      }
    }
    ASSERT_TRUE(no_more(d.least_epoch_s, best)) << "what is proven is wrong";
    ASSERT_LE(d.after.epoch_s(), best * (1 + kRounding) + one_step_s(c));
    ++cases;
    exact += no_more(d.after.epoch_s(), best);
  }
  EXPECT_GT(exact, cases * 3 / 4);
}

TEST(OffloadProperties, MoreOfAResourceNeverHurts) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomCase c = random_case(seed, 40, 7);
    const double before = solve(c).after.epoch_s(), step = one_step_s(c);
    c.machine.storage_threads *= 2;
    c.machine.compute_threads *= 2;
    c.machine.link_bytes_per_s *= 2;
    ASSERT_LE(solve(c).after.epoch_s(), before + 2 * step);
  }
}

}  // namespace
}  // namespace cutwater
