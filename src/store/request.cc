// SPDX-License-Identifier: Apache-2.0
#include "store/request.h"

#include <algorithm>

#include "core/stable_cut.h"

namespace cutwater {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

}  // namespace

void check_can_store(const Source* source, const Pipeline& pipeline, Cut cut) {
  if (source == nullptr) refuse("materialize: a source is needed");
  require_stable_cut("materialize", pipeline, source->cut(), cut,
                     pipeline.frontier() == 0
                         ? "This pipeline draws in its first op, so there is nothing to prepare; "
                           "cut 0 would only put the stored bytes side by side"
                         : "Materialize the frontier or an earlier cut");
  if (const std::string made_by = source->fingerprint();
      !made_by.empty() && made_by != pipeline.fingerprint(source->cut()))
    throw Error(Code::kStale, "materialize: the source's samples were prepared by '" +
                                  source->pipeline() + "', which is not how '" +
                                  pipeline.to_string() + "' begins");
}

StorePlan plan_of_store(const Source& source, const Pipeline& pipeline, Cut cut,
                        const Codec& codec) {
  StorePlan plan;
  plan.pipeline = pipeline.prefix(cut).to_string();
  plan.cut = cut;
  plan.cut_name = pipeline.cut_name(cut);
  plan.fingerprint = pipeline.fingerprint(cut);
  plan.codec = codec;
  plan.identity = source.identity();
  plan.stamp = source.stamp();
  plan.samples = source.size();
  plan.has_labels = source.has_labels();
  plan.classes = source.classes();
  // The label is a field like others where an op makes it.
  plan.label_field =
      source.has_labels() &&
      std::none_of(pipeline.steps().begin(), pipeline.steps().begin() + cut,
                   [](const Step& step) { return step.op.def().field == kLabelField; });
  return plan;
}

void check_same_store(const StorePlan& there, const StorePlan& now, const std::string& folder) {
  std::string differs;
  const auto compare = [&](const char* what, const std::string& old, const std::string& wanted) {
    if (old != wanted)
      differs += std::string(differs.empty() ? "" : "; ") + what + ": there '" + old + "', now '" +
                 wanted + "'";
  };
  compare("cut", there.cut_name, now.cut_name);
  compare("pipeline", there.pipeline, now.pipeline);
  if (differs.empty())
    compare("version of the ops, by fingerprint", there.fingerprint, now.fingerprint);
  compare("codec", to_string(there.codec), to_string(now.codec));
  compare("data set, by identity", there.identity, now.identity);
  if (there.identity == now.identity)
    compare("sizes and times of its files, by stamp", there.stamp, now.stamp);
  if (!differs.empty())
    throw Error(Failure{Code::kStale,
                        "there is a store of something else; " + differs +
                            ". Remove the folder, or give another one",
                        -1,
                        folder,
                        {}});
}

}  // namespace cutwater
