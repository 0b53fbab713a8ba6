// SPDX-License-Identifier: Apache-2.0
#include "plan/offload_table.h"

#include <functional>
#include <numeric>

#include "cutwater/error.h"
#include "plan/cost_model.h"

namespace cutwater {
namespace {

double sum(const std::vector<double>& column) {
  return std::accumulate(column.begin(), column.end(), 0.0);
}

// From a cut to the last one. In a profile that a loader collected, fresh cuts have the ops behind
// them only, run one by one.
std::vector<double> finish_of(const Profile& profile, std::size_t at) {
  const CutProfile& cut = profile.cuts[at];
  if (!cut.finish_s.empty()) return cut.finish_s;
  std::vector<double> seconds(profile.ids.size());
  for (std::size_t k = at + 1; k < profile.cuts.size(); ++k) {
    const std::vector<double>& op_s = profile.cuts[k].op_s;
    for (std::size_t i = 0; i < op_s.size(); ++i) seconds[i] += op_s[i];
  }
  return seconds;
}

// Nothing is known of what a cut takes, and of those behind it, in profiles without any measuring.
bool known(const CutProfile& cut, std::size_t samples) {
  return cut.op_s.size() == samples && cut.prefix_s.size() == samples;
}

// Of what only this plan uses; it may be missing as a whole.
void check(const Profile& profile) {
  const auto column = [&](const std::vector<double>& values, const std::string& what) {
    if (values.size() != profile.ids.size())
      throw Error(Code::kInvalidArgument, "the profile has " + std::to_string(values.size()) +
                                              " values of " + what + " for " +
                                              std::to_string(profile.ids.size()) + " samples");
  };
  for (const CutProfile& cut : profile.cuts) {
    if (!known(cut, profile.ids.size())) break;
    const std::string at = " at cut '" + cut.name + "'";
    column(cut.bytes, "bytes" + at);
    if (!cut.finish_s.empty()) column(cut.finish_s, "finish_s" + at);
    for (const VariantProfile& variant : cut.variants)
      for (const auto* values : {&variant.bytes, &variant.encode_s, &variant.decode_s})
        column(*values, to_string(variant.codec) + at);
  }
  if (profile.excerpt.bytes.empty()) return;
  for (const auto* values :
       {&profile.excerpt.bytes, &profile.excerpt.make_s, &profile.excerpt.finish_s})
    column(*values, "excerpts");
}

}  // namespace

OffloadColumns::OffloadColumns(const Profile& profile) {
  const CostModel checked(profile);  // the columns of stable cuts fit, and are finite
  check(profile);
  const std::size_t samples = profile.ids.size();
  weight = checked.samples() / static_cast<double>(samples);
  std::vector<std::vector<OffloadOption>> columns;
  const auto add = [&](const OffloadVariant& variant,
                       const std::function<OffloadOption(std::size_t)>& option) {
    variants.push_back(variant);
    std::vector<OffloadOption>& column = columns.emplace_back();
    for (std::size_t i = 0; i < samples; ++i) {
      OffloadOption& one = column.emplace_back(option(i));
      one.storage_s *= checked.slower();
      one.compute_s = checked.slower() * one.compute_s + profile.engine_s;
    }
  };
  for (std::size_t k = 0; k < profile.cuts.size(); ++k) {
    const CutProfile& cut = profile.cuts[k];
    if (!known(cut, samples)) break;
    const std::vector<double> finish_s = finish_of(profile, k);
    add({cut.cut, cut.name, {}, false}, [&](std::size_t i) {
      return OffloadOption{cut.bytes[i], cut.prefix_s[i], finish_s[i]};
    });
    const ExcerptProfile& excerpt = profile.excerpt;
    if (k == 0 && !excerpt.bytes.empty())
      add({0, cut.name, {}, true}, [&](std::size_t i) {
        if (!(excerpt.bytes[i] > 0)) return kNoOption;
        return OffloadOption{excerpt.bytes[i], excerpt.make_s[i], excerpt.finish_s[i]};
      });
    for (const VariantProfile& variant : cut.variants)
      if (!variant.codec.is_none() && sum(variant.bytes) < sum(cut.bytes))
        add({cut.cut, cut.name, variant.codec, false}, [&](std::size_t i) {
          return OffloadOption{variant.bytes[i], cut.prefix_s[i] + variant.encode_s[i],
                               variant.decode_s[i] + finish_s[i]};
        });
  }
  values.reserve(samples * columns.size());
  for (std::size_t i = 0; i < samples; ++i)
    for (const std::vector<OffloadOption>& column : columns) values.push_back(column[i]);
}

}  // namespace cutwater
