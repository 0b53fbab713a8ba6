// SPDX-License-Identifier: Apache-2.0
#include "loader_profile.h"

#include <numeric>
#include <string>
#include <vector>

#include "profile/empty_profile.h"
#include "profile/storage_probe.h"

namespace cutwater {
namespace {

[[noreturn]] void refuse_empty(const OpRecord::Content& record) {
  const std::string why =
      record.failure
          ? "op by op they need more than they were given: " + record.failure->message()
          : "take batches first, of samples that are read: those from a cache are not recorded";
  throw Error(Code::kInvalidArgument, "no sample was recorded for the profile so far; " + why);
}

void append(const OpRow& row, Profile& profile) {
  profile.ids.push_back(row.id);
  std::vector<double> sums(row.op_s.size());
  std::partial_sum(row.op_s.begin(), row.op_s.end(), sums.begin());
  for (std::size_t k = 0; k < profile.cuts.size(); ++k) {
    CutProfile& cut = profile.cuts[k];
    cut.bytes.push_back(row.bytes[k]);
    cut.op_s.push_back(row.op_s[k]);
    cut.prefix_s.push_back(sums[k]);
    if (!cut.stable) continue;
    for (std::vector<double>* const column : {&cut.finish_s, &cut.first_s, &cut.memory_s})
      column->push_back(sums.back() - sums[k]);
    if (cut.variants.empty()) cut.variants.emplace_back();  // none
    cut.variants[0].bytes.push_back(row.bytes[k]);
    cut.variants[0].encode_s.push_back(0);
    cut.variants[0].decode_s.push_back(0);
  }
}

}  // namespace

Profile profile_of(const What& what, const OpRecord::Content& record, const Work& work) {
  if (record.rows.empty()) refuse_empty(record);
  Profile profile = empty_profile(*what.source, what.pipeline);
  for (const OpRow& row : record.rows) append(row, profile);
  // Only those that were drawn for the record: the bad ones' share is that of the data set.
  for (const auto* const bad : {&work.skipped, &work.substituted})
    for (const auto& [id, failure] : *bad)
      if (record.drawn.contains(id)) profile.bad.push_back(failure);
  profile.relative_error =
      relative_error(profile.cuts[0].finish_s, profile.bad.size(), profile.data_samples);
  profile.reads_files = reads_files(*what.source, profile.ids);
  return profile;
}

}  // namespace cutwater
