// SPDX-License-Identifier: Apache-2.0
#include "store/meta.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "store/disk.h"
#include "store/layout.h"

namespace cutwater {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kFormat = "cutwater store", kPartFormat = "cutwater part of a store";
constexpr int kVersion = 1;
constexpr std::size_t kChecksumDigits = 32, kMostFields = 64;

[[noreturn]] void refuse(const std::string& why) { throw Error(Code::kInvalidArgument, why); }

// Names of files and classes are bytes; those that are no text are written as digits.
ordered_json text_json(const std::string& text) {
  try {
    (void)ordered_json(text).dump();
    return text;
  } catch (const ordered_json::exception&) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (const char c : text) {
      hex += kDigits[static_cast<std::uint8_t>(c) >> 4];
      hex += kDigits[static_cast<std::uint8_t>(c) & 15];
    }
    return {{"hex", hex}};
  }
}

std::string text_from(const ordered_json& json) {
  if (json.is_string()) return json.get<std::string>();
  const auto hex = json.at("hex").get<std::string>();
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    refuse("a name is neither text nor hexadecimal digits");
  };
  if (hex.size() % 2 != 0) refuse("a name has half a byte");
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    text += static_cast<char>(value(hex[i]) << 4 | value(hex[i + 1]));
  return text;
}

// All numbers of a store are whole and not negative.
std::int64_t number_from(const ordered_json& json, std::int64_t most = INT64_MAX) {
  if (json.is_number_unsigned() && json.get<std::uint64_t>() <= static_cast<std::uint64_t>(most))
    return json.get<std::int64_t>();
  refuse("a number in it is " + json.dump());
}

std::string seal_of(std::string_view body) {
  return ",\n  \"checksum\": \"" + checksum_of(body) + "\"\n}\n";
}

// The last member of the object is the checksum of all bytes before it.
std::string sealed(const ordered_json& object) {
  std::string text = object.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  return text + seal_of(text);
}

// Refuses what was not written by sealed().
ordered_json unsealed(std::string_view text) {
  const std::size_t length = seal_of({}).size();
  if (text.size() < length) refuse("it is cut short");
  const std::string_view body = text.substr(0, text.size() - length);
  if (text.substr(body.size()) != seal_of(body))
    refuse("it is damaged: its checksum is not that of its content");
  return ordered_json::parse(text);
}

void check_format(const ordered_json& json, std::string_view format) {
  if (json.at("format").get<std::string>() != format)
    refuse("it is not that of a store: its format is '" + json.at("format").get<std::string>() +
           "'");
  if (const std::int64_t version = number_from(json.at("version")); version != kVersion)
    refuse("it has version " + std::to_string(version) + ", and this program reads version " +
           std::to_string(kVersion));
}

ordered_json json_of(const StorePlan& plan) {
  ordered_json classes = ordered_json::array();
  for (const std::string& name : plan.classes) classes.push_back(text_json(name));
  return {{"format", kFormat},
          {"version", kVersion},
          {"pipeline", plan.pipeline},
          {"cut", plan.cut},
          {"cut_name", plan.cut_name},
          {"fingerprint", plan.fingerprint},
          {"codec", to_string(plan.codec)},
          {"source", {{"identity", plan.identity}, {"stamp", plan.stamp}}},
          {"samples", plan.samples},
          {"samples_per_shard", plan.samples_per_shard},
          {"fields", plan.fields},
          {"label_field", plan.label_field},
          {"has_labels", plan.has_labels},
          {"classes", std::move(classes)}};
}

