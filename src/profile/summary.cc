// SPDX-License-Identifier: Apache-2.0
#include "profile/summary.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace cutwater {
namespace {

using nlohmann::ordered_json;

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  std::array<char, 256> line{};
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(line.data(), line.size(), pattern, values);
  va_end(values);
  return line.data();
}

std::string rate(double per_s, double unit, const char* name) {
  return per_s > 0 ? format("%.0f %s", per_s / unit, name) : "not measured";
}

// The variants that save something, the smallest first.
std::string best_variants(const CutProfile& cut) {
  std::vector<const VariantProfile*> smaller;
  for (const VariantProfile& variant : cut.variants)
    if (mean(variant.bytes) < 0.98 * mean(cut.bytes)) smaller.push_back(&variant);
  std::sort(smaller.begin(), smaller.end(),
            [](const auto* a, const auto* b) { return mean(a->bytes) < mean(b->bytes); });
  std::string text;
  for (const VariantProfile* variant : smaller)
    text += (text.empty() ? "" : ", ") +
            format("%s %.0f %% +%.0f us", to_string(variant->codec).c_str(),
                   100 * mean(variant->bytes) / std::max(mean(cut.bytes), 1.0),
                   1e6 * mean(variant->decode_s));
  return text.empty() ? "none is smaller" : text;
}

// Means over the samples that have one.
struct ExcerptMeans {
  double share = 0, bytes = 0, make_s = 0, finish_s = 0;
};
ExcerptMeans means_of(const ExcerptProfile& excerpt) {
  const auto there = [](double bytes) { return bytes > 0; };
  const auto count =
      static_cast<double>(std::count_if(excerpt.bytes.begin(), excerpt.bytes.end(), there));
  if (!(count > 0)) return {};
  const double all = static_cast<double>(excerpt.bytes.size()), times = all / count;
  return {count / all, times * mean(excerpt.bytes), times * mean(excerpt.make_s),
          times * mean(excerpt.finish_s)};
}

std::string variants_text(const CutProfile& cut) {
  if (cut.variants.empty()) return "fresh: other bytes in every epoch";
  return (cut.stable ? "" : "fresh; ") + best_variants(cut);
}

std::string storage_lines(const Profile& profile) {
  const StorageProfile& storage = profile.storage;
  std::string text;
  if (storage.warm_per_byte_s > 0)
    text += format("reads, warm: %.1f us a file, %.1f us a part of an open one, then %.1f GB/s\n",
                   1e6 * storage.warm_file_s, 1e6 * storage.warm_part_s,
                   1e-9 / storage.warm_per_byte_s);
  else
    text += "reads, warm: not measured (cutwater profile does, if TMPDIR can be written)\n";
  const auto cold = [&](const char* name, const ReadCost& cost) {
    text += std::string("reads, cold, ") + name + ": ";
    if (cost.reads_per_s > 0 || cost.bytes_per_s > 0)
      text += rate(cost.reads_per_s, 1, "a second") + " of 4 KiB, " +
              rate(cost.bytes_per_s, 1e6, "MB/s") + "\n";
    else
      text += "not measured\n";
  };
  cold("random", storage.cold_random);
  cold("sequential", storage.cold_sequential);
  text += "writes: " + rate(storage.write_bytes_per_s, 1e6, "MB/s") +
          format(", %.1f ms until a small file is on the disk\n", 1e3 * storage.write_file_s);
  text += "memory: " + rate(profile.memory_bytes_per_s, 1e9, "GB/s");
  if (profile.memory_bytes_per_s > 0)
    text += " copied by each of " + std::to_string(profile.threads) + " threads, " +
            rate(profile.fresh_memory_bytes_per_s, 1e9, "GB/s") + " into fresh memory";
  if (profile.shared_memory_bytes_per_s > 0)
    text +=
        ", " + rate(profile.shared_memory_bytes_per_s, 1e9, "GB/s") + " into what processes share";
  text += "\n";
  return text;
}

ordered_json json_of(const CutProfile& cut) {
  ordered_json variants = ordered_json::object();
  for (const VariantProfile& variant : cut.variants)
    variants[to_string(variant.codec)] = {{"bytes", mean(variant.bytes)},
                                          {"encode_s", mean(variant.encode_s)},
                                          {"decode_s", mean(variant.decode_s)}};
  const auto if_known = [](const std::vector<double>& column) {
    return column.empty() ? ordered_json() : ordered_json(mean(column));
  };
  return {{"cut", cut.cut},
          {"name", cut.name},
          {"after", cut.after.empty() ? ordered_json() : ordered_json(cut.after)},
          {"stable", cut.stable},
          {"bytes", mean(cut.bytes)},
          {"op_s", mean(cut.op_s)},
          {"prefix_s", mean(cut.prefix_s)},
          {"finish_s", if_known(cut.finish_s)},
          {"first_s", if_known(cut.first_s)},
          {"memory_s", if_known(cut.memory_s)},
          {"variants", variants}};
}

