// SPDX-License-Identifier: Apache-2.0
#include "profile/measure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "core/thread_clock.h"

namespace cutwater {
namespace {

constexpr std::size_t kPasses = 3;
constexpr std::size_t kHeldBytes = std::size_t{256} << 20;
constexpr std::size_t kPoolBytes = std::size_t{512} << 20;
constexpr std::size_t kRingBytes = std::size_t{128} << 20, kLeastRing = std::size_t{8} << 20;
// Draws are those of a real epoch, the same in every pass and from every cut, so that cuts are
// compared on the same crops. Ops learn in the epochs before it.
constexpr std::uint64_t kDrawSeed = 0;
constexpr std::uint32_t kMeasuredEpoch = 2;

double bytes_of(const Sample& sample) {
  std::size_t bytes = 0;
  for (const Field& field : sample.fields) bytes += field.tensor.spec().bytes();
  return static_cast<double>(bytes);
}

std::span<const std::uint8_t> view_of(const Field& field) {
  return {field.tensor.view().bytes(), field.tensor.spec().bytes()};
}

// In buffers that have just been written, as after a read.
Sample copied(const Sample& sample, BufferPool& pool) {
  Sample copy{sample.id, sample.cut, {}};
  for (const Field& field : sample.fields) {
    Buffer bytes = pool.allocate(view_of(field).size());
    if (!bytes.empty()) std::memcpy(bytes.data(), view_of(field).data(), bytes.size());
    copy.fields.push_back({field.name, Tensor(field.tensor.spec(), std::move(bytes))});
  }
  return copy;
}

TensorSpec largest_field(const Sample& sample) {
  const Field* largest = nullptr;
  for (const Field& field : sample.fields)
    if (field.name != kLabelField &&
        (largest == nullptr || view_of(field).size() > view_of(*largest).size()))
      largest = &field;
  return largest != nullptr ? largest->tensor.spec() : TensorSpec{};
}

// What ops have learned about one sample.
class SampleHints final : public Hints {
 public:
  SampleHints(std::vector<std::uint8_t>& known, bool gives, bool learns)
      : known_(known), gives_(gives), learns_(learns) {}
  void find(SampleId, std::vector<std::uint8_t>& into) override {
    if (gives_)
      into = known_;
    else
      into.clear();
  }
  void keep(SampleId, const std::vector<std::uint8_t>& learned) override {
    if (learns_) known_ = learned;
  }

 private:
  std::vector<std::uint8_t>& known_;
  const bool gives_, learns_;
};

bool takes_hints(const Pipeline& pipeline) {
  const std::vector<Group> groups = pipeline.groups(0, pipeline.last_cut(), true);
  return !groups.empty() && groups.front().fusion != nullptr && groups.front().fusion->takes_hints;
}

double median(std::array<double, kPasses> laps) {
  std::sort(laps.begin(), laps.end());
  return laps[kPasses / 2];
}

// Of one sample in measure(): as stored, made, and encoded.
std::size_t held_bytes(const SampleValues& sample) {
  double most = 0;
  for (const CutValues& cut : sample.cuts) most = std::max(most, cut.bytes);
  return static_cast<std::size_t>(sample.cuts[0].bytes + 2 * most);
}

void set(std::span<SampleValues> group, Cut cut, double CutValues::*member,
         const std::vector<double>& values) {
  for (std::size_t i = 0; i < group.size(); ++i)
    group[i].cuts[static_cast<std::size_t>(cut)].*member = values[i];
}

}  // namespace

Measure::Measure(const Source& source, const Pipeline& pipeline, Team& team)
    : source_(source),
      pipeline_(pipeline),
      team_(team),
      learns_(takes_hints(pipeline)),
      pool_(BufferPool::create(kPoolBytes)) {
  for (std::size_t i = 0; i < team.size(); ++i)
    rings_.emplace_back(std::max(kRingBytes / team.size(), kLeastRing));
}

template <class T>
T Measure::value_of(Result<T> result) const {
  if (!result && result.failure().sample >= 0)
    result.failure().path = source_.path(result.failure().sample);
  return std::move(result).value();
}

std::vector<double> Measure::medians(std::size_t count, const One& one, Caches caches) {
  std::vector<std::array<double, kPasses>> laps(count);
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    if (caches == Caches::kEvicted)
      team_.every([&](std::size_t worker) { rings_[worker].evict_caches(); });
    team_.each(count, [&](std::size_t worker, std::size_t i) { laps[i][pass] = one(worker, i); });
  }
  std::vector<double> medians;
  for (const auto& each : laps) medians.push_back(median(each));
  return medians;
}

