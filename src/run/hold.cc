// SPDX-License-Identifier: Apache-2.0
// hold_in_memory: the prefix of a pipeline run once for every sample, straight into arenas.
#include "cutwater/hold.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/caught.h"
#include "core/machine.h"
#include "core/mutex.h"
#include "core/stable_cut.h"
#include "core/units.h"
#include "source/arena.h"

namespace cutwater {
namespace {

// How often the calling thread looks up while others work.
constexpr std::chrono::milliseconds kLookUp{50};

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

struct HeldField {
  const std::string* name;
  TensorSpec spec;
  std::uint8_t* data;
};

// The fields of a sample, in an arena as well; none: the sample is bad.
using HeldSample = std::span<const HeldField>;

// What one thread has made.
struct Part {
  Arena arena;
  std::deque<std::string> names;  // of fields, each once; they stay where they are
  std::map<SampleId, Failure> bad;
  std::size_t bytes = 0;  // taken from the arena

  const std::string* name(std::string_view text) {
    for (const std::string& known : names)
      if (known == text) return &known;
    return &names.emplace_back(text);
  }
};

class HeldSource final : public Source {
 public:
  HeldSource(std::shared_ptr<const Source> source, Cut cut, std::string fingerprint,
             std::string pipeline, std::vector<HeldSample> samples, std::vector<Part> parts)
      : source_(std::move(source)),
        cut_(cut),
        fingerprint_(std::move(fingerprint)),
        pipeline_(std::move(pipeline)),
        samples_(std::move(samples)),
        parts_(std::move(parts)) {
    for (Part& part : parts_) bad_.merge(part.bad);
  }

  std::int64_t size() const override { return source_->size(); }
  Cut cut() const override { return cut_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string pipeline() const override { return pipeline_; }

  Result<Sample> read(SampleId id, const ReadContext&) const override {
    const HeldSample held = samples_[static_cast<std::size_t>(id)];
    if (held.empty()) return bad_.at(id);
    Sample sample;
    sample.id = id;
    sample.cut = cut_;
    sample.fields.reserve(held.size());
    for (const HeldField& field : held)
      sample.fields.push_back({*field.name, Tensor::borrowed({field.spec, field.data})});
    return sample;
  }

  std::string home() const override { return source_->home(); }
  std::string path(SampleId id) const override { return source_->path(id); }
  bool has_labels() const override { return source_->has_labels(); }
  std::int64_t label(SampleId id) const override { return source_->label(id); }
  const std::vector<std::string>& classes() const override { return source_->classes(); }
  std::string identity() const override { return source_->identity(); }
  std::string stamp() const override { return source_->stamp(); }

 private:
  const std::shared_ptr<const Source> source_;
  const Cut cut_;
  const std::string fingerprint_, pipeline_;
  const std::vector<HeldSample> samples_;
  std::vector<Part> parts_;
  std::map<SampleId, Failure> bad_;
};

class Holding {
 public:
  Holding(const Source& source, const Pipeline& pipeline, Cut cut, std::size_t limit, int threads)
      : source_(source),
        pipeline_(pipeline),
        cut_(cut),
        limit_bytes_(limit),
        pool_(BufferPool::create(static_cast<std::size_t>(threads) * kIdlePerThread)),
        parts_(static_cast<std::size_t>(threads)),
        samples_(static_cast<std::size_t>(source.size())),
        working_(threads) {
    nothing_drawn_.steps.resize(pipeline.steps().size());
  }

  void run(const std::function<void()>& while_waiting) {
    std::vector<std::thread> threads;
    try {
      for (Part& part : parts_) threads.emplace_back([this, &part] { work(part); });
      wait(while_waiting);
    } catch (...) {
      stop_ = true;
      for (std::thread& thread : threads) thread.join();
      throw;
    }
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(mutex_);
    if (failure_) throw Error(std::move(*failure_));
  }

  std::vector<Part> take_parts() { return std::move(parts_); }
  std::vector<HeldSample> take_samples() { return std::move(samples_); }

 private:
  static constexpr std::size_t kIdlePerThread = std::size_t{64} << 20;

  // The last op of a field writes where the field is to stay.
  class ArenaSlots final : public SlotProvider {
   public:
    ArenaSlots(Holding& holding, Part& part) : holding_(holding), part_(part) {}
    TensorSpan slot(std::string_view, const TensorSpec& spec) override {
      return {spec, holding_.place(part_, spec.bytes())};
    }

   private:
    Holding& holding_;
    Part& part_;
  };

  void wait(const std::function<void()>& while_waiting) {
    for (;;) {
      {
        MutexLock lock(mutex_);
        if (working_ > 0) done_.wait_for(mutex_, kLookUp);
        if (working_ == 0) return;
      }
      if (while_waiting) while_waiting();
    }
  }

