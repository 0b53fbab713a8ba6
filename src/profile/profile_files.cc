// SPDX-License-Identifier: Apache-2.0
// save_profile, load_profile: FORMAT.md says what the files are.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/machine.h"
#include "core/npy.h"
#include "cutwater/profile.h"
#include "profile/new_folder.h"
#include "profile/profile_tables.h"
#include "source/read_file.h"

namespace cutwater {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr int kVersion = 1;
constexpr std::string_view kFormat = "cutwater profile", kMeta = "meta.json";
constexpr std::uint64_t kMostMetaBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostColumnBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMostCuts = 1 << 16;

std::string file_of(std::string_view table) { return std::string(table) + ".npy"; }

// ---- save

ordered_json json_of(const ReadCost& cost) {
  return {{"reads_per_s", cost.reads_per_s}, {"bytes_per_s", cost.bytes_per_s}};
}

ordered_json meta_of(const Profile& profile) {
  ordered_json cuts = ordered_json::array(), variants = cuts, fresh_variants = cuts, bad = cuts;
  ordered_json files;
  const ProfileParts parts = parts_of(profile);
  for (const CutProfile& cut : profile.cuts) {
    cuts.push_back({{"cut", cut.cut},
                    {"name", cut.name},
                    {"after", cut.after.empty() ? ordered_json() : ordered_json(cut.after)},
                    {"stable", cut.stable}});
    for (const VariantProfile& variant : cut.variants)
      (cut.stable ? variants : fresh_variants)
          .push_back({{"cut", cut.cut}, {"codec", to_string(variant.codec)}});
  }
  for (const Failure& failure : profile.bad)
    bad.push_back({{"id", failure.sample},
                   {"path", failure.path},
                   {"op", failure.op},
                   {"reason", failure.reason}});
  files["ids"] = file_of("ids");
  Profile shape = profile;
  for (const ProfileTable& table : tables_of(shape, parts))
    files[std::string(table.name)] = table.file();
  const StorageProfile& storage = profile.storage;
  ordered_json meta = {
      {"format", kFormat},
      {"version", kVersion},
      {"data", profile.data},
      {"pipeline", profile.pipeline},
      {"fingerprint", profile.fingerprint},
      {"source_identity", profile.source_identity},
      {"data_samples", profile.data_samples},
      {"samples", profile.ids.size()},
      {"seconds", profile.seconds},
      {"threads", profile.threads},
      {"relative_error", profile.relative_error},
      {"reads_files", profile.reads_files},
      {"engine_s", profile.engine_s},
      {"whole_s", profile.whole_s},
      {"memory_bytes_per_s", profile.memory_bytes_per_s},
      {"fresh_memory_bytes_per_s", profile.fresh_memory_bytes_per_s},
      {"shared_memory_bytes_per_s", profile.shared_memory_bytes_per_s},
      {"shared_checked_bytes_per_s", profile.shared_checked_bytes_per_s},
      {"checked_memory_bytes_per_s", profile.checked_memory_bytes_per_s},
      {"consumer_samples_per_s", profile.consumer_samples_per_s
                                     ? ordered_json(*profile.consumer_samples_per_s)
                                     : ordered_json()},
      {"storage",
       {{"cold_random", json_of(storage.cold_random)},
        {"cold_sequential", json_of(storage.cold_sequential)},
        {"warm_file_s", storage.warm_file_s},
        {"warm_part_s", storage.warm_part_s},
        {"warm_per_byte_s", storage.warm_per_byte_s},
        {"check_per_byte_s", storage.check_per_byte_s},
        {"write_bytes_per_s", storage.write_bytes_per_s},
        {"write_file_s", storage.write_file_s}}},
      {"cuts", cuts},
      {"variants", variants},
      {"bad", bad},
      {"files", files}};
  if (parts.fresh) meta["fresh_variants"] = fresh_variants;
  return meta;
}

// A folder that is not there yet, is empty, or has nothing but a profile in it.
void check_folder(const fs::path& folder) {
  std::error_code none;
  if (!fs::exists(folder, none)) return;
  if (!fs::is_directory(folder, none))
    throw path_error(Code::kInvalidArgument, folder.string(),
                     "is a file; a profile is a folder: give another path");
  std::vector<std::string> ours = {std::string(kMeta), file_of("ids")};
  Profile nothing;
  for (const ProfileTable& table : tables_of(nothing, {.fresh = true, .excerpt = true}))
    ours.push_back(table.file());
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (std::find(ours.begin(), ours.end(), name) == ours.end())
      throw path_error(
          Code::kInvalidArgument, folder.string(),
          "has '" + name + "' in it, which is no part of a profile; give a new folder");
  }
}