Result<Measure::Walk> Measure::walk(SampleId id) const {
  Result<Sample> read = source_.read(id, *pool_);
  if (!read) return std::move(read.failure());
  Sample sample = std::move(read).value();
  Result<Draws> draws = pipeline_.draw(sample, kDrawSeed, kMeasuredEpoch);
  if (!draws) return std::move(draws.failure());
  RunContext how;
  how.pool = pool_;
  how.fuse = false;
  Walk walk;
  walk.op_s.push_back(0);
  for (Cut cut = 0;; ++cut) {
    walk.bytes.push_back(bytes_of(sample));
    walk.largest.push_back(largest_field(sample));
    if (cut == pipeline_.last_cut()) return walk;
    std::optional<Result<Sample>> made;
    walk.op_s.push_back(
        timed([&] { made = pipeline_.run(std::move(sample), cut, cut + 1, draws.value(), how); }));
    if (!*made) return std::move(made->failure());
    sample = std::move(*made).value();
  }
}

std::vector<SampleValues> Measure::walk_all(std::span<const SampleId> ids,
                                            std::vector<Failure>& bad) {
  std::vector<std::optional<Failure>> failures(ids.size());
  std::vector<SampleValues> walked(ids.size());
  std::vector<std::vector<TensorSpec>> largest(ids.size());
  std::vector<std::vector<std::array<double, kPasses>>> laps(ids.size());
  for (std::size_t pass = 0; pass < kPasses; ++pass)
    team_.each(ids.size(), [&](std::size_t, std::size_t i) {
      if (failures[i]) return;
      Result<Walk> result = walk(ids[i]);
      if (!result && result.failure().code == Code::kBadSample) {
        failures[i] = std::move(result.failure());
        failures[i]->path = source_.path(ids[i]);
        return;
      }
      const Walk walk = value_of(std::move(result));
      laps[i].resize(walk.op_s.size());
      for (std::size_t k = 0; k < walk.op_s.size(); ++k) laps[i][k][pass] = walk.op_s[k];
      if (pass > 0) return;
      walked[i].id = ids[i];
      for (const double bytes : walk.bytes) walked[i].cuts.emplace_back().bytes = bytes;
      largest[i] = walk.largest;
    });

  std::vector<SampleValues> good;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (failures[i]) {
      bad.push_back(std::move(*failures[i]));
      continue;
    }
    for (std::size_t k = 0; k < laps[i].size(); ++k) walked[i].cuts[k].op_s = median(laps[i][k]);
    if (codecs_.empty())
      for (const TensorSpec& spec : largest[i]) codecs_.push_back(codecs_for(spec));
    good.push_back(std::move(walked[i]));
  }
  return good;
}

std::vector<SampleValues> Measure::samples(std::span<const SampleId> ids,
                                           std::vector<Failure>& bad) {
  std::vector<SampleValues> good = walk_all(ids, bad);
  for (std::size_t begin = 0; begin < good.size();) {
    std::size_t end = begin, bytes = 0;
    do bytes += held_bytes(good[end++]);
    while (end < good.size() && bytes + held_bytes(good[end]) <= kHeldBytes);
    measure(std::span(good).subspan(begin, end - begin));
    begin = end;
  }
  return good;
}

void Measure::measure(std::span<SampleValues> group) {
  std::vector<Sample> stored(group.size()), made(group.size());
  std::vector<Draws> draws(group.size());
  team_.each(group.size(), [&](std::size_t, std::size_t i) {
    stored[i] = value_of(source_.read(group[i].id, *pool_));
    draws[i] = value_of(pipeline_.draw(stored[i], kDrawSeed, kMeasuredEpoch));
  });
  for (Cut cut = 0; cut <= pipeline_.last_cut(); ++cut) {
    RunContext how;
    how.pool = pool_;
    const One prefix = [&](std::size_t, std::size_t i) {
      Sample sample = copied(stored[i], *pool_);
      return timed(
          [&] { made[i] = value_of(pipeline_.run(std::move(sample), 0, cut, draws[i], how)); });
    };
    if (cut > 0) set(group, cut, &CutValues::prefix_s, medians(group.size(), prefix));
    std::vector<Sample>& forms = cut == 0 ? stored : made;
    if (pipeline_.stable(cut))
      measure_finish(group, cut, forms);
    else
      measure_fresh_finish(group, cut, forms);
    measure_variants(group, cut, forms);
  }
  measure_excerpts(group, stored, draws);
}