StorePlan plan_from(const ordered_json& json) {
  check_format(json, kFormat);
  StorePlan plan;
  plan.pipeline = json.at("pipeline").get<std::string>();
  plan.cut = static_cast<Cut>(number_from(json.at("cut"), INT32_MAX));
  plan.cut_name = json.at("cut_name").get<std::string>();
  plan.fingerprint = json.at("fingerprint").get<std::string>();
  plan.codec = codec_named(json.at("codec").get<std::string>());
  plan.identity = json.at("source").at("identity").get<std::string>();
  plan.stamp = json.at("source").at("stamp").get<std::string>();
  plan.samples = number_from(json.at("samples"));
  plan.samples_per_shard = number_from(json.at("samples_per_shard"));
  plan.fields = json.at("fields").get<std::vector<std::string>>();
  plan.label_field = json.at("label_field").get<bool>();
  plan.has_labels = json.at("has_labels").get<bool>();
  for (const ordered_json& name : json.at("classes")) plan.classes.push_back(text_from(name));

  if (plan.samples < 1 || plan.samples_per_shard < 1 || plan.samples_per_shard > plan.samples)
    refuse("it says " + std::to_string(plan.samples) + " samples, " +
           std::to_string(plan.samples_per_shard) + " in a shard");
  const std::set<std::string> names(plan.fields.begin(), plan.fields.end());
  if (names.size() != plan.fields.size() || names.size() > kMostFields ||
      !std::all_of(names.begin(), names.end(), is_field_name) || plan.tensors().empty())
    refuse("the names of its fields cannot be those of a sample's fields");
  if (plan.label_field && (!plan.has_labels || !names.contains(std::string(kLabelField))))
    refuse("it says that samples have a label, and that they have none");
  return plan;
}

ordered_json bad_json(const std::vector<Failure>& bad) {
  ordered_json list = ordered_json::array();
  for (const Failure& failure : bad)
    list.push_back({{"id", failure.sample},
                    {"path", text_json(failure.path)},
                    {"op", failure.op},
                    {"reason", text_json(failure.reason)}});
  return list;
}

// Ids must rise, from `first` up to `end`.
std::vector<Failure> bad_from(const ordered_json& json, std::int64_t first, std::int64_t end) {
  std::vector<Failure> bad;
  for (const ordered_json& one : json) {
    Failure failure{Code::kBadSample, text_from(one.at("reason")), number_from(one.at("id")),
                    text_from(one.at("path")), one.at("op").get<std::string>()};
    if (failure.sample < first || failure.sample >= end)
      refuse("sample " + std::to_string(failure.sample) +
             " is listed as bad where it does not belong");
    first = failure.sample + 1;
    bad.push_back(std::move(failure));
  }
  return bad;
}

ordered_json json_of(const std::string& name, const ShardMeta& shard) {
  return {{"name", name}, {"bytes", shard.bytes}, {"checksum", shard.checksum}};
}

ShardMeta shard_from(const ordered_json& json, const std::string& name) {
  const auto called = json.at("name").get<std::string>();
  if (called != name) refuse("a file is called '" + called + "' where only '" + name + "' can be");
  ShardMeta shard{static_cast<std::uint64_t>(number_from(json.at("bytes"))),
                  json.at("checksum").get<std::string>()};
  if (shard.checksum.size() != kChecksumDigits)
    refuse("'" + shard.checksum + "' cannot be the checksum of '" + name + "'");
  return shard;
}

// What the JSON library and the checks throw becomes an error about the file.
template <class Parse>
auto about(const std::string& path, Parse&& parse) -> decltype(parse()) {
  try {
    return parse();
  } catch (const Error& error) {
    throw path_error(Code::kInvalidArgument, path,
                     error.failure().reason + "; make the store again");
  } catch (const ordered_json::exception& error) {
    throw path_error(Code::kInvalidArgument, path,
                     std::string("it is not what a store has there: ") + error.what() +
                         "; make the store again");
  }
}

}  // namespace

std::vector<std::string> StorePlan::tensors() const {
  std::vector<std::string> names;
  for (const std::string& name : fields)
    if (!label_field || name != kLabelField) names.push_back(name);
  return names;
}

std::string to_text(const StorePlan& plan) { return sealed(json_of(plan)); }

std::string to_text(const StoreMeta& meta) {
  ordered_json json = json_of(meta.plan);
  json["raw_bytes"] = meta.raw_bytes;
  json["index"] = json_of(std::string(kIndexName), meta.index);
  json["shards"] = ordered_json::array();
  for (std::size_t i = 0; i < meta.shards.size(); ++i)
    json["shards"].push_back(json_of(shard_name(static_cast<std::int64_t>(i)), meta.shards[i]));
  json["bad"] = bad_json(meta.bad);
  return sealed(json);
}

