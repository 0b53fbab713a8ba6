// SPDX-License-Identifier: Apache-2.0
#include "cutwater/op.h"

#include <algorithm>
#include <numeric>

namespace cutwater {
namespace {

// Levenshtein distance, to guess what a mistyped name meant.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string did_you_mean(std::string_view name, std::vector<std::string_view> known) {
  if (known.empty()) return " (it takes none)";
  std::stable_sort(known.begin(), known.end(), [&](std::string_view a, std::string_view b) {
    return edits_between(name, a) < edits_between(name, b);
  });
  std::string text;
  if (edits_between(name, known.front()) <= 1 + name.size() / 3)
    text = "; did you mean '" + std::string(known.front()) + "'?";
  std::sort(known.begin(), known.end());
  text += " (known:";
  for (const std::string_view one : known) text += " " + std::string(one);
  return text + ")";
}

std::string call_text(const Op& op, bool with_defaults) {
  std::string arguments;
  const std::vector<ParamInfo> infos = op.def().params();
  const NamedValues values = op.params();
  for (std::size_t i = 0; i < values.size(); ++i)
    if (with_defaults || infos[i].required || values[i].second != infos[i].default_value)
      arguments +=
          (arguments.empty() ? "" : ", ") + values[i].first + "=" + to_text(values[i].second);
  const std::string name(op.def().name);
  return arguments.empty() ? name : name + "(" + arguments + ")";
}

}  // namespace

NamedValues Op::params() const { return def_->values(raw()); }
std::string Op::to_string() const { return call_text(*this, false); }
std::string Op::canonical_text() const {
  return call_text(*this, true) + "@" + std::to_string(def_->version);
}

std::vector<Op> Op::expand() const {
  return def_->expand != nullptr ? def_->expand(raw()) : std::vector<Op>{*this};
}

const OpDef& OpTable::get(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const OpDef* def : ops) {
    if (def->name == name) return *def;
    names.push_back(def->name);
  }
  throw Error(Code::kInvalidArgument,
              "unknown op '" + std::string(name) + "'" + did_you_mean(name, std::move(names)));
}

Op make_op(const OpTable& table, std::string_view name, const NamedValues& values) {
  const OpDef& def = table.get(name);
  return def.make(def, values);
}

namespace detail {

void refuse_value(std::string_view op, std::string_view param, const Value& value,
                  std::string_view expected) {
  throw Error(Code::kInvalidArgument, std::string(op) + ": " + std::string(param) + " must be " +
                                          std::string(expected) + ", got " + to_text(value));
}

void refuse_unknown_params(const OpDef& def, const NamedValues& values) {
  const std::vector<ParamInfo> infos = def.params();
  std::vector<std::string_view> names;
  for (const ParamInfo& info : infos) names.push_back(info.name);

  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(names.begin(), names.end(), value->first) == names.end())
      throw Error(Code::kInvalidArgument, std::string(def.name) + ": unknown parameter '" +
                                              value->first + "'" +
                                              did_you_mean(value->first, names));
    if (std::any_of(values.begin(), value, [&](const auto& v) { return v.first == value->first; }))
      throw Error(Code::kInvalidArgument,
                  std::string(def.name) + ": parameter '" + value->first + "' is given twice");
  }
  for (const ParamInfo& info : infos)
    if (info.required && std::none_of(values.begin(), values.end(),
                                      [&](const auto& v) { return v.first == info.name; }))
      throw Error(Code::kInvalidArgument, std::string(def.name) + ": parameter '" +
                                              std::string(info.name) +
                                              "' is missing: " + std::string(info.doc));
}

}  // namespace detail
}  // namespace cutwater
