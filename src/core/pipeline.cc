// SPDX-License-Identifier: Apache-2.0
// The chain itself: text, cuts, names, fingerprints, draws. pipeline_run.cc executes it.
#include "cutwater/pipeline.h"

#include <algorithm>
#include <charconv>

#include "core/caught.h"
#include "core/pipeline_text.h"
#include "core/sha256.h"

namespace cutwater {
namespace {

const TensorSpec kStoredBytes{DType::kU8, {kUnknown}};

TensorSpec& spec_of(std::vector<std::pair<std::string, TensorSpec>>& fields,
                    std::string_view name) {
  for (auto& [field, spec] : fields)
    if (field == name) return spec;
  return fields.emplace_back(name, kStoredBytes).second;
}

}  // namespace

Pipeline Pipeline::parse(std::string_view text, const OpTable& table) {
  Pipeline pipeline(table);
  for (Op& op : parse_ops(text, table)) pipeline = pipeline.then(std::move(op));
  return pipeline;
}

Pipeline Pipeline::then(Op op) const {
  // Draw keys hold the position in 12 bits.
  if (ops_.size() >= 4095) throw Error(Code::kInvalidArgument, "a pipeline has at most 4095 ops");
  // An op that cannot follow the one before it refuses now, not at the first sample, and by the
  // name that the user wrote.
  auto fields = fields_at(last_cut());
  const TensorSpec& before = spec_of(fields, op.def().field);
  (void)op.def().out_spec(op.raw(), TensorView(before, nullptr), DrawnValues{});

  Pipeline longer = *this;
  longer.ops_.push_back(std::move(op));
  const int position = static_cast<int>(longer.ops_.size());
  int part = 0;
  for (Op& step : longer.ops_.back().expand())
    longer.steps_.push_back({std::move(step), position, part++});
  (void)longer.fields_at(longer.last_cut());
  return longer;
}

std::string Pipeline::to_string() const {
  std::string text;
  for (const Op& op : ops_) text += (text.empty() ? "" : " | ") + op.to_string();
  return text;
}

Pipeline Pipeline::prefix(Cut cut) const {
  Pipeline shorter(*table_);
  const int last = cut > 0 ? steps_.at(static_cast<std::size_t>(cut) - 1).position : 0;
  for (const Op& op : std::span(ops_).first(static_cast<std::size_t>(last)))
    shorter = shorter.then(op);
  return shorter;
}

Cut Pipeline::frontier() const {
  const auto first = std::find_if(steps_.begin(), steps_.end(),
                                  [](const Step& step) { return step.op.def().draws; });
  return static_cast<Cut>(first - steps_.begin());
}

std::string_view Pipeline::op_before(Cut cut) const {
  const Step& step = steps_.at(static_cast<std::size_t>(cut) - 1);
  const bool inside =
      cut < last_cut() && steps_[static_cast<std::size_t>(cut)].position == step.position;
  const Op& op = inside ? step.op : ops_[static_cast<std::size_t>(step.position) - 1];
  return op.def().name;
}

std::string Pipeline::cut_name(Cut cut) const {
  if (cut == 0) return "source";
  int same = 0;
  for (Cut k = 1; k <= cut; ++k) same += op_before(k) == op_before(cut) ? 1 : 0;
  return std::string(op_before(cut)) + (same > 1 ? "#" + std::to_string(same) : "");
}

Cut Pipeline::cut_named(std::string_view name) const {
  Cut number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec == std::errc{} && read.ptr == name.data() + name.size() && number >= 0 &&
      number <= last_cut())
    return number;
  std::string known;
  for (Cut cut = 0; cut <= last_cut(); ++cut) {
    if (cut_name(cut) == name) return cut;
    known += " " + cut_name(cut);
  }
  throw Error(Code::kInvalidArgument, "no cut '" + std::string(name) +
                                          "' in this pipeline (known: 0.." +
                                          std::to_string(last_cut()) + "," + known + ")");
}