// A fresh cut is sent and finished in the same epoch: nothing is kept of it, or learned.
void Measure::measure_fresh_finish(std::span<SampleValues> group, Cut cut,
                                   const std::vector<Sample>& forms) {
  set(group, cut, &CutValues::finish_s,
      medians(group.size(), [&](std::size_t worker, std::size_t i) {
        return finish(worker, copied(forms[i], *pool_), kMeasuredEpoch, nullptr);
      }));
}

void Measure::measure_excerpts(std::span<SampleValues> group, const std::vector<Sample>& stored,
                               const std::vector<Draws>& draws) {
  std::vector<std::optional<Sample>> excerpts(group.size());
  std::vector<std::vector<std::uint8_t>> known(group.size());
  const auto make = [&](std::size_t i, const Draws& drawn, bool learn) {
    SampleHints hints(known[i], true, learn);
    RunContext how;
    how.pool = pool_;
    if (learns_) how.hints = &hints;
    return timed([&] { excerpts[i] = pipeline_.excerpt(stored[i], drawn, how); });
  };
  for (std::uint32_t epoch = 0; learns_ && epoch < kMeasuredEpoch; ++epoch)
    team_.each(group.size(), [&](std::size_t, std::size_t i) {
      make(i, value_of(pipeline_.draw(stored[i], kDrawSeed, epoch)), true);
    });
  const std::vector<double> make_s =
      medians(group.size(), [&](std::size_t, std::size_t i) { return make(i, draws[i], false); });
  const std::vector<double> finish_s =
      medians(group.size(), [&](std::size_t worker, std::size_t i) {
        if (!excerpts[i]) return 0.0;
        return finish(worker, copied(*excerpts[i], *pool_), kMeasuredEpoch, nullptr);
      });
  for (std::size_t i = 0; i < group.size(); ++i)
    if (excerpts[i]) group[i].excerpt = {bytes_of(*excerpts[i]), make_s[i], finish_s[i]};
}

void Measure::measure_finish(std::span<SampleValues> group, Cut cut, std::vector<Sample>& forms) {
  std::vector<std::vector<std::uint8_t>> known(group.size());
  const bool learns = learns_ && cut == 0;
  const auto finish_known = [&](std::size_t worker, Sample sample, std::size_t i) {
    SampleHints hints(known[i], true, false);
    return finish(worker, std::move(sample), kMeasuredEpoch, learns ? &hints : nullptr);
  };
  for (std::uint32_t epoch = 0; learns && epoch < kMeasuredEpoch; ++epoch)
    team_.each(group.size(), [&](std::size_t worker, std::size_t i) {
      SampleHints hints(known[i], true, true);
      finish(worker, lent(forms[i]), epoch, &hints);
    });

  set(group, cut, &CutValues::finish_s,
      medians(group.size(), [&](std::size_t worker, std::size_t i) {
        return finish_known(worker, copied(forms[i], *pool_), i);
      }));
  for (SampleValues& sample : group) {
    CutValues& values = sample.cuts[static_cast<std::size_t>(cut)];
    values.first_s = values.finish_s;
  }
  if (learns)
    set(group, cut, &CutValues::first_s,
        medians(group.size(), [&](std::size_t worker, std::size_t i) {
          SampleHints hints(known[i], false, false);
          return finish(worker, copied(forms[i], *pool_), kMeasuredEpoch, &hints);
        }));
  const One from_memory = [&](std::size_t worker, std::size_t i) {
    return finish_known(worker, lent(forms[i]), i);
  };
  set(group, cut, &CutValues::memory_s, medians(group.size(), from_memory, Caches::kEvicted));
}