// ---- load

class Loading {
 public:
  explicit Loading(const std::string& folder) : folder_(folder) {}

  Profile load() {
    read_meta();
    Profile profile;
    read_scalars(profile);
    read_cuts(profile);
    const ProfileParts parts = {meta_.contains("fresh_variants"),
                                at(meta_, "files").contains("excerpt_bytes")};
    read_variants(profile, "variants", true);
    if (parts.fresh) read_variants(profile, "fresh_variants", false);
    read_ids(profile);
    for (const ProfileTable& table : tables_of(profile, parts))
      read_table(table, profile.ids.size());
    return profile;
  }

 private:
  [[noreturn]] void refuse(const std::string& file, const std::string& why) const {
    throw path_error(Code::kInvalidArgument, (folder_ / file).string(),
                     why + "; it is damaged or not a profile's: profile again");
  }
  [[noreturn]] void refuse_meta(const std::string& why) const { refuse(std::string(kMeta), why); }

  void read_meta() {
    const fs::path path = folder_ / kMeta;
    std::error_code none;
    if (!fs::exists(path, none))
      throw path_error(Code::kNotFound, folder_.string(),
                       "is not a profile: it has no meta.json; `cutwater profile -o` writes one");
    meta_ = ordered_json::parse(File::open(path.string()).text(kMostMetaBytes), nullptr, false);
    if (!meta_.is_object()) refuse_meta("is no JSON object");
    if (text(meta_, "format") != kFormat) refuse_meta("'format' is not \"cutwater profile\"");
    if (const std::int64_t version = whole(meta_, "version", 0, 1 << 30); version != kVersion)
      refuse_meta("has version " + std::to_string(version) + ", and this program knows version " +
                  std::to_string(kVersion));
  }

  const ordered_json& at(const ordered_json& object, const char* key) const {
    if (!object.is_object() || !object.contains(key))
      refuse_meta("lacks '" + std::string(key) + "'");
    return object.at(key);
  }
  std::string text(const ordered_json& object, const char* key) const {
    const ordered_json& value = at(object, key);
    if (!value.is_string()) refuse_meta("'" + std::string(key) + "' is no text");
    return value.get<std::string>();
  }
  bool truth(const ordered_json& object, const char* key) const {
    const ordered_json& value = at(object, key);
    if (!value.is_boolean()) refuse_meta("'" + std::string(key) + "' is neither true nor false");
    return value.get<bool>();
  }
  std::int64_t whole(const ordered_json& object, const char* key, std::int64_t least,
                     std::int64_t most) const {
    const ordered_json& value = at(object, key);
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      refuse_meta("'" + std::string(key) + "' is " + value.dump(-1, ' ', false, kReplace) +
                  ", not a whole number in " + std::to_string(least) + ".." + std::to_string(most));
    return value.get<std::int64_t>();
  }
  double number(const ordered_json& object, const char* key) const {
    const ordered_json& value = at(object, key);
    if (!value.is_number() || !is_measure(value.get<double>()))
      refuse_meta("'" + std::string(key) + "' is " + value.dump(-1, ' ', false, kReplace) +
                  ", not a number from 0 on");
    return value.get<double>();
  }
  const ordered_json& list(const char* key) const {
    const ordered_json& value = at(meta_, key);
    if (!value.is_array()) refuse_meta("'" + std::string(key) + "' is no list");
    return value;
  }
  static bool is_measure(double value) { return std::isfinite(value) && value >= 0; }

