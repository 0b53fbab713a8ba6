// SPDX-License-Identifier: Apache-2.0
// Pipeline::run: shapes forward, needed regions backward, then bytes forward. And
// Pipeline::excerpt: the same without the last part.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/caught.h"
#include "cutwater/pipeline.h"

namespace cutwater {
namespace {

class Run {
 public:
  Run(const Pipeline& pipeline, Cut from, Cut to, const Draws& draws, const RunContext& how)
      : ops_(pipeline.ops()),
        steps_(pipeline.steps()),
        from_(from),
        to_(to),
        draws_(draws),
        how_(how) {
    shapes_.resize(steps_.size());
    next_.resize(steps_.size(), -1);
  }

  // The op being worked on, as the user wrote it: for the error.
  std::string_view at() const { return at_; }

  void execute(Sample& sample, const std::vector<Group>& groups) {
    find_shapes(sample);
    find_regions();
    if (how_.reserve && from_ < to_) {
      at_ = written(from_);
      how_.reserve(bytes_held(groups));
    }
    for (const Group& group : groups) {
      if (how_.given_up && how_.given_up())
        throw Error(Code::kCancelled, "nobody waits for it any more");
      run_group(sample, group);
    }
    sample.cut = to_;
  }

  // Asks the first group for an excerpt of its input: ask(what it would run, its input).
  template <class Ask>
  auto excerpt(const Sample& sample, const Group& first, Ask ask) {
    find_shapes(sample);
    find_regions();
    if (how_.reserve) how_.reserve(shape(first.begin).in.bytes() + scratch_bytes_);
    FusedSteps fused = fused_steps(first);
    KeptHint hint(how_, sample.id, first, fused);
    auto answer = ask(fused, input_of(sample, first.begin).view());
    hint.keep();
    return answer;
  }

 private:
  std::string_view written(int k) const {
    const int position = steps_[static_cast<std::size_t>(k)].position;
    return ops_[static_cast<std::size_t>(position) - 1].def().name;
  }
  const Op& op(int k) const { return steps_[static_cast<std::size_t>(k)].op; }
  StepShape& shape(int k) { return shapes_[static_cast<std::size_t>(k)]; }
  // The next step on the same field inside this run, or -1.
  int& next(int k) { return next_[static_cast<std::size_t>(k)]; }
  const DrawnValues& drawn(int k) const { return draws_.steps[static_cast<std::size_t>(k)]; }

  // The field of the sample that step k works on.
  const Tensor& input_of(const Sample& sample, int k) const {
    const Tensor* tensor = sample.find(op(k).def().field);
    if (tensor == nullptr)
      throw Error(Code::kInvalidArgument,
                  "the source has no field '" + std::string(op(k).def().field) + "'");
    return *tensor;
  }
  Tensor& input_of(Sample& sample, int k) const {
    return const_cast<Tensor&>(input_of(std::as_const(sample), k));
  }

  void find_shapes(const Sample& sample) {
    for (int k = from_; k < to_; ++k) {
      at_ = written(k);
      TensorView in = input_of(sample, k).view();
      for (int j = k - 1; j >= from_; --j)
        if (op(j).def().field == op(k).def().field) {
          in = TensorView(shape(j).out, nullptr);
          next(j) = k;
          break;
        }
      shape(k).in = in.spec();
      shape(k).out = op(k).def().out_spec(op(k).raw(), in, drawn(k));
      if (op(k).def().scratch_bytes != nullptr)
        scratch_bytes_ = std::max(scratch_bytes_, op(k).def().scratch_bytes(op(k).raw(), in));
    }
  }

  // Backward: an op makes only what the next one needs, if it can make a part at all. The last op
  // of a field makes everything: bytes at a cut never depend on what would follow.
  void find_regions() {
    for (int k = to_ - 1; k >= from_; --k) {
      const bool partial = op(k).def().needs != nullptr && next(k) >= 0;
      shape(k).make = partial ? needed_by(next(k)) : whole(shape(k).out);
    }
  }

  Region needed_by(int k) {
    const OpDef& def = op(k).def();
    return def.needs != nullptr ? def.needs(op(k).raw(), shape(k).in, shape(k).make, drawn(k))
                                : whole(shape(k).in);
  }