std::string to_text(const ShardPart& part) {
  const ordered_json head = {
      {"format", kPartFormat},
      {"version", kVersion},
      {"shard", part.shard},
      {"file", json_of(shard_name(part.shard), part.meta)},
      {"raw_bytes", part.raw_bytes},
      {"rows", {{"bytes", part.rows.size()}, {"checksum", checksum_of(part.rows)}}},
      {"bad", bad_json(part.bad)}};
  return part.rows + sealed(head);
}

void check_can_list(const StorePlan& plan) {
  constexpr std::uint64_t kShardText = 192;  // more than any shard takes there
  const std::uint64_t plan_bytes = to_text(plan).size();
  const auto shards = static_cast<std::uint64_t>(plan.shards());
  if (plan_bytes > kMaxMetaBytes || shards > (kMaxMetaBytes - plan_bytes) / kShardText)
    refuse("materialize: a store of " + std::to_string(plan.samples) + " samples would have " +
           std::to_string(shards) + " shards, more than " + std::string(kMetaName) +
           " can list; choose a cut with smaller samples, or make several stores");
}

StorePlan parse_plan(std::string_view text, const std::string& path) {
  return about(path, [&] { return plan_from(unsealed(text)); });
}

StoreMeta parse_meta(std::string_view text, const std::string& path) {
  return about(path, [&] {
    const ordered_json json = unsealed(text);
    StoreMeta meta;
    meta.plan = plan_from(json);
    meta.raw_bytes = static_cast<std::uint64_t>(number_from(json.at("raw_bytes")));
    meta.index = shard_from(json.at("index"), std::string(kIndexName));
    for (const ordered_json& shard : json.at("shards"))
      meta.shards.push_back(
          shard_from(shard, shard_name(static_cast<std::int64_t>(meta.shards.size()))));
    if (static_cast<std::int64_t>(meta.shards.size()) != meta.plan.shards())
      refuse("it lists " + std::to_string(meta.shards.size()) + " shards where there are " +
             std::to_string(meta.plan.shards()));
    meta.bad = bad_from(json.at("bad"), 0, meta.plan.samples);
    return meta;
  });
}

ShardPart parse_part(std::string_view text, const std::string& path) {
  return about(path, [&] {
    // The rows are of any length: the object behind them begins as it is always written.
    constexpr std::string_view kBegin = "{\n  \"format\": \"cutwater part of a store\"";
    const std::size_t begin = text.rfind(kBegin);
    if (begin == std::string_view::npos) refuse("it is cut short");
    const ordered_json json = unsealed(text.substr(begin));
    check_format(json, kPartFormat);
    ShardPart part;
    part.shard = number_from(json.at("shard"));
    part.meta = shard_from(json.at("file"), shard_name(part.shard));
    part.raw_bytes = static_cast<std::uint64_t>(number_from(json.at("raw_bytes")));
    part.bad = bad_from(json.at("bad"), 0, INT64_MAX);
    part.rows = text.substr(0, begin);
    if (json.at("rows").at("checksum").get<std::string>() != checksum_of(part.rows))
      refuse("its rows are damaged");
    return part;
  });
}

StoreMeta read_meta(const std::string& folder) {
  const std::string path = inside(folder, kMetaName);
  try {
    return parse_meta(open_plain(path).text(kMaxMetaBytes), path);
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
    throw path_error(Code::kNotFound, folder,
                     "there is no store here (no " + std::string(kMetaName) +
                         "); an unfinished one is gone on with by materialize");
  }
}

StoreInfo info_of(const StoreMeta& meta) {
  const StorePlan& plan = meta.plan;
  StoreInfo info;
  info.samples = plan.samples;
  for (const ShardMeta& shard : meta.shards) info.bytes += shard.bytes;
  info.raw_bytes = meta.raw_bytes;
  info.cut = plan.cut;
  info.cut_name = plan.cut_name;
  info.pipeline = plan.pipeline;
  info.fingerprint = plan.fingerprint;
  info.codec = plan.codec;
  info.source_identity = plan.identity;
  info.source_stamp = plan.stamp;
  info.bad = meta.bad;
  return info;
}

}  // namespace cutwater
