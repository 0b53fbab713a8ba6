// SPDX-License-Identifier: Apache-2.0
#include "sim/sim.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "cache/residents.h"
#include "core/bit_set.h"
#include "cutwater/error.h"
#include "cutwater/param.h"
#include "plan/cache_plan.h"
#include "plan/engine_fill.h"
#include "sampler/ledger.h"
#include "sampler/opportunist.h"

namespace cutwater {
namespace {

using cache::Residents;
static_assert(kClearlyLess == Residents::kClearlyLess, "the plan knows the cache's policy");

// Jobs hear of what has arrived once in so many tickets, as a loader does between batches.
constexpr std::int64_t kHear = 16;
// Resources work at the same time on so many tickets of each job: what is in flight.
constexpr std::int64_t kInFlight = 256;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;

// Spreads ids over 0..1, the same ones in the same part of it for every job.
double place_of(SampleId id) {
  std::uint64_t x = static_cast<std::uint64_t>(id) + 0x9e3779b97f4a7c15U;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return static_cast<double>((x ^ x >> 31) >> 11) * 0x1.0p-53;
}

struct Job {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;  // finished ones
  double period = 1, next = 0;
  std::unique_ptr<Ledger> ledger;
  std::unique_ptr<Opportunist> opportunist;
  BitSet had;
  std::int64_t tickets = 0;
  std::size_t heard = 0;  // of the log of arrivals

  explicit Job(std::int64_t samples) : had(samples) {}
};

struct EpochBook {
  std::int64_t samples = 0, hits = 0;
  double seconds = 0;
  Amounts amounts;
};

class Simulation {
 public:
  Simulation(const CacheModel& model, const SimMachine& machine, const SimOptions& options,
             const std::vector<double>& shares, const SharedRates& rates)
      : model_(model),
        options_(options),
        shares_(shares),
        rates_(rates),
        samples_(machine.samples),
        consumer_(machine.consumer_rate),
        cache_bytes_(options.cache_bytes),
        residents_([this](Residents::Number number) { return uses(number); }),
        books_(static_cast<std::size_t>(options.epochs)),
        flight_(books_.size()) {
    for (int j = 0; j < options.jobs; ++j) {
      Job& job = jobs_.emplace_back(samples_);
      job.seed = options.seed + static_cast<std::uint64_t>(j);
      const auto at = static_cast<std::size_t>(j);
      job.period = 1 / (options.speeds.empty() ? 1 : options.speeds[at]);
      begin_epoch(job);
    }
  }

  void run(SimResult& result) {
    while (Job* job = next_job()) {
      take(*job);
      job->next += job->period;
      if (job->ledger->left() == 0) end_epoch(*job, result);
    }
    settle();
    for (const EpochBook& book : books_) {
      SimEpoch& epoch = result.epochs.emplace_back();
      const auto count = static_cast<double>(book.samples);
      epoch.hit_rate = static_cast<double>(book.hits) / count;
      epoch.samples_per_s = count / book.seconds;
      const Demand demand(book.amounts, rates_);
      double most = consumer_ > 0 ? count / consumer_ : 0;
      epoch.bound_by = "consumer";
      for (std::size_t r = 0; r < Demand::kResources; ++r) {
        epoch.use[r] = demand.seconds[r] / book.seconds;
        if (demand.seconds[r] <= most) continue;
        most = demand.seconds[r];
        epoch.bound_by = Demand::kNames[r];
      }
    }
  }

 private:
  Job* next_job() {
    Job* first = nullptr;
    for (Job& job : jobs_)
      if (job.epoch < options_.epochs && (first == nullptr || job.next < first->next)) first = &job;
    return first;
  }

  void begin_epoch(Job& job) {
    const auto epoch = static_cast<std::uint32_t>(job.epoch);
    job.had = BitSet(samples_);
    job.ledger = std::make_unique<Ledger>(EpochOrder::shuffled(samples_, job.seed, epoch), samples_,
                                          0, std::span<const std::int64_t>(), Ledger::ById::kYes);
    job.opportunist = std::make_unique<Opportunist>(*job.ledger, job.seed, epoch, epoch);
    std::vector<SampleId> there;
    for (SampleId id = 0; id < samples_; ++id)
      if (residents_.contains(static_cast<Residents::Number>(id))) there.push_back(id);
    job.opportunist->begin(there);
    job.heard = arrivals_.size();
    job.tickets = 0;
  }

  void end_epoch(Job& job, SimResult& result) {
    for (SampleId id = 0; id < samples_; ++id) result.never_issued += job.had[id] ? 0 : 1;
    result.issued_twice += issued_twice_;
    issued_twice_ = 0;
    if (++job.epoch < options_.epochs) begin_epoch(job);
    // What all have heard of is forgotten.
    std::size_t heard = arrivals_.size();
    for (const Job& one : jobs_)
      if (one.epoch < options_.epochs) heard = std::min(heard, one.heard);
    arrivals_.erase(arrivals_.begin(), arrivals_.begin() + static_cast<std::ptrdiff_t>(heard));
    for (Job& one : jobs_) one.heard -= std::min(one.heard, heard);
  }

