// SPDX-License-Identifier: Apache-2.0
// Which stable cut to keep, in a cache or a store, when nobody has said, and no profile is at hand:
// some samples are run, and the cut is taken that saves the most time in the room there is. The
// last stable cut is often not it: full pixels take five times the bytes of the file, and floats
// four times those of pixels, so fewer samples fit, and moving them costs more than the work they
// save.
#include "run/cut_choice.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/stable_cut.h"
#include "core/thread_clock.h"
#include "core/units.h"
#include "variant/form.h"

namespace cutwater {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kTrials = 16;
constexpr double kMostSeconds = 1;
// Cuts as good as the best but for this share count as equal, and the smallest is taken.
constexpr double kEqual = 0.05;

// Sums over the samples tried. Times are the thread's own: other jobs may be at work.
struct CutTrial {
  double bytes = 0;
  double make_seconds = 0;  // to get there from the source's cut and to keep it
  double finish_seconds = 0;
};

class Trial {
 public:
  Trial(const What& what, const Codec& codec, double bytes_per_second, bool fuse)
      : cuts(static_cast<std::size_t>(what.pipeline.frontier() - what.source->cut() + 1)),
        what_(what),
        codec_(codec),
        bytes_per_second_(bytes_per_second),
        first_(what.source->cut()) {
    how_.pool = BufferPool::create(std::size_t{64} << 20);
    how_.fuse = fuse;
  }

  void run() {
    const std::int64_t size = what_.source->size(), count = std::min(size, kTrials);
    const auto start = Clock::now();
    // The first one twice: what is done only once would look like its time.
    for (std::int64_t i = -1; i < count && (samples == 0 || seconds_since(start) < kMostSeconds);
         ++i) {
      const bool good = try_sample((2 * std::max<std::int64_t>(i, 0) + 1) * size / (2 * count));
      if (i < 0)
        forget();
      else
        samples += good ? 1 : 0;
    }
  }

  std::vector<CutTrial> cuts;  // from the source's cut to the frontier
  double read_seconds = 0;
  std::int64_t samples = 0;

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void forget() {
    read_seconds = 0;
    std::fill(cuts.begin(), cuts.end(), CutTrial{});
  }

  // False: a bad sample, of which nothing counts.
  bool try_sample(SampleId id) {
    // On the wall, as waiting for storage counts; but what another thread took meanwhile does not.
    const auto start = Clock::now();
    const double worked = thread_seconds();
    const ThreadSwitches before = thread_switches();
    Result<Sample> read = what_.source->read(id, *how_.pool);
    const ThreadSwitches after = thread_switches();
    const bool others_alone = after.made_way > before.made_way && after.waited == before.waited;
    const double reading = others_alone ? thread_seconds() - worked : seconds_since(start);
    if (!read) return false;
    const Pipeline& pipeline = what_.pipeline;
    Result<Draws> draws = pipeline.draw(read.value(), what_.seed, 0);
    if (!draws) return false;
    Sample sample = std::move(read).value();
    std::vector<CutTrial> tried(cuts.size());
    double making = 0;
    for (std::size_t k = 0; k < cuts.size(); ++k) {
      const Cut cut = first_ + static_cast<Cut>(k);
      if (k > 0) {
        const double made_from = thread_seconds();
        Result<Sample> next = pipeline.run(std::move(sample), cut - 1, cut, draws.value(), how_);
        if (!next) return false;
        sample = std::move(next).value();
        making += thread_seconds() - made_from;
      }
      tried[k] = try_cut(sample, draws.value());
      if (tried[k].bytes == 0) return false;
      tried[k].make_seconds += making;
    }
    read_seconds += reading;
    for (std::size_t k = 0; k < cuts.size(); ++k) {
      cuts[k].bytes += tried[k].bytes;
      cuts[k].make_seconds += tried[k].make_seconds;
      cuts[k].finish_seconds += tried[k].finish_seconds;
    }
    return true;
  }

  // What keeping it, and a hit, at the sample's cut would take; zero bytes: the sample is bad
  // further on.
  CutTrial try_cut(Sample& sample, const Draws& draws) {
    const double keep_from = thread_seconds();
    const FormWriter form(sample, codec_);
    Buffer bytes = how_.pool->allocate(form.size());
    form.write(bytes.span());
    const double start = thread_seconds();
    Sample found = read_form({bytes.view(), nullptr, how_.pool.get()}, sample.id, sample.cut);
    const Cut from = sample.cut;
    if (!what_.pipeline.run(std::move(found), from, what_.pipeline.last_cut(), draws, how_))
      return {};
    const auto size = static_cast<double>(form.size());
    return {size, start - keep_from, thread_seconds() - start + size / bytes_per_second_};
  }

  const What& what_;
  const Codec codec_;
  const double bytes_per_second_;
  const Cut first_;
  RunContext how_;
};

double reach_of(const What& what) {
  return static_cast<double>(what.batch_size) * static_cast<double>(what.max_late_batches);
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", seconds * 1e3);
  return text;
}

}  // namespace

CutChoice given_cut(const std::string& what_for, const What& what, const std::string& text) {
  const Cut cut = what.pipeline.cut_named(text);
  require_stable_cut(what_for, what.pipeline, what.source->cut(), cut,
                     "Keep the frontier or an earlier cut");
  return {cut, "as given"};
}

