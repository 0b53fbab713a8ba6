// SPDX-License-Identifier: Apache-2.0
// Opportunist: each sample once whatever the cache says, an order that is still random, and hits
// near the bound of what jobs can share.
#include "sampler/opportunist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

namespace cutwater {
namespace {

std::vector<SampleId> counted_to(std::int64_t size) {
  std::vector<SampleId> ids(static_cast<std::size_t>(size));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(Opportunist, AJobAloneKeepsTheOrder) {
  const EpochOrder order = EpochOrder::shuffled(500, 3, 1);
  Ledger ledger(order, 500, 0, {}, Ledger::ById::kYes);
  Opportunist choose(ledger, 3, 1, 9);
  choose.begin(counted_to(250));
  for (std::int64_t position = 0; position < 500; ++position) {
    if (position == 100) choose.arrived(counted_to(500));
    ASSERT_EQ(choose.next().position, position);
  }
}

// Names that are repeated, made up, or of the past; jobs that come and go; a start in the middle.
TEST(Opportunist, IssuesEachSampleOnceWhateverTheCacheSays) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::int64_t n) {
      return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
    };
    const std::int64_t size = 1 + below(300), end = size - below(std::min<std::int64_t>(size, 5));
    std::vector<std::int64_t> beyond;
    const std::int64_t position = below(size);
    for (std::int64_t p = position; p < size; ++p)
      if (below(4) == 0) beyond.push_back(p);
    Ledger ledger(EpochOrder::shuffled(size, seed, 0), end, position, beyond, Ledger::ById::kYes);
    Opportunist choose(ledger, seed, 0, seed);
    const auto names = [&] {
      std::vector<SampleId> ids(static_cast<std::size_t>(below(60)));
      for (SampleId& id : ids)
        id = below(9) == 0 ? below(2) * (INT64_MAX - 5) - below(4) : below(size + 10) - 5;
      return ids;
    };
    if (below(2) == 0) choose.begin(names());
    BitSet seen(size);
    for (std::int64_t left = ledger.left(); left > 0; --left) {
      if (below(5) == 0) choose.set_others(static_cast<int>(below(9)));
      if (below(3) == 0) choose.arrived(names());
      const Ledger::Claim claim = choose.next();
      ASSERT_LT(claim.position, end);
      ASSERT_FALSE(seen[claim.id]) << "seed " << seed;
      seen.set(claim.id);
      ASSERT_EQ(ledger.left(), left - 1);
    }
  }
}

TEST(Opportunist, FollowsFromItsNumbersAlone) {
  const auto order_of = [](std::uint64_t seed, std::uint32_t epoch, std::uint64_t tide) {
    Ledger ledger(EpochOrder(1000), 1000, 0, {}, Ledger::ById::kYes);
    Opportunist choose(ledger, seed, epoch, tide);
    choose.set_others(1);
    choose.begin(counted_to(400));
    std::vector<SampleId> ids;
    while (!ledger.all_issued()) ids.push_back(choose.next().id);
    return ids;
  };
  EXPECT_EQ(order_of(1, 2, 3), order_of(1, 2, 3));
  EXPECT_NE(order_of(1, 2, 3), order_of(2, 2, 3));
  EXPECT_NE(order_of(1, 2, 3), order_of(1, 3, 3));
  EXPECT_NE(order_of(1, 2, 3), order_of(1, 2, 4));
}

// Jobs with other seeds and other orders go through what is there in the same one.
TEST(Opportunist, OneTideIsOneOrderOfTheResidents) {
  const auto residents = [](std::uint64_t seed) {
    const EpochOrder order = EpochOrder::shuffled(1000, seed, 0);
    Ledger ledger(order, 1000, 0, {}, Ledger::ById::kYes);
    Opportunist choose(ledger, seed, 0, 77);
    choose.set_others(1000);  // hardly ever a head
    std::vector<SampleId> there(counted_to(200));
    std::shuffle(there.begin(), there.end(), std::mt19937(static_cast<unsigned>(seed)));
    choose.begin(there);
    std::int64_t head = 0;
    std::vector<SampleId> taken;
    for (int i = 0; i < 100; ++i) {
      const Ledger::Claim claim = choose.next();
      if (claim.position == head)
        ++head;
      else
        taken.push_back(claim.id);
    }
    return taken;
  };
  std::vector<SampleId> one = residents(1), two = residents(2);
  std::vector<SampleId> common;
  for (const SampleId id : one)
    if (std::find(two.begin(), two.end(), id) != two.end()) common.push_back(id);
  ASSERT_GT(common.size(), 80U);
  std::erase_if(two, [&](SampleId id) {
    return std::find(common.begin(), common.end(), id) == common.end();
  });
  EXPECT_EQ(common, two);
}