  std::size_t made_bytes(int k) {
    const TensorSpec& spec = shape(k).out;
    // Nobody knows. The input, four times: room for what unpacks, and for a copy of it.
    if (!spec.shape.known()) return 4 * (shape(k).in.shape.known() ? shape(k).in.bytes() : 0);
    if (spec.shape.rank() != 3) return spec.bytes();
    const auto pixels = static_cast<std::size_t>(shape(k).make.height * shape(k).make.width);
    return pixels * static_cast<std::size_t>(spec.shape[2]) * size_of(spec.dtype);
  }

  // The most that is alive at once: one group's input and output, and what codecs use inside.
  std::size_t bytes_held(const std::vector<Group>& groups) {
    std::size_t most = 0, input = 0;
    for (const Group& group : groups) {
      const std::size_t output = made_bytes(group.end - 1);
      most = std::max(most, input + output);
      input = output;
    }
    return most + scratch_bytes_;
  }

  FusedSteps fused_steps(const Group& group) const {
    const auto begin = static_cast<std::size_t>(group.begin);
    const auto count = static_cast<std::size_t>(group.end - group.begin);
    return {std::span(steps_).subspan(begin, count), std::span(draws_.steps).subspan(begin, count),
            std::span(shapes_).subspan(begin, count), nullptr};
  }

  void run_group(Sample& sample, const Group& group) {
    if (group.fusion == nullptr) return run_step(sample, group.begin);
    FusedSteps fused = fused_steps(group);
    if (group.fusion->fits != nullptr && !group.fusion->fits(fused)) {
      for (int k = group.begin; k < group.end; ++k) run_step(sample, k);
      return;
    }

    Tensor& tensor = input_of(sample, group.begin);
    LatePlace place(*this, group.end - 1);
    const Timer timer(how_.times, static_cast<std::size_t>(group.begin));
    KeptHint hint(how_, sample.id, group, fused);
    // A refusal is most likely the first op's: that of the stored bytes.
    at_ = written(group.begin);
    group.fusion->apply(fused, tensor.view(), place);
    hint.keep();
    tensor = std::move(place.made);
  }

  void run_step(Sample& sample, int k) {
    at_ = written(k);
    Tensor& tensor = input_of(sample, k);
    const OpDef& def = op(k).def();
    Tensor made;
    if (def.produce == nullptr) made = place_for(k);
    const Timer timer(how_.times, static_cast<std::size_t>(k));
    if (def.produce != nullptr) {
      made = def.produce(op(k).raw(), tensor.view(), drawn(k), *how_.pool);
      if (how_.slots != nullptr && next(k) < 0) made = copied_to_slot(def.field, made);
    } else {
      def.apply(op(k).raw(), tensor.view(), drawn(k), made.span());
    }
    tensor = std::move(made);
  }

  // What could not be written in its place, because nobody knew how large it would be.
  Tensor copied_to_slot(std::string_view field, const Tensor& made) {
    const TensorSpan slot = how_.slots->slot(field, made.spec());
    if (const std::size_t bytes = made.spec().bytes(); bytes > 0)
      std::memcpy(slot.bytes(), made.view().bytes(), bytes);
    return Tensor::borrowed(slot);
  }

  // Where step k writes: the batch's slot, if it is the last of its field.
  Tensor place_for(int k) {
    const TensorSpec& spec = shape(k).out;
    if (how_.slots != nullptr && next(k) < 0)
      return Tensor::borrowed(how_.slots->slot(op(k).def().field, spec));
    return {spec, shape(k).make, how_.pool->allocate(made_bytes(k))};
  }

  // The place of step k, made when it is asked for.
  class LatePlace final : public OutputPlace {
   public:
    LatePlace(Run& run, int k) : run_(run), k_(k) {}
    TensorSpan get() override {
      run_.at_ = run_.written(k_);
      made = run_.place_for(k_);
      return made.span();
    }
    Tensor made;

   private:
    Run& run_;
    const int k_;
  };

  // What is known of a sample, for a group that takes hints.
  class KeptHint {
   public:
    KeptHint(const RunContext& how, SampleId id, const Group& group, FusedSteps& fused)
        : hints_(group.fusion->takes_hints && group.begin == 0 ? how.hints : nullptr), id_(id) {
      if (hints_ == nullptr) return;
      fused.hint = &hint_;
      hints_->find(id_, hint_.known);
    }
    void keep() {
      if (!hint_.learned.empty()) hints_->keep(id_, hint_.learned);
    }
    KeptHint(const KeptHint&) = delete;
    KeptHint& operator=(const KeptHint&) = delete;