  void read_scalars(Profile& profile) const {
    profile.data = text(meta_, "data");
    profile.pipeline = text(meta_, "pipeline");
    profile.fingerprint = text(meta_, "fingerprint");
    profile.source_identity = text(meta_, "source_identity");
    profile.data_samples = whole(meta_, "data_samples", 1, INT64_MAX);
    profile.seconds = number(meta_, "seconds");
    profile.threads = static_cast<int>(whole(meta_, "threads", 1, kMostThreads));
    profile.relative_error = number(meta_, "relative_error");
    profile.reads_files = truth(meta_, "reads_files");
    profile.engine_s = number(meta_, "engine_s");
    const auto measured_since = [&](const char* key, double& value) {
      if (meta_.contains(key)) value = number(meta_, key);
    };
    measured_since("whole_s", profile.whole_s);
    profile.memory_bytes_per_s = number(meta_, "memory_bytes_per_s");
    profile.fresh_memory_bytes_per_s = number(meta_, "fresh_memory_bytes_per_s");
    measured_since("shared_memory_bytes_per_s", profile.shared_memory_bytes_per_s);
    measured_since("shared_checked_bytes_per_s", profile.shared_checked_bytes_per_s);
    measured_since("checked_memory_bytes_per_s", profile.checked_memory_bytes_per_s);
    if (!at(meta_, "consumer_samples_per_s").is_null())
      profile.consumer_samples_per_s = number(meta_, "consumer_samples_per_s");
    const ordered_json& storage = at(meta_, "storage");
    const auto cost = [&](const char* key) {
      const ordered_json& rates = at(storage, key);
      return ReadCost{number(rates, "reads_per_s"), number(rates, "bytes_per_s")};
    };
    profile.storage.cold_random = cost("cold_random");
    profile.storage.cold_sequential = cost("cold_sequential");
    profile.storage.warm_file_s = number(storage, "warm_file_s");
    profile.storage.warm_part_s = number(storage, "warm_part_s");
    profile.storage.warm_per_byte_s = number(storage, "warm_per_byte_s");
    profile.storage.check_per_byte_s = number(storage, "check_per_byte_s");
    profile.storage.write_bytes_per_s = number(storage, "write_bytes_per_s");
    profile.storage.write_file_s = number(storage, "write_file_s");
    for (const ordered_json& one : list("bad"))
      profile.bad.push_back({Code::kBadSample, text(one, "reason"),
                             whole(one, "id", 0, profile.data_samples - 1), text(one, "path"),
                             text(one, "op")});
  }

  void read_cuts(Profile& profile) const {
    const ordered_json& cuts = list("cuts");
    if (cuts.empty() || cuts.size() > kMostCuts)
      refuse_meta("has " + std::to_string(cuts.size()) + " cuts");
    for (const ordered_json& one : cuts) {
      CutProfile cut;
      const auto expected = std::ssize(profile.cuts);
      cut.cut = static_cast<Cut>(whole(one, "cut", expected, expected));
      cut.name = text(one, "name");
      if (!at(one, "after").is_null()) cut.after = text(one, "after");
      cut.stable = truth(one, "stable");
      if (cut.stable && !profile.cuts.empty() && !profile.cuts.back().stable)
        refuse_meta("has a stable cut " + std::to_string(cut.cut) + " behind a fresh one");
      profile.cuts.push_back(std::move(cut));
    }
    if (!profile.cuts.front().stable) refuse_meta("has a cut 0 that is not stable");
  }

  // Of all stable or of all fresh cuts.
  void read_variants(Profile& profile, const char* key, bool stable) const {
    Cut last = 0;
    for (const ordered_json& one : list(key)) {
      last = static_cast<Cut>(whole(one, "cut", last, std::ssize(profile.cuts) - 1));
      CutProfile& cut = profile.cuts[static_cast<std::size_t>(last)];
      if (cut.stable != stable)
        refuse_meta(std::string("has a variant of the ") + (stable ? "fresh" : "stable") + " cut " +
                    std::to_string(last) + " in '" + key + "'");
      const Codec codec = codec_of(text(one, "codec"));
      for (const VariantProfile& other : cut.variants)
        if (other.codec == codec)
          refuse_meta("has variant " + to_string(codec) + " of cut " + std::to_string(last) +
                      " twice");
      cut.variants.push_back({codec, {}, {}, {}});
    }
    for (const CutProfile& cut : profile.cuts)
      if (cut.stable == stable && (cut.variants.empty() || !cut.variants.front().codec.is_none()))
        refuse_meta("has no variant \"none\" as the first of cut " + std::to_string(cut.cut));
  }