// What was there at the start, and is made into another form by a job that draws alike, is news.
TEST(Opportunist, WhatArrivesAgainComesFirst) {
  Ledger ledger(EpochOrder::shuffled(1000, 4, 0), 1000, 0, {}, Ledger::ById::kYes);
  Opportunist choose(ledger, 4, 0, 77);
  choose.set_others(1000, true);  // hardly ever a head
  choose.begin(counted_to(1000));
  std::vector<SampleId> again = {900, 17, 512, 333};
  choose.arrived(again);
  choose.arrived(again);
  std::vector<SampleId> taken;
  for (int i = 0; i < 4; ++i) taken.push_back(choose.next().id);
  EXPECT_THAT(taken, testing::UnorderedElementsAreArray(again));
}

// What others have just made stays only until all have had it. The residents of the start make up
// for it: in the long run the share is as without arrivals.
TEST(Opportunist, WhatArrivesIsTakenAtOnce) {
  constexpr SampleId kSamples = 4000, kThere = 1000, kMade = 6;
  Ledger ledger(EpochOrder::shuffled(kSamples, 4, 0), kSamples, 0, {}, Ledger::ById::kYes);
  Opportunist choose(ledger, 4, 0, 77);
  choose.set_others(1);
  choose.begin(counted_to(kThere));
  int of_start = 0, tickets = 0;
  for (SampleId made = kThere; tickets < 1000; made += kMade) {
    std::vector<SampleId> news;
    for (SampleId id = made; id < made + kMade; ++id)
      if (ledger.unissued(id)) news.push_back(id);
    choose.arrived(news);
    for (int i = 0; i < 20; ++i, ++tickets) {
      const Ledger::Claim claim = choose.next();
      of_start += claim.id < kThere ? 1 : 0;
      std::erase(news, claim.id);
    }
    EXPECT_TRUE(news.empty());  // four of six would have been taken by chance alone
  }
  // Half of the tickets, less the arrivals; and of the other half, the heads, one in four.
  EXPECT_NEAR(of_start, 500 - 1000 / 20 * kMade + 500 / 4, 60);
}

// Their order is the same: who took heads would make what the others make.
TEST(Opportunist, JobsThatDrawAlikeTakeOthersNearTheHead) {
  const auto positions = [](std::uint64_t own) {
    constexpr std::int64_t kSamples = 3000;
    Ledger ledger(EpochOrder::shuffled(kSamples, 7, 0), kSamples, 0, {}, Ledger::ById::kYes);
    Opportunist choose(ledger, own, 0, 1);
    choose.set_others(3, true);
    std::vector<std::int64_t> all;
    std::int64_t head = 0, since = 0;
    BitSet issued(kSamples);
    while (!ledger.all_issued()) {
      const std::int64_t position = choose.next().position;
      EXPECT_LT(position - head, Opportunist::kNearHead);
      since = position == head ? 0 : since + 1;
      EXPECT_LE(since, 16);  // run_limit() for four jobs
      issued.set(position);
      head = issued.next_clear(head);
      all.push_back(position);
    }
    return all;
  };
  const std::vector<std::int64_t> one = positions(1), two = positions(2);
  std::size_t same = 0;
  for (std::size_t i = 0; i < one.size(); ++i) same += one[i] == two[i] ? 1 : 0;
  EXPECT_LT(same, one.size() / 10);
}