CutTrials::CutTrials(const std::string& what_for, const What& what, const Codec& codec,
                     double bytes_per_second, bool fuse)
    : first_(what.source->cut()), all_(what.source->size()), reach_(reach_of(what)) {
  if (!what.pipeline.stable(first_))
    throw Error(
        Code::kInvalidArgument,
        what_for + ": the source stands past the frontier, so there is no stable cut to keep");
  Trial trial(what, codec, bytes_per_second, fuse);
  trial.run();
  tried_ = trial.samples;
  const auto tried = static_cast<double>(std::max<std::int64_t>(tried_, 1));
  read_seconds_ = trial.read_seconds / tried;
  for (const CutTrial& cut : trial.cuts)
    cuts_.push_back({cut.bytes / tried, cut.make_seconds / tried, cut.finish_seconds / tried});
}

CutChoice CutTrials::choose(std::size_t room_bytes, int jobs) const {
  if (tried_ == 0) return {first_, "no sample that was tried is good"};
  const double miss = miss_seconds();
  const auto all = static_cast<double>(all_);
  const auto share = [&](const AtCut& cut) {
    return std::min(1.0, static_cast<double>(room_bytes) / (cut.bytes * all));
  };
  // A single job keeps what fits, and the rest passes by. Of several, whoever misses a sample keeps
  // it for the others: each miss takes what keeping takes.
  const auto saved = [&](const AtCut& cut) {
    const double there = share(cut);
    const double outlasts = std::min(1.0, there * all / (reach_ * jobs));
    const double hits = there + (1 - there) * (1 - 1.0 / jobs) * outlasts;
    const double kept_miss = read_seconds_ + cut.make_seconds + cut.finish_seconds;
    return miss - hits * cut.finish_seconds - (1 - hits) * (jobs > 1 ? kept_miss : miss);
  };
  const auto less = [&](const AtCut& a, const AtCut& b) { return saved(a) < saved(b); };
  const double most = saved(*std::max_element(cuts_.begin(), cuts_.end(), less));
  const AtCut* best = nullptr;
  for (const AtCut& cut : cuts_)
    if (saved(cut) >= most - kEqual * std::abs(most) &&
        (best == nullptr || cut.bytes < best->bytes))
      best = &cut;

  const double fits = share(*best);
  const std::string holds =
      fits < 1 ? std::to_string(static_cast<int>(fits * 100)) + " % of the samples, of "
               : "all samples, ";
  return {first_ + static_cast<Cut>(best - cuts_.data()),
          "chosen on " + std::to_string(tried_) + " samples" +
              (jobs > 1 ? " for " + std::to_string(jobs) + " jobs" : "") + ": it holds " + holds +
              bytes_text(static_cast<std::uint64_t>(best->bytes * all)) + ", and leaves " +
              milliseconds(best->finish_seconds) + " of " + milliseconds(miss) +
              " per sample to be done"};
}

double CutTrials::saved_share(Cut cut) const {
  if (tried_ == 0) return 1;
  const Cut last = first_ + static_cast<Cut>(cuts_.size()) - 1;
  const AtCut& at = cuts_[static_cast<std::size_t>(std::min(cut, last) - first_)];
  const double finish = cut > last ? 0 : at.finish_seconds;
  const double made = read_seconds_ + at.make_seconds + (cut > last ? at.finish_seconds : 0);
  return std::clamp((miss_seconds() - finish) / std::max(made, 1e-9), 0.01, 1.0);
}

bool CutTrials::outdated(double read_seconds) const {
  constexpr double kBand = 1.5;
  if (tried_ == 0) return false;
  const double ratio = (read_seconds + cuts_[0].finish_seconds) / std::max(miss_seconds(), 1e-9);
  return ratio > kBand || ratio < 1 / kBand;
}

CutTrials CutTrials::with_reads(double read_seconds) const {
  CutTrials trials = *this;
  trials.read_seconds_ = read_seconds;
  return trials;
}

std::vector<double> CutTrials::numbers() const {
  std::vector<double> numbers = {static_cast<double>(first_), static_cast<double>(tried_),
                                 read_seconds_};
  for (const AtCut& cut : cuts_)
    numbers.insert(numbers.end(), {cut.bytes, cut.make_seconds, cut.finish_seconds});
  return numbers;
}

std::optional<CutTrials> CutTrials::from_numbers(const What& what,
                                                 std::span<const double> numbers) {
  CutTrials trials;
  trials.first_ = what.source->cut();
  trials.all_ = what.source->size();
  trials.reach_ = reach_of(what);
  const Cut last = what.pipeline.frontier();
  const std::size_t cuts =
      static_cast<std::size_t>(last) - static_cast<std::size_t>(trials.first_) + 1;
  const auto sound = [](double number) { return number >= 0 && number < 1e15; };
  if (numbers.size() != 3 + 3 * cuts || !std::ranges::all_of(numbers, sound) ||
      numbers[0] != trials.first_)
    return std::nullopt;
  trials.tried_ = static_cast<std::int64_t>(numbers[1]);
  trials.read_seconds_ = numbers[2];
  for (std::size_t i = 3; i < numbers.size(); i += 3) {
    if (!(numbers[i] > 0)) return std::nullopt;
    trials.cuts_.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
  }
  return trials;
}

}  // namespace cutwater