  Codec codec_of(const std::string& name) const {
    try {
      return codec_named(name);
    } catch (const Error& error) {
      refuse_meta(error.what());
    }
  }

  // The array's bytes. Memory is asked for only as large as the file is.
  std::string column_bytes(std::string_view table, std::string_view descr,
                           const std::vector<std::int64_t>& shape) const {
    const std::string key(table);
    const std::string name = text(at(meta_, "files"), key.c_str());
    if (name.empty() || name.front() == '.' || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      refuse_meta("file name '" + name + "' of '" + key + "' leads out of the folder");
    std::string bytes = File::open((folder_ / name).string()).text(kMostColumnBytes);
    NpyHeader header;
    try {
      header =
          parse_npy_header({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
    } catch (const Error& error) {
      refuse(name, error.what());
    }
    if (header.descr != descr) refuse(name, "has elements of type " + header.descr);
    if (header.shape != shape) refuse(name, "has another shape than meta.json says");
    const std::size_t rows = static_cast<std::size_t>(shape[0]);
    const std::size_t columns = shape.size() > 1 ? static_cast<std::size_t>(shape[1]) : 1;
    const std::size_t data = bytes.size() - header.bytes;
    if (data % 8 != 0 || data / 8 % rows != 0 || data / 8 / rows != columns)
      refuse(name, "has " + std::to_string(data) + " bytes of elements where its shape says " +
                       std::to_string(rows) + " x " + std::to_string(columns) + " of 8");
    return bytes.substr(header.bytes);
  }

  void read_ids(Profile& profile) const {
    const std::int64_t samples = whole(meta_, "samples", 1, profile.data_samples);
    const std::string bytes = column_bytes("ids", npy_type(DType::kI64), {samples});
    profile.ids.resize(static_cast<std::size_t>(samples));
    std::memcpy(profile.ids.data(), bytes.data(), bytes.size());
    std::set<std::int64_t> seen;
    for (const std::int64_t id : profile.ids)
      if (id < 0 || id >= profile.data_samples || !seen.insert(id).second)
        refuse("ids.npy",
               "has id " + std::to_string(id) + ", which comes twice or is none of the data set's");
  }

  void read_table(const ProfileTable& table, std::size_t samples) const {
    const std::size_t columns = table.columns.size();
    const std::string bytes =
        column_bytes(table.name, npy_type(DType::kF64),
                     {static_cast<std::int64_t>(samples), static_cast<std::int64_t>(columns)});
    for (std::size_t c = 0; c < columns; ++c) table.columns[c]->resize(samples);
    for (std::size_t i = 0; i < samples * columns; ++i) {
      double value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      if (!is_measure(value))
        refuse(table.file(), "has " + std::to_string(value) + " in row " +
                                 std::to_string(i / columns) + ", not a number from 0 on");
      (*table.columns[i % columns])[i / columns] = value;
    }
  }

  static constexpr auto kReplace = ordered_json::error_handler_t::replace;

  const fs::path folder_;
  ordered_json meta_;
};

}  // namespace

void save_profile(const Profile& profile, const std::string& path) {
  check_folder(path);
  NewFolder folder(path);
  const auto samples = static_cast<std::int64_t>(profile.ids.size());
  std::string ids = npy_header(npy_type(DType::kI64), std::array{samples});
  ids.append(reinterpret_cast<const char*>(profile.ids.data()),
             profile.ids.size() * sizeof(std::int64_t));
  folder.write(file_of("ids"), ids);
  Profile copy = profile;
  for (const ProfileTable& table : tables_of(copy, parts_of(copy))) {
    const auto columns = static_cast<std::int64_t>(table.columns.size());
    std::string bytes = npy_header(npy_type(DType::kF64), std::array{samples, columns});
    for (std::size_t row = 0; row < profile.ids.size(); ++row)
      for (const std::vector<double>* column : table.columns)
        bytes.append(reinterpret_cast<const char*>(&column->at(row)), sizeof(double));
    folder.write(table.file(), bytes);
  }
  folder.write(std::string(kMeta),
               meta_of(profile).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  folder.put_in_place();
}

Profile load_profile(const std::string& path) { return Loading(path).load(); }

}  // namespace cutwater