TEST(Opportunist, NoHeadWaitsLongerThanPromised) {
  for (const int others : {1, 2, 7, 1000}) {
    Ledger ledger(EpochOrder(20'000), 20'000, 0, {}, Ledger::ById::kYes);
    Opportunist choose(ledger, 5, 0, 1);
    choose.set_others(others);
    choose.begin(counted_to(20'000));
    std::int64_t head = 0, since = 0, longest = 0;
    BitSet issued(20'000);
    while (!ledger.all_issued()) {
      ASSERT_LE(choose.run_limit(), Opportunist::kLongestRun);
      const Ledger::Claim claim = choose.next();
      since = claim.position == head ? 0 : since + 1;
      longest = std::max(longest, since);
      issued.set(claim.position);
      head = issued.next_clear(head);
    }
    EXPECT_LE(longest, std::min<std::int64_t>(4 * (others + 1) + 1, Opportunist::kLongestRun));
    EXPECT_GE(longest, std::min(others, 30)) << "the case must come near the bound";
  }
}

// A cache that knows who has yet to see what, as simply as that can be written.
class ModelCache {
 public:
  ModelCache(std::int64_t samples, std::int64_t room, std::size_t jobs)
      : room_(room), resident_(static_cast<std::size_t>(samples)), seen_(jobs), arrivals_(jobs) {
    for (auto& seen : seen_) seen.resize(static_cast<std::size_t>(samples));
  }

  bool has(SampleId id) const { return resident_[static_cast<std::size_t>(id)]; }
  std::vector<SampleId> begin_epoch(std::size_t job) {
    seen_[job].assign(resident_.size(), false);
    arrivals_[job].clear();
    std::vector<SampleId> all;
    for (std::size_t id = 0; id < resident_.size(); ++id)
      if (resident_[id]) all.push_back(static_cast<SampleId>(id));
    return all;
  }
  void had(std::size_t job, SampleId id) { seen_[job][static_cast<std::size_t>(id)] = true; }
  std::vector<SampleId> arrivals(std::size_t job) { return std::exchange(arrivals_[job], {}); }

  void put(SampleId id) {
    if (entries_ == room_) {
      SampleId least = -1;
      // From anywhere: were it by id, what stays would be of neighbours, and the order would show
      // it.
      const std::size_t first = random_() % resident_.size();
      for (std::size_t k = 0; k < resident_.size(); ++k) {
        const auto other = static_cast<SampleId>((k + first) % resident_.size());
        if (has(other) && (least < 0 || wanted(other) < wanted(least))) least = other;
        if (least >= 0 && wanted(least) == 0) break;
      }
      if (least < 0 || wanted(least) >= wanted(id)) return;
      resident_[static_cast<std::size_t>(least)] = false;
      --entries_;
    }
    resident_[static_cast<std::size_t>(id)] = true;
    ++entries_;
    for (auto& queue : arrivals_) queue.push_back(id);
  }

 private:
  std::int64_t wanted(SampleId id) const {
    return std::count_if(seen_.begin(), seen_.end(), [&](const std::vector<bool>& seen) {
      return !seen[static_cast<std::size_t>(id)];
    });
  }

  const std::int64_t room_;
  std::int64_t entries_ = 0;
  std::mt19937 random_{1};
  std::vector<bool> resident_;
  std::vector<std::vector<bool>> seen_;
  std::vector<std::vector<SampleId>> arrivals_;
};

// What a job had in an epoch, in order: the sample, and whether it was a hit.
struct Had {
  SampleId id;
  bool hit;
};
using Epoch = std::vector<Had>;

struct Trial {
  std::int64_t samples;
  double share;      // that fits into the cache
  double miss_time;  // a hit takes 1
  std::vector<double> speeds;
  std::size_t epochs;
};

// Jobs that take one sample after the other, each at its own time: epochs[job][epoch].
std::vector<std::vector<Epoch>> simulate(const Trial& trial, unsigned seed) {
  struct Job {
    std::unique_ptr<Ledger> ledger;
    std::unique_ptr<Opportunist> choose;
    double time = 0;
  };
  const std::size_t jobs = trial.speeds.size();
  ModelCache cache(trial.samples, std::llround(trial.share * static_cast<double>(trial.samples)),
                   jobs);
  std::mt19937 random(seed);
  std::vector<Job> all(jobs);
  std::vector<std::vector<Epoch>> epochs(jobs);
  for (;;) {
    const auto first = std::min_element(all.begin(), all.end(),
                                        [](const Job& a, const Job& b) { return a.time < b.time; });
    const auto which = static_cast<std::size_t>(first - all.begin());
    Job& job = *first;
    if (!job.ledger || job.ledger->all_issued()) {
      if (epochs[which].size() == trial.epochs) return epochs;
      const auto epoch = static_cast<std::uint32_t>(epochs[which].size());
      const std::uint64_t its_seed = seed * 100 + which;
      job.ledger = std::make_unique<Ledger>(EpochOrder::shuffled(trial.samples, its_seed, epoch),
                                            trial.samples, 0, std::span<const std::int64_t>(),
                                            Ledger::ById::kYes);
      job.choose = std::make_unique<Opportunist>(*job.ledger, its_seed, epoch, epoch);
      job.choose->begin(cache.begin_epoch(which));
      job.choose->set_others(static_cast<int>(jobs) - 1);
      epochs[which].emplace_back();
    }
    job.choose->arrived(cache.arrivals(which));
    const SampleId id = job.choose->next().id;
    const bool hit = cache.has(id);
    if (!hit) cache.put(id);
    cache.had(which, id);
    epochs[which].back().push_back({id, hit});
    const double jitter = 0.5 + static_cast<double>(random() % 1000) / 1000;
    job.time += (hit ? 1 : trial.miss_time) / trial.speeds[which] * jitter;
  }
}

double hit_rate(std::span<const Had> part) {
  const auto hits = std::count_if(part.begin(), part.end(), [](const Had& one) { return one.hit; });
  return static_cast<double>(hits) / static_cast<double>(part.size());
}

// The bound is 1 - (1 - x) / 3: 73 % and 80 %.
TEST(Opportunist, ThreeEqualJobsComeNearTheBoundAllThroughTheEpoch) {
  constexpr std::size_t kParts = 5;
  for (const auto& [share, wanted] : {std::pair{0.2, 0.70}, {0.4, 0.78}}) {
    const auto jobs = simulate({4000, share, 4, {1, 1, 1}, 5}, 1);
    for (const auto& epochs : jobs) {
      for (std::size_t epoch = 1; epoch + 1 < epochs.size(); ++epoch) {
        SCOPED_TRACE(testing::Message() << share << " cached, epoch " << epoch);
        const std::span<const Had> all = epochs[epoch];
        EXPECT_GE(hit_rate(all), wanted);
        for (std::size_t part = 0; part < kParts; ++part) {
          const std::size_t length = all.size() / kParts;
          EXPECT_NEAR(hit_rate(all.subspan(part * length, length)), hit_rate(all), 0.06) << part;
        }
      }
    }
  }
}

// How far the number of runs of equal signs is from what chance would make it, in standard
// deviations (Wald and Wolfowitz).
double runs_score(const std::vector<bool>& signs) {
  const auto n = static_cast<double>(signs.size());
  const auto plus = static_cast<double>(std::count(signs.begin(), signs.end(), true));
  double runs = 1;
  for (std::size_t i = 1; i < signs.size(); ++i) runs += signs[i] != signs[i - 1] ? 1 : 0;
  const double twice = 2 * plus * (n - plus);
  return (runs - twice / n - 1) / std::sqrt(twice * (twice - n) / (n * n * (n - 1)));
}

// 3.3 is passed by chance once in a thousand; the seeds are fixed, so the verdict is, too.
TEST(Opportunist, EpochsAreWholeAndStillInRandomOrder) {
  constexpr std::int64_t kSamples = 4000;
  for (const double share : {0.1, 0.3, 0.7}) {
    for (const auto& epochs : simulate({kSamples, share, 4, {1, 1, 1}, 4}, 3)) {
      for (const Epoch& epoch : epochs) {
        if (static_cast<std::int64_t>(epoch.size()) < kSamples) continue;  // cut short
        std::vector<SampleId> ids;
        std::vector<bool> odd, upper;
        for (const Had& one : epoch) {
          ids.push_back(one.id);
          odd.push_back(one.id % 2 == 1);
          upper.push_back(one.id >= kSamples / 2);
        }
        EXPECT_LT(std::abs(runs_score(odd)), 3.3);
        EXPECT_LT(std::abs(runs_score(upper)), 3.3);
        std::sort(ids.begin(), ids.end());
        EXPECT_EQ(ids, counted_to(kSamples));
      }
    }
  }
  EXPECT_GT(std::abs(runs_score(std::vector<bool>{true, true, true, true, true, true, false, false,
                                                  false, false, false, false, false})),
            3)
      << "the test itself";
}

// The slower one finds more of what it needs made already, and takes it.
TEST(Opportunist, ASlowJobRidesAlong) {
  const auto jobs = simulate({4000, 0.4, 4, {1, 2, 2}, 3}, 1);
  const double slow = hit_rate(jobs[0][1]),
               fast = (hit_rate(jobs[1][1]) + hit_rate(jobs[2][1])) / 2;
  EXPECT_GT(slow, fast + 0.1);
  EXPECT_GT(fast, 0.66);
}

}  // namespace
}  // namespace cutwater
