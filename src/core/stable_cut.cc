// SPDX-License-Identifier: Apache-2.0
#include "core/stable_cut.h"

namespace cutwater {

void require_stable_cut(const std::string& what_for, const Pipeline& pipeline, Cut from, Cut cut,
                        const std::string& advice) {
  const auto named = [&](Cut which) {
    const std::string number = "cut " + std::to_string(which);
    return which > pipeline.last_cut() ? number : number + " ('" + pipeline.cut_name(which) + "')";
  };
  const auto refuse = [&](const std::string& why) {
    throw Error(Code::kInvalidArgument, what_for + ": " + why);
  };
  if (cut < 0 || cut > pipeline.last_cut())
    refuse("there is no cut " + std::to_string(cut) + "; the pipeline's last one is " +
           named(pipeline.last_cut()));
  if (!pipeline.stable(cut))
    refuse(named(cut) + " lies past the frontier, " + named(pipeline.frontier()) +
           ": it is random, other bytes in every epoch. " + advice);
  if (cut < from) refuse("the source stands at " + named(from) + " already, past " + named(cut));
}

}  // namespace cutwater
