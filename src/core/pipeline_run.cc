// SPDX-License-Identifier: Apache-2.0
// Pipeline::run: shapes forward, needed regions backward, then bytes forward.
#include <algorithm>
#include <chrono>

#include "core/caught.h"
#include "cutwater/pipeline.h"

namespace cutwater {
namespace {

// What the run knows about each step before it touches a byte.
struct StepPlan {
  TensorSpec in, out;
  Region make;    // the part of the output that somebody needs
  int next = -1;  // the next step on the same field inside this run, or -1
};

class Run {
 public:
  Run(const Pipeline& pipeline, Cut from, Cut to, const Draws& draws, const RunContext& how)
      : steps_(pipeline.steps()), from_(from), to_(to), draws_(draws), how_(how) {
    plans_.resize(steps_.size());
  }

  // The op being worked on, for the error.
  std::string_view at() const { return at_; }

  void execute(Sample& sample, const std::vector<Group>& groups) {
    find_shapes(sample);
    find_regions();
    if (how_.reserve && from_ < to_) {
      at_ = op(from_).def().name;
      how_.reserve(bytes_held(groups));
    }
    for (const Group& group : groups) run_group(sample, group);
    sample.cut = to_;
  }

 private:
  const Op& op(int k) const { return steps_[static_cast<std::size_t>(k)].op; }
  StepPlan& plan(int k) { return plans_[static_cast<std::size_t>(k)]; }
  const DrawnValues& drawn(int k) const { return draws_.steps[static_cast<std::size_t>(k)]; }

  Tensor& field(Sample& sample, int k) {
    Tensor* tensor = sample.find(op(k).def().field);
    if (tensor == nullptr)
      throw Error(Code::kInvalidArgument,
                  "the source has no field '" + std::string(op(k).def().field) + "'");
    return *tensor;
  }

  void find_shapes(Sample& sample) {
    for (int k = from_; k < to_; ++k) {
      at_ = op(k).def().name;
      TensorView in = field(sample, k).view();
      for (int j = k - 1; j >= from_; --j)
        if (op(j).def().field == op(k).def().field) {
          in = TensorView(plan(j).out, nullptr);
          plan(j).next = k;
          break;
        }
      plan(k).in = in.spec();
      plan(k).out = op(k).def().out_spec(op(k).raw(), in, drawn(k));
      if (op(k).def().scratch_bytes != nullptr)
        scratch_bytes_ = std::max(scratch_bytes_, op(k).def().scratch_bytes(op(k).raw(), in));
    }
  }

  // Backward: an op makes only what the next one needs, if it can make a part at all. The last op
  // of a field makes everything: bytes at a cut never depend on what would follow.
  void find_regions() {
    for (int k = to_ - 1; k >= from_; --k) {
      const bool partial = op(k).def().needs != nullptr && plan(k).next >= 0;
      plan(k).make = partial ? needed_by(plan(k).next) : whole(plan(k).out);
    }
  }

  Region needed_by(int k) {
    const OpDef& def = op(k).def();
    return def.needs != nullptr ? def.needs(op(k).raw(), plan(k).in, plan(k).make, drawn(k))
                                : whole(plan(k).in);
  }

  std::size_t made_bytes(int k) {
    const TensorSpec& spec = plan(k).out;
    if (spec.shape.rank() != 3) return spec.bytes();
    const auto pixels = static_cast<std::size_t>(plan(k).make.height * plan(k).make.width);
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

  void run_group(Sample& sample, const Group& group) {
    const int last = group.end - 1;
    at_ = op(last).def().name;
    Tensor& tensor = field(sample, group.begin);
    const TensorSpec& spec = plan(last).out;
    const bool to_slot = how_.slots != nullptr && plan(last).next < 0;

    Tensor made;
    if (to_slot) {
      made = Tensor::borrowed(how_.slots->slot(op(last).def().field, spec));
    } else {
      Buffer bytes = how_.pool->allocate(made_bytes(last));
      made = Tensor(spec, plan(last).make, std::move(bytes));
    }

    const auto start = std::chrono::steady_clock::now();
    const auto begin = static_cast<std::size_t>(group.begin);
    if (group.fusion != nullptr) {
      const auto count = static_cast<std::size_t>(group.end - group.begin);
      group.fusion->apply(std::span(steps_).subspan(begin, count),
                          std::span(draws_.steps).subspan(begin, count), tensor.view(),
                          made.span());
    } else {
      at_ = op(group.begin).def().name;
      op(group.begin)
          .def()
          .apply(op(group.begin).raw(), tensor.view(), drawn(group.begin), made.span());
    }
    if (how_.times != nullptr) {
      OpTime& time = (*how_.times)[begin];
      const auto spent = std::chrono::steady_clock::now() - start;
      time.nanoseconds += static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count());
      ++time.calls;
    }
    tensor = std::move(made);
  }

  const std::vector<Step>& steps_;
  const Cut from_, to_;
  const Draws& draws_;
  const RunContext& how_;
  std::vector<StepPlan> plans_;
  std::size_t scratch_bytes_ = 0;
  std::string_view at_ = "pipeline";
};

}  // namespace

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