std::string Pipeline::fingerprint(Cut cut) const {
  std::string text = "cutwater pipeline 1\n";
  for (Cut k = 0; k < cut; ++k) {
    const Step& step = steps_.at(static_cast<std::size_t>(k));
    text += std::to_string(step.position) + "." + std::to_string(step.part) + " " +
            step.op.canonical_text() + "\n";
  }
  return sha256_hex(text).substr(0, 32);
}

std::vector<std::pair<std::string, TensorSpec>> Pipeline::fields_at(Cut cut) const {
  std::vector<std::pair<std::string, TensorSpec>> fields;
  spec_of(fields, kImageField);
  for (Cut k = 0; k < cut; ++k) {
    const Op& op = steps_.at(static_cast<std::size_t>(k)).op;
    TensorSpec& spec = spec_of(fields, op.def().field);
    spec = op.def().out_spec(op.raw(), TensorView(spec, nullptr), DrawnValues{});
  }
  return fields;
}

Result<Draws> Pipeline::draw(const Sample& sample, std::uint64_t seed, std::uint32_t epoch) const {
  Draws draws;
  draws.steps.resize(steps_.size());
  std::string_view at = "pipeline";
  try {
    std::vector<std::pair<std::string_view, TensorView>> views;
    for (const Field& field : sample.fields) views.emplace_back(field.name, field.tensor.view());
    for (auto k = static_cast<std::size_t>(sample.cut); k < steps_.size(); ++k) {
      const Step& step = steps_[k];
      const OpDef& def = step.op.def();
      at = ops_[static_cast<std::size_t>(step.position) - 1].def().name;
      const auto view = std::find_if(views.begin(), views.end(),
                                     [&](const auto& named) { return named.first == def.field; });
      if (view == views.end())
        throw Error(Code::kInvalidArgument,
                    "the source has no field '" + std::string(def.field) + "'");
      if (def.draws) {
        const auto op = static_cast<std::uint16_t>(step.position << 4 | step.part);
        const Rng rng({seed, epoch, static_cast<std::uint64_t>(sample.id), op});
        draws.steps[k] = def.draw(step.op.raw(), view->second.spec(), rng);
      }
      view->second = TensorView(def.out_spec(step.op.raw(), view->second, draws.steps[k]), nullptr);
    }
  } catch (...) {
    return caught(sample.id, at);
  }
  return draws;
}

std::vector<NamedDraw> Pipeline::describe(const Draws& draws, Cut from) const {
  std::vector<NamedDraw> named;
  for (auto k = static_cast<std::size_t>(from); k < steps_.size(); ++k) {
    const OpDef& def = steps_[k].op.def();
    if (def.draws) named.push_back({def.name, steps_[k].position, def.draw_values(draws.steps[k])});
  }
  return named;
}

std::vector<Group> Pipeline::groups(Cut from, Cut to, bool fuse) const {
  std::vector<Group> groups;
  for (Cut begin = from; begin < to;) {
    const auto left = std::span(steps_).subspan(static_cast<std::size_t>(begin),
                                                static_cast<std::size_t>(to - begin));
    Group best{begin, begin + 1, nullptr};
    for (const Fusion& fusion : table_->fusions) {
      const auto length = fuse ? static_cast<Cut>(fusion.match(left)) : 0;
      if (length > best.end - begin) best = {begin, begin + length, &fusion};
    }
    groups.push_back(best);
    begin = best.end;
  }
  return groups;
}

std::string Pipeline::name_of(const Group& group) const {
  std::string name;
  for (Cut cut = group.begin + 1; cut <= group.end; ++cut) {
    // An op of several parts is named once.
    const auto position = [&](Cut k) { return steps_[static_cast<std::size_t>(k) - 1].position; };
    const bool goes_on = cut < group.end && position(cut + 1) == position(cut);
    if (!goes_on) name += (name.empty() ? "" : "+") + std::string(op_before(cut));
  }
  return name;
}

}  // namespace cutwater
