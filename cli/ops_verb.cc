// SPDX-License-Identifier: Apache-2.0
// cutwater ops [NAME]: the table of ops.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "ops/all_ops.h"
#include "ops/presets.h"
#include "verbs.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

ordered_json json_of(const Value& value) {
  return std::visit(
      [](const auto& v) -> ordered_json {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, std::monostate>)
          return nullptr;
        else
          return v;
      },
      value);
}

ordered_json json_of(const OpDef& def) {
  ordered_json params = ordered_json::array();
  for (const ParamInfo& info : def.params())
    params.push_back({{"name", info.name},
                      {"type", info.python_type},
                      {"required", info.required},
                      {"default", json_of(info.default_value)},
                      {"doc", info.doc}});
  return {{"name", def.name}, {"domain", def.domain}, {"draws", def.draws},
          {"doc", def.doc},   {"field", def.field},   {"params", std::move(params)}};
}

void print(const OpDef& def) {
  std::printf("%s%s\n  %s\n", std::string(def.name).c_str(), def.draws ? "  (draws)" : "",
              std::string(def.doc).c_str());
  for (const ParamInfo& info : def.params())
    std::printf("    %-20s %-26s %s\n", std::string(info.name).c_str(),
                info.required ? "required" : ("= " + to_text(info.default_value)).c_str(),
                std::string(info.doc).c_str());
}

void ops(const std::string& name, bool json) {
  if (!name.empty()) {
    const OpDef& def = all_ops().get(name);
    if (json)
      std::printf("%s\n", json_of(def).dump(2).c_str());
    else
      print(def);
    return;
  }
  if (json) {
    ordered_json list = ordered_json::array();
    for (const OpDef* def : all_ops().ops) list.push_back(json_of(*def));
    ordered_json named;
    for (const auto& [preset, text] : presets()) named[std::string(preset)] = text;
    std::printf("%s\n", ordered_json{{"ops", list}, {"presets", named}}.dump(2).c_str());
    return;
  }
  for (const OpDef* def : all_ops().ops) print(*def);
  std::printf("\npresets\n");
  for (const auto& [preset, text] : presets())
    std::printf("  %-16s %s\n", std::string(preset).c_str(), std::string(text).c_str());
}

}  // namespace

void add_ops(CLI::App& app) {
  struct Options {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("ops", "The ops with their parameters, and the presets");
  verb->add_option("name", options->name, "Only this op");
  verb->add_flag("--json", options->json, "One JSON object on stdout");
  verb->callback([options] { ops(options->name, options->json); });
}

}  // namespace cutwater::cli