   private:
    Hints* hints_;
    const SampleId id_;
    Hint hint_;
  };

  // Adds the time of its life to a step's account.
  class Timer {
   public:
    Timer(std::vector<OpTime>* times, std::size_t step)
        : time_(times != nullptr ? &(*times)[step] : nullptr),
          start_(std::chrono::steady_clock::now()) {}
    ~Timer() {
      if (time_ == nullptr) return;
      const auto spent = std::chrono::steady_clock::now() - start_;
      time_->nanoseconds += static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
      ++time_->calls;
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    OpTime* time_;
    std::chrono::steady_clock::time_point start_;
  };

  const std::vector<Op>& ops_;
  const std::vector<Step>& steps_;
  const Cut from_, to_;
  const Draws& draws_;
  const RunContext& how_;
  std::vector<StepShape> shapes_;
  std::vector<int> next_;
  std::size_t scratch_bytes_ = 0;
  std::string_view at_ = "pipeline";
};

// The pipeline's first group, if it is one that has excerpts of samples like this one.
std::optional<Group> group_with_excerpts(const Pipeline& pipeline, const Sample& sample,
                                         const Draws& draws) {
  if (sample.cut != 0 || draws.steps.size() != pipeline.steps().size()) return std::nullopt;
  const std::vector<Group> groups = pipeline.groups(0, pipeline.last_cut(), true);
  if (groups.empty() || groups[0].fusion == nullptr || groups[0].fusion->excerpt == nullptr)
    return std::nullopt;
  return groups[0];
}

Tensor copy_of(const TensorView& from, BufferPool& pool) {
  Buffer buffer = pool.allocate(from.spec().bytes());
  if (!buffer.empty()) std::memcpy(buffer.data(), from.bytes(), buffer.size());
  return {from.spec(), std::move(buffer)};
}

}  // namespace

std::optional<Sample> Pipeline::excerpt(const Sample& sample, const Draws& draws,
                                        const RunContext& how) const {
  const std::optional<Group> first = group_with_excerpts(*this, sample, draws);
  if (!first) return std::nullopt;
  std::optional<Tensor> less;
  try {
    Run run(*this, 0, last_cut(), draws, how);
    less = run.excerpt(sample, *first, [&](const FusedSteps& fused, const TensorView& in) {
      return first->fusion->excerpt(fused, in, *how.pool);
    });
  } catch (const Error&) {  // run() tells the reason
  }
  if (!less) return std::nullopt;
  Sample made{sample.id, 0, {}};
  const std::string_view shortened = steps_[0].op.def().field;
  for (const auto& [name, tensor] : sample.fields)
    made.fields.push_back(
        {name, name == shortened ? std::move(*less) : copy_of(tensor.view(), *how.pool)});
  return made;
}

double Pipeline::excerpt_share(const Sample& sample, const Draws& draws) const {
  const std::optional<Group> first = group_with_excerpts(*this, sample, draws);
  if (!first || first->fusion->excerpt_share == nullptr) return 1;
  try {
    const RunContext how;
    Run run(*this, 0, last_cut(), draws, how);
    return run.excerpt(sample, *first, first->fusion->excerpt_share);
  } catch (const Error&) {  // run() tells the reason
    return 1;
  }
}

Result<Sample> Pipeline::run(Sample sample, Cut from, Cut to, const Draws& draws,
                             const RunContext& how) const {
  if (sample.cut != from || from < 0 || to < from || to > last_cut() ||
      draws.steps.size() != steps_.size()) {
    Failure failure;
    failure.code = Code::kInvalidArgument;
    failure.sample = sample.id;
    failure.reason = "cannot run cuts " + std::to_string(from) + ".." + std::to_string(to) +
                     " of a pipeline with cuts 0.." + std::to_string(last_cut()) +
                     " on a sample that stands at cut " + std::to_string(sample.cut);
    return failure;
  }

  Run run(*this, from, to, draws, how);
  try {
    run.execute(sample, groups(from, to, how.fuse));
    return sample;
  } catch (...) {
    return caught(sample.id, run.at());
  }
}

}  // namespace cutwater
