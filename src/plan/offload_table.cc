// SPDX-License-Identifier: Apache-2.0
#include "plan/offload_table.h"

#include <functional>
#include <numeric>

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
  for (std::size_t k = at + 1; k < profile.cuts.size(); ++k)
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] += profile.cuts[k].op_s.at(i);
  return seconds;
}

bool known(const CutProfile& cut, std::size_t samples) {
  return cut.bytes.size() == samples && cut.op_s.size() == samples &&
         cut.prefix_s.size() == samples;
}

}  // namespace

OffloadColumns::OffloadColumns(const Profile& profile) {
  const CostModel checked(profile);  // the columns of stable cuts fit, and are finite
  const std::size_t samples = profile.ids.size();
  weight = checked.samples() / static_cast<double>(samples);
  std::vector<std::vector<OffloadOption>> columns;
  const auto add = [&](const OffloadVariant& variant,
                       const std::function<OffloadOption(std::size_t)>& option) {
    variants.push_back(variant);
    std::vector<OffloadOption>& column = columns.emplace_back();
    for (std::size_t i = 0; i < samples; ++i) {
      column.push_back(option(i));
      column.back().compute_s += profile.engine_s;
    }
  };
  for (std::size_t k = 0; k < profile.cuts.size(); ++k) {
    const CutProfile& cut = profile.cuts[k];
    if (!known(cut, samples)) break;
    const std::vector<double> finish_s = finish_of(profile, k);
    add({cut.cut, cut.name, {}, false}, [&](std::size_t i) {
      return OffloadOption{cut.bytes[i], cut.prefix_s[i], finish_s.at(i)};
    });
    const ExcerptProfile& excerpt = profile.excerpt;
    if (k == 0 && !excerpt.bytes.empty())
      add({0, cut.name, {}, true}, [&](std::size_t i) {
        if (!(excerpt.bytes.at(i) > 0)) return kNoOption;
        return OffloadOption{excerpt.bytes[i], excerpt.make_s.at(i), excerpt.finish_s.at(i)};
      });
    for (const VariantProfile& variant : cut.variants)
      if (!variant.codec.is_none() && sum(variant.bytes) < sum(cut.bytes))
        add({cut.cut, cut.name, variant.codec, false}, [&](std::size_t i) {
          return OffloadOption{variant.bytes.at(i), cut.prefix_s[i] + variant.encode_s.at(i),
                               variant.decode_s.at(i) + finish_s.at(i)};
        });
  }
  values.reserve(samples * columns.size());
  for (std::size_t i = 0; i < samples; ++i)
    for (const std::vector<OffloadOption>& column : columns) values.push_back(column[i]);
}

}  // namespace cutwater