ordered_json json_of(const ReadCost& cost) {
  const auto measured = [](double value) {
    return value > 0 ? ordered_json(value) : ordered_json();
  };
  return {{"reads_per_s", measured(cost.reads_per_s)}, {"bytes_per_s", measured(cost.bytes_per_s)}};
}

}  // namespace

std::string profile_table(const Profile& profile) {
  std::string text =
      format("%zu of %lld samples in %.1f s by %d threads; the mean time is known to %.1f %%\n",
             profile.ids.size(), static_cast<long long>(profile.data_samples), profile.seconds,
             profile.threads, 100 * profile.relative_error);
  text += format("%3s %-24s %10s %9s %9s %12s  %s\n", "cut", "", "kB", "op us", "to us", "from us",
                 "variants: size, time to decode");
  for (const CutProfile& cut : profile.cuts) {
    const std::string from =
        cut.finish_s.empty() ? std::string("-") : format("%.1f", 1e6 * mean(cut.finish_s));
    text += format("%3d %-24s %10.1f %9.1f %9.1f %12s  ", cut.cut, cut.name.c_str(),
                   1e-3 * mean(cut.bytes), 1e6 * mean(cut.op_s), 1e6 * mean(cut.prefix_s),
                   from.c_str()) +
            variants_text(cut) + "\n";
  }
  if (const ExcerptMeans excerpt = means_of(profile.excerpt); excerpt.share > 0)
    text += format("excerpt: %.1f kB, of %.0f %% of the samples; %.1f us to make, then %.1f us\n",
                   1e-3 * excerpt.bytes, 100 * excerpt.share, 1e6 * excerpt.make_s,
                   1e6 * excerpt.finish_s);
  text += storage_lines(profile);
  if (profile.consumer_samples_per_s)
    text += format("consumer: %.0f samples/s\n", *profile.consumer_samples_per_s);
  for (const Failure& failure : profile.bad) text += "bad: " + failure.message() + "\n";
  return text;
}

std::string profile_json(const Profile& profile) {
  ordered_json cuts = ordered_json::array(), bad = cuts;
  for (const CutProfile& cut : profile.cuts) cuts.push_back(json_of(cut));
  for (const Failure& failure : profile.bad)
    bad.push_back({{"id", failure.sample},
                   {"path", failure.path},
                   {"op", failure.op},
                   {"reason", failure.reason}});
  const StorageProfile& storage = profile.storage;
  const ExcerptMeans excerpt = means_of(profile.excerpt);
  const ordered_json json = {
      {"samples", profile.ids.size()},
      {"seconds", profile.seconds},
      {"data", profile.data},
      {"pipeline", profile.pipeline},
      {"fingerprint", profile.fingerprint},
      {"data_samples", profile.data_samples},
      {"relative_error", profile.relative_error},
      {"threads", profile.threads},
      {"cuts", cuts},
      {"excerpt", excerpt.share > 0 ? ordered_json{{"share", excerpt.share},
                                                   {"bytes", excerpt.bytes},
                                                   {"make_s", excerpt.make_s},
                                                   {"finish_s", excerpt.finish_s}}
                                    : ordered_json()},
      {"bad", bad},
      {"storage",
       {{"reads_files", profile.reads_files},
        {"warm_file_s", storage.warm_file_s},
        {"warm_part_s", storage.warm_part_s},
        {"warm_per_byte_s", storage.warm_per_byte_s},
        {"check_per_byte_s", storage.check_per_byte_s},
        {"cold_random", json_of(storage.cold_random)},
        {"cold_sequential", json_of(storage.cold_sequential)},
        {"write_bytes_per_s",
         storage.write_bytes_per_s > 0 ? ordered_json(storage.write_bytes_per_s) : ordered_json()},
        {"write_file_s", storage.write_file_s}}},
      {"memory_bytes_per_s", profile.memory_bytes_per_s},
      {"fresh_memory_bytes_per_s", profile.fresh_memory_bytes_per_s},
      {"shared_memory_bytes_per_s", profile.shared_memory_bytes_per_s},
      {"shared_checked_bytes_per_s", profile.shared_checked_bytes_per_s},
      {"checked_memory_bytes_per_s", profile.checked_memory_bytes_per_s},
      {"engine_s", profile.engine_s},
      {"whole_s", profile.whole_s},
      {"consumer_samples_per_s", profile.consumer_samples_per_s
                                     ? ordered_json(*profile.consumer_samples_per_s)
                                     : ordered_json()}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace cutwater
