// SPDX-License-Identifier: Apache-2.0
// Pipeline: a chain of ops and the cuts between them. Cut 0 is the sample as stored, cut k the
// sample after step k. run() is the one way in which any part of the system executes ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cutwater/error.h"
#include "cutwater/op.h"
#include "cutwater/sample.h"

namespace cutwater {

// The random parameters of one sample in one epoch, drawn before a pixel is touched. A plain value:
// a storage server, a cache or a GPU needs these, never a generator's state.
struct Draws {
  std::vector<DrawnValues> steps;  // one per step; meaningless where the step does not draw
};

// One drawing step, readable: {"random_horizontal_flip", 3, {{"flip", true}}}.
struct NamedDraw {
  std::string_view op;
  int position;
  NamedValues values;
};

// Steps [begin, end) that run as one kernel.
struct Group {
  int begin, end;
  const Fusion* fusion;  // null: a single op
};

// Keeps what ops learn about samples (op.h: Hint). Any thread.
class Hints {
 public:
  virtual ~Hints() = default;
  // Replaces `into` by what is known of the sample.
  virtual void find(SampleId id, std::vector<std::uint8_t>& into) = 0;
  virtual void keep(SampleId id, const std::vector<std::uint8_t>& learned) = 0;
};

// Chooses where the last op of a field writes. Called once per field and run, from the thread that
// runs the sample, just before that op starts. May throw Error (a shape that does not fit the
// batch).
class SlotProvider {
 public:
  virtual ~SlotProvider() = default;
  virtual TensorSpan slot(std::string_view field, const TensorSpec& spec) = 0;
};

struct OpTime {
  std::uint64_t nanoseconds = 0, calls = 0;
};

// How to run, never what: nothing in here changes a byte.
struct RunContext {
  std::shared_ptr<BufferPool> pool;
  SlotProvider* slots = nullptr;  // null: results are buffers of the pool
  bool fuse = true;
  Hints* hints = nullptr;  // null: nothing is kept
  // Asked once, before the first op, for the bytes that the run will hold besides its slots; may
  // wait.
  std::function<void(std::size_t bytes)> reserve;
  // Asked before each group of ops: true ends the run with Error(kCancelled). Null: never.
  std::function<bool()> given_up = nullptr;
  std::vector<OpTime>* times = nullptr;  // added to, indexed by a group's first step
};

class Pipeline {
 public:
  explicit Pipeline(const OpTable& table) : table_(&table) {}

  // "decode | resize(size=256) | center_crop(size=224)". Throws Error(kInvalidArgument).
  static Pipeline parse(std::string_view text, const OpTable& table);

  // A new pipeline with one more op. Throws Error(kInvalidArgument) when the op cannot follow.
  Pipeline then(Op op) const;
  Pipeline then(std::string_view name, const NamedValues& values) const {
    return then(make_op(*table_, name, values));
  }

  const OpTable& table() const { return *table_; }
  const std::vector<Op>& ops() const { return ops_; }        // as written
  const std::vector<Step>& steps() const { return steps_; }  // as run
  std::string to_string() const;                             // parse() reads it back

  Cut last_cut() const { return static_cast<Cut>(steps_.size()); }
  // Cuts up to the frontier are stable: the same in every epoch. Cuts past it are fresh.
  Cut frontier() const;
  bool stable(Cut cut) const { return cut <= frontier(); }
  // By the op before it: "resize", "resize#2"; inside an op that stands for several, by the part
  // ("entropy" inside decode). "source" for cut 0.
  std::string cut_name(Cut cut) const;
  // The op before a cut, as the user wrote it, or the part of one that the cut is inside of.
  // REQUIRES: 1 <= cut <= last_cut().
  std::string_view op_before(Cut cut) const;
  Cut cut_named(std::string_view name) const;  // a name or a number. Throws Error(kInvalidArgument)
  // Names the bytes at a cut: equal fingerprints, source and sample id mean equal stable bytes.
  std::string fingerprint(Cut cut) const;
  std::string fingerprint() const { return fingerprint(last_cut()); }
  // What is known of the fields at a cut without any sample.
  std::vector<std::pair<std::string, TensorSpec>> fields_at(Cut cut) const;

  // Draws for the steps after the sample's cut, from the dimensions in its header.
  Result<Draws> draw(const Sample& sample, std::uint64_t seed, std::uint32_t epoch) const;
  std::vector<NamedDraw> describe(const Draws& draws, Cut from = 0) const;

  // Takes the sample from cut `from` to cut `to`. Any thread. REQUIRES: sample.cut == from.
  // The bytes at `to` depend on the sample and the draws alone. Failures carry sample id and op.
  Result<Sample> run(Sample sample, Cut from, Cut to, const Draws& draws,
                     const RunContext& how) const;

  // The sample with less in it, still at cut 0: what these draws need and no more. run() with these
  // draws makes the same bytes of it at the last cut; on the way to other cuts or draws it refuses
  // it (kBadSample) where something is missing. Nothing: there is none that is smaller, or run()
  // would refuse the sample, or `how.reserve` does not give what it may take. Any thread. Of `how`,
  // pool, hints and reserve count.
  // REQUIRES: sample.cut == 0, and the draws are this pipeline's.
  std::optional<Sample> excerpt(const Sample& sample, const Draws& draws,
                                const RunContext& how) const;
  // About the share of a sample's stored bytes that excerpt() would leave, from its header; 1: it
  // would not help.
  double excerpt_share(const Sample& sample, const Draws& draws) const;

  // The ops as written that reach the cut: `decode` for the cut inside it. The same cuts, names and
  // fingerprints up to there.
  Pipeline prefix(Cut cut) const;

  // How run() would divide the steps [from, to).
  std::vector<Group> groups(Cut from, Cut to, bool fuse) const;
  std::string name_of(const Group& group) const;  // "decode+resize+center_crop"

 private:
  const OpTable* table_;
  std::vector<Op> ops_;
  std::vector<Step> steps_;
};

}  // namespace cutwater
