// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "cutwater/error.h"
#include "plan/cache_plan.h"

namespace cutwater {
namespace {

constexpr double kRounding = 1e-9;

std::size_t form_of(const CacheModel& model, std::string_view name) {
  std::string known;
  for (std::size_t f = 0; f < model.forms.size(); ++f) {
    const FormName& form = model.forms[f].name;
    const std::string text = to_string(form);
    std::string by_number = std::to_string(form.cut);
    if (!form.codec.is_none()) by_number += ":" + to_string(form.codec);
    if (name == text || name == by_number) return f;
    known += (f > 0 ? ", " : "") + text;
  }
  throw Error(Code::kInvalidArgument, "split: there is no stable form '" + std::string(name) +
                                          "' in the profile, only " + known);
}

}  // namespace

std::vector<double> shares_of(const CacheModel& model, std::string_view split) {
  std::vector<double> shares(model.forms.size());
  for (std::string_view rest = split; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = part.rfind('=');
    double share = 0;
    const char* const end = part.data() + part.size();
    const auto read = std::from_chars(part.data() + std::min(equals + 1, part.size()), end, share);
    const bool good = equals != std::string_view::npos && read.ec == std::errc{} &&
                      read.ptr == end && share >= 0 && share <= 1;
    if (!good)
      throw Error(Code::kInvalidArgument,
                  "split: each part must be CUT=SHARE or CUT:CODEC=SHARE, as in decode=0.5, got '" +
                      std::string(part) + "'");
    shares[form_of(model, part.substr(0, equals))] += share;
  }
  if (std::accumulate(shares.begin(), shares.end(), 0.0) > 1 + kRounding)
    throw Error(Code::kInvalidArgument, "split: the shares of '" + std::string(split) +
                                            "' are more than all samples; make them 1");
  return shares;
}

std::string split_text(const CacheModel& model, std::span<const double> shares) {
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return shares[a] > shares[b]; });
  std::string text;
  for (const std::size_t f : order) {
    const long thousandths = std::lround(shares[f] * 1000);
    if (thousandths == 0) continue;
    char share[16];
    std::snprintf(share, sizeof share, "%g", static_cast<double>(thousandths) / 1000);
    text += (text.empty() ? "" : ",") + to_string(model.forms[f].name) + "=" + share;
  }
  return text;
}

}  // namespace cutwater