  void take(Job& job) {
    if (job.tickets++ % kHear == 0) {
      job.opportunist->arrived(std::span(arrivals_).subspan(job.heard));
      job.heard = arrivals_.size();
      int others = -1;
      for (const Job& one : jobs_) others += one.epoch < options_.epochs ? 1 : 0;
      job.opportunist->set_others(others);
    }
    const SampleId id = job.opportunist->next().id;
    if (job.had[id]) ++issued_twice_;
    job.had.set(id);
    EpochBook& book = books_[static_cast<std::size_t>(job.epoch)];
    ++book.samples;
    Amounts amounts;
    const std::size_t sample = class_of(id), form = form_of(id);
    if (residents_.contains(static_cast<Residents::Number>(id))) {
      amounts = model_.hit(form, sample);
      ++book.hits;
    } else if (form < model_.forms.size() && put(id, form, sample)) {
      amounts = model_.make(form, sample);
    } else {
      amounts = model_.miss(sample);
    }
    book.amounts.add(1, amounts);
    in_flight_.add(1, amounts);
    ++flight_[static_cast<std::size_t>(job.epoch)];
    if (++flying_ >= kInFlight * options_.jobs) settle();
  }

  // What is in flight takes as long as the resource that is busy longest.
  void settle() {
    if (flying_ == 0) return;
    double seconds = Demand(in_flight_, rates_).longest();
    if (consumer_ > 0) seconds = std::max(seconds, static_cast<double>(flying_) / consumer_);
    // Epochs that overlap share the time by their samples.
    for (std::size_t epoch = 0; epoch < books_.size(); ++epoch)
      books_[epoch].seconds += seconds * static_cast<double>(std::exchange(flight_[epoch], 0)) /
                               static_cast<double>(flying_);
    in_flight_ = {};
    flying_ = 0;
  }

  std::size_t class_of(SampleId id) const {
    return static_cast<std::size_t>(id) % model_.classes();
  }
  std::size_t form_of(SampleId id) const {
    double at = place_of(id);
    for (std::size_t f = 0; f < shares_.size(); ++f) {
      if (at < shares_[f]) return f;
      at -= shares_[f];
    }
    return shares_.size();  // never kept
  }

  double uses(Residents::Number number) const {
    double count = Residents::kLaterEpochs;
    for (const Job& job : jobs_)
      if (job.epoch < options_.epochs && !job.had[static_cast<SampleId>(number)]) ++count;
    return count;
  }

  // As the keeper of a cache does it.
  bool put(SampleId id, std::size_t form, std::size_t sample) {
    const double bytes = model_.forms[form].bytes[sample];
    const double seconds = worth_s(model_, rates_, form, sample);
    const auto number = static_cast<Residents::Number>(id);
    const double density = Residents::worth_of(seconds, uses(number)) / bytes;
    for (int gone = 0; used_ + bytes > cache_bytes_; ++gone) {
      if (gone == Residents::kMostVictims) return false;
      const auto victim = residents_.victim(density);
      if (!victim) return false;
      const auto out = static_cast<SampleId>(*victim);
      used_ -= model_.forms[form_of(out)].bytes[class_of(out)];
      residents_.remove(*victim);
    }
    used_ += bytes;
    residents_.add(number, static_cast<std::uint64_t>(bytes), seconds);
    arrivals_.push_back(id);
    return true;
  }

  const CacheModel& model_;
  const SimOptions& options_;
  const std::vector<double>& shares_;  // by form
  const SharedRates& rates_;
  const std::int64_t samples_;
  const double consumer_, cache_bytes_;
  std::vector<Job> jobs_;
  Residents residents_;  // a sample is in one form at most: its number is its id
  double used_ = 0;
  std::vector<SampleId> arrivals_;
  std::int64_t issued_twice_ = 0;

  std::vector<EpochBook> books_;
  Amounts in_flight_;
  std::int64_t flying_ = 0;
  std::vector<std::int64_t> flight_;  // by epoch
};

}  // namespace

SimResult simulate(const SimMachine& given, const SimOptions& options) {
  if (!(options.scale > 0 && options.scale <= 1))
    throw Error(Code::kInvalidArgument,
                "scale must be above 0 and at most 1, got " + to_text(Value{options.scale}));
  if (options.epochs < 1 || options.epochs > 1000)
    throw Error(Code::kInvalidArgument,
                "epochs must be in 1..1000, got " + std::to_string(options.epochs));
  if (!options.speeds.empty() && options.speeds.size() != static_cast<std::size_t>(options.jobs))
    throw Error(Code::kInvalidArgument, "there are " + std::to_string(options.speeds.size()) +
                                            " speeds for " + std::to_string(options.jobs) +
                                            " jobs: give one for each");
  for (const double speed : options.speeds)
    if (!(speed > 0 && std::isfinite(speed)))
      throw Error(Code::kInvalidArgument, "speeds must be positive, got " + to_text(Value{speed}));
  SimMachine machine = given;
  SimOptions scaled = options;
  machine.samples = std::llround(static_cast<double>(given.samples) * options.scale);
  scaled.cache_bytes *= options.scale;
  if (machine.samples < 1 || machine.samples > kMostSamples)
    throw Error(Code::kInvalidArgument,
                "samples must be in 1..2^31 after scaling, got " + std::to_string(machine.samples));
  const Profile profile = profile_of(machine);
  SimResult result;
  result.plan = make_plan(profile, plan_options_of(machine, scaled));
  result.samples = machine.samples;
  const CacheModel model(profile);
  const SharedRates rates{
      1, {0, machine.storage_bytes_per_s}, machine.cache_bytes_per_s, machine.link_bytes_per_s};
  const std::vector<double> shares = shares_of(model, result.plan.cache->split);
  Simulation(model, machine, scaled, shares, rates).run(result);
  return result;
}

}  // namespace cutwater