// As a loader's thread does it, from where a sample's bytes are there to its finished slot.
double Measure::finish(std::size_t worker, Sample sample, std::uint32_t epoch, Hints* hints) {
  return timed([&] {
    const Cut from = sample.cut;
    const Draws draws = value_of(pipeline_.draw(sample, kDrawSeed, epoch));
    RunContext how;
    how.pool = pool_;
    how.slots = &rings_[worker];
    how.hints = hints;
    const Sample made =
        value_of(pipeline_.run(std::move(sample), from, pipeline_.last_cut(), draws, how));
    for (const Field& field : made.fields) {
      if (made_after(from, field.name)) continue;
      const TensorSpan place = rings_[worker].slot(field.name, field.tensor.spec());
      if (!view_of(field).empty())
        std::memcpy(place.bytes(), view_of(field).data(), view_of(field).size());
    }
  });
}

double Measure::whole_s(std::span<const SampleId> ids) {
  std::vector<std::vector<std::uint8_t>> known(ids.size());
  const auto take = [&](std::size_t worker, std::size_t i, std::uint32_t epoch) {
    SampleHints hints(known[i], true, epoch < kMeasuredEpoch);
    finish(worker, value_of(source_.read(ids[i], *pool_)), epoch, learns_ ? &hints : nullptr);
  };
  for (std::uint32_t epoch = learns_ ? 0 : kMeasuredEpoch; epoch < kMeasuredEpoch; ++epoch)
    team_.each(ids.size(), [&](std::size_t worker, std::size_t i) { take(worker, i, epoch); });
  // Passes follow each other without a pause, in which threads would wait for the slowest.
  const std::size_t count = kPasses * ids.size();
  std::vector<double> seconds(count);
  team_.each(count, [&](std::size_t worker, std::size_t n) {
    seconds[n] = timed([&] { take(worker, n % ids.size(), kMeasuredEpoch); });
  });
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(count);
}

bool Measure::made_after(Cut cut, std::string_view field) const {
  const std::vector<Step>& steps = pipeline_.steps();
  return std::any_of(steps.begin() + cut, steps.end(),
                     [&](const Step& step) { return step.op.def().field == field; });
}

void Measure::measure_variants(std::span<SampleValues> group, Cut cut,
                               const std::vector<Sample>& forms) {
  const auto k = static_cast<std::size_t>(cut);
  for (const Codec& codec : codecs_[k]) {
    std::vector<VariantValues> values(group.size());
    if (codec.is_none()) {
      for (std::size_t i = 0; i < group.size(); ++i) values[i].bytes = group[i].cuts[k].bytes;
    } else {
      using Bytes = std::vector<std::uint8_t>;
      std::vector<std::vector<Bytes>> encoded(group.size());  // a sample's fields
      std::vector<Bytes> scratch(team_.size());
      // Once: it takes long enough to be measured, and happens once in the life of a store.
      team_.each(group.size(), [&](std::size_t worker, std::size_t i) {
        for (const Field& field : forms[i].fields) {
          if (field.name == kLabelField) {
            values[i].bytes += static_cast<double>(view_of(field).size());
            continue;
          }
          Bytes& out = scratch[worker];
          values[i].encode_s +=
              timed([&] { encode(codec, field.tensor.spec(), view_of(field), out); });
          values[i].bytes += static_cast<double>(out.size());
          encoded[i].push_back(out);
        }
      });
      const std::vector<double> decode_s =
          medians(group.size(), [&](std::size_t worker, std::size_t i) {
            double seconds = 0;
            auto next = encoded[i].begin();
            for (const Field& field : forms[i].fields) {
              if (field.name == kLabelField) continue;
              scratch[worker].assign(next->begin(), next->end());  // as just read
              ++next;
              seconds += timed([&] {
                Buffer into = pool_->allocate(field.tensor.spec().bytes());
                decode(codec, field.tensor.spec(), scratch[worker], into.span());
              });
            }
            return seconds;
          });
      for (std::size_t i = 0; i < group.size(); ++i) values[i].decode_s = decode_s[i];
    }
    for (std::size_t i = 0; i < group.size(); ++i) group[i].cuts[k].variants.push_back(values[i]);
  }
}

}  // namespace cutwater
