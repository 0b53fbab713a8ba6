// SPDX-License-Identifier: Apache-2.0
#include "pipeline_argument.h"

#include <toml++/toml.h>

#include <filesystem>

#include "ops/all_ops.h"
#include "ops/presets.h"

namespace cutwater::cli {
namespace {

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(Code::kInvalidArgument, file + ": " + why);
}

Value value_of(const toml::node& node, const std::string& file, const std::string& name) {
  if (const auto truth = node.value_exact<bool>()) return *truth;
  if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (const auto real = node.value_exact<double>()) return *real;
  if (const auto text = node.value_exact<std::string>()) return *text;
  const toml::array* array = node.as_array();
  if (array == nullptr) refuse(file, name + " must be a number, a word, true, false or a list");
  List list;
  for (const toml::node& element : *array) {
    const auto number = element.value<double>();
    if (!number) refuse(file, name + " must be a list of numbers");
    list.push_back(*number);
  }
  return list;
}

Pipeline from_toml(const std::string& file) {
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    refuse(file, "line " + std::to_string(error.source().begin.line) + ": " +
                     std::string(error.description()));
  }
  if (const auto text = table["pipeline"].value<std::string>()) return named_pipeline(*text);
  const toml::array* ops = table["op"].as_array();
  if (ops == nullptr) refuse(file, "needs pipeline = \"…\" or a list of [[op]] tables");
  Pipeline pipeline(all_ops());
  for (const toml::node& node : *ops) {
    const toml::table* op = node.as_table();
    const auto name = op != nullptr ? (*op)["name"].value<std::string>() : std::nullopt;
    if (!name) refuse(file, "each [[op]] needs a name");
    NamedValues values;
    for (const auto& [key, value] : *op)
      if (key != "name")
        values.emplace_back(std::string(key.str()), value_of(value, file, std::string(key.str())));
    pipeline = pipeline.then(*name, values);
  }
  return pipeline;
}

}  // namespace

Pipeline pipeline_argument(const std::string& argument) {
  if (!argument.ends_with(".toml")) return named_pipeline(argument);
  if (!std::filesystem::exists(argument))
    throw Error(Code::kNotFound, "no pipeline file '" + argument + "'");
  return from_toml(argument);
}

}  // namespace cutwater::cli