  void work(Part& part) {
    for (SampleId id; !stop_ && (id = next_++) < source_.size();) {
      const Arena::Mark mark = part.arena.mark();
      const std::size_t bytes = part.bytes;
      Result<HeldSample> held = hold(part, id);
      if (held) {
        samples_[static_cast<std::size_t>(id)] = held.value();
        ++held_samples_;
        continue;
      }
      part.arena.rewind(mark);
      used_bytes_ -= std::exchange(part.bytes, bytes) - bytes;
      held.failure().path = source_.path(id);
      if (held.failure().code == Code::kBadSample) {
        part.bad.emplace(id, std::move(held.failure()));
        continue;
      }
      stop_ = true;
      MutexLock lock(mutex_);
      if (!failure_) failure_ = std::move(held.failure());
    }
    MutexLock lock(mutex_);
    if (--working_ == 0) done_.notify_all();
  }

  Result<HeldSample> hold(Part& part, SampleId id) try {
    Result<Sample> stored = source_.read(id, *pool_);
    if (!stored) return std::move(stored.failure());
    ArenaSlots slots(*this, part);
    RunContext how;
    how.pool = pool_;
    how.slots = &slots;
    // Nothing is drawn up to the frontier.
    Result<Sample> made =
        pipeline_.run(std::move(stored).value(), source_.cut(), cut_, nothing_drawn_, how);
    if (!made) return std::move(made.failure());

    const std::vector<Field>& fields = made.value().fields;
    auto* const held = reinterpret_cast<HeldField*>(place(part, fields.size() * sizeof(HeldField)));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const TensorView from = fields[i].tensor.view();
      auto* data = const_cast<std::uint8_t*>(from.bytes());
      if (!made_here(fields[i].name)) {
        data = place(part, from.spec().bytes());
        if (from.spec().bytes() > 0) std::memcpy(data, from.bytes(), from.spec().bytes());
      }
      new (&held[i]) HeldField{part.name(fields[i].name), from.spec(), data};
    }
    return HeldSample(held, fields.size());
  } catch (...) {
    return caught(id, "in_memory");
  }

  // Whether a step of the prefix has written this field, and so into its place.
  bool made_here(std::string_view field) const {
    for (Cut k = source_.cut(); k < cut_; ++k)
      if (pipeline_.steps()[static_cast<std::size_t>(k)].op.def().field == field) return true;
    return false;
  }

  std::uint8_t* place(Part& part, std::size_t bytes) {
    const std::size_t rounded = Arena::rounded(bytes);
    part.bytes += rounded;
    const std::size_t all = used_bytes_ += rounded;
    if (all > limit_bytes_) {
      const std::int64_t done = std::max<std::int64_t>(held_samples_, 1);
      const auto estimate = static_cast<double>(all) / static_cast<double>(done) *
                            static_cast<double>(source_.size());
      refuse("in memory, " + std::to_string(done) + " of " + std::to_string(source_.size()) +
             " samples at cut '" + pipeline_.cut_name(cut_) +
             "' already take more than the limit " + bytes_text(limit_bytes_) +
             "; all of them would take about " + bytes_text(static_cast<std::uint64_t>(estimate)) +
             ". Raise memory_limit, or hold an earlier cut");
    }
    return part.arena.allocate(bytes);
  }

  const Source& source_;
  const Pipeline& pipeline_;
  const Cut cut_;
  const std::size_t limit_bytes_;
  const std::shared_ptr<BufferPool> pool_;
  Draws nothing_drawn_;
  std::vector<Part> parts_;          // each its thread's
  std::vector<HeldSample> samples_;  // each written by the thread that made it
  std::atomic<SampleId> next_{0};
  std::atomic<std::int64_t> held_samples_{0};
  std::atomic<std::size_t> used_bytes_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  Condition done_;
  int working_ CUTWATER_GUARDED_BY(mutex_);
  std::optional<Failure> failure_ CUTWATER_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<const Source> hold_in_memory(std::shared_ptr<const Source> source,
                                             const Pipeline& pipeline, Cut cut,
                                             const HoldOptions& options) {
  if (!source) refuse("in memory: a source is needed");
  require_stable_cut("in memory", pipeline, source->cut(), cut,
                     "Hold the frontier or an earlier cut");
  const std::size_t limit = options.memory_limit.value_or(free_memory_bytes() / 2);
  int threads = options.threads ? *options.threads : default_threads();
  if (threads < 1 || threads > kMostThreads)
    refuse("num_workers must be in 1.." + std::to_string(kMostThreads) + ", got " +
           std::to_string(threads));
  threads = static_cast<int>(std::clamp<std::int64_t>(source->size(), 1, threads));

  Holding holding(*source, pipeline, cut, limit, threads);
  holding.run(options.while_waiting);
  return std::make_shared<HeldSource>(
      std::move(source), cut, cut > 0 ? pipeline.fingerprint(cut) : std::string(),
      pipeline.prefix(cut).to_string(), holding.take_samples(), holding.take_parts());
}

}  // namespace cutwater
