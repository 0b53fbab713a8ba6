// SPDX-License-Identifier: Apache-2.0
#include "run_report.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/units.h"

namespace cutwater::cli {
namespace {

using nlohmann::ordered_json;

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

ordered_json json_of(const CacheReport& cache) {
  ordered_json forms = ordered_json::object();
  for (const CacheReport::Form& form : cache.forms)
    forms[form.cut] = {{"entries", form.entries}, {"bytes", form.bytes}, {"hits", form.hits}};
  const ordered_json trouble = cache.trouble.empty() ? ordered_json() : ordered_json(cache.trouble);
  return {{"hits", cache.hits},
          {"misses", cache.misses},
          {"damaged", cache.damaged},
          {"refused", cache.refused},
          {"made_ahead", cache.made_ahead},
          {"by_form", forms},
          {"entries", cache.entries},
          {"evicted", cache.evicted},
          {"bytes", cache.bytes},
          {"limit", cache.limit},
          {"cut", cache.cut},
          {"codec", cache.codec},
          {"why", cache.why},
          {"jobs", cache.jobs},
          {"trouble", trouble},
          {"seconds", cache.seconds}};
}

ordered_json json_of(const FetchReport::Times& times) {
  return {{"consumer_s", times.consumer_s},
          {"compute_s", times.compute_s},
          {"storage_s", times.storage_s},
          {"network_s", times.network_s}};
}

ordered_json json_of(const FetchReport& fetch) {
  ordered_json ways = ordered_json::object();
  for (const FetchReport::Way& way : fetch.ways)
    if (way.samples > 0)
      ways[way.name] = {
          {"samples", way.samples}, {"bytes", way.bytes}, {"storage_s", way.storage_seconds}};
  const ordered_json trouble =
      fetch.trouble.empty() ? ordered_json(nullptr) : ordered_json(fetch.trouble);
  ordered_json times;
  if (fetch.times)
    times = {{"before", json_of(fetch.times->before)}, {"after", json_of(fetch.times->after)}};
  return {{"policy", fetch.policy},
          {"decision", fetch.decision},
          {"times", times},
          {"wire_bytes", fetch.wire_bytes},
          {"stored_bytes", fetch.stored_bytes},
          {"storage_s", fetch.storage_seconds},
          {"storage_threads", fetch.storage_threads},
          {"by_way", ways},
          {"retries", fetch.retries},
          {"hedged", fetch.hedged},
          {"damaged", fetch.damaged},
          {"ran_less", fetch.ran_less},
          {"fallbacks", fetch.fallbacks},
          {"trouble", trouble}};
}

ordered_json json_of(const RunResult& result, const ReportOptions& options) {
  const LoaderStats& stats = result.stats;
  const double rate = result.seconds > 0 ? static_cast<double>(result.samples) / result.seconds : 0;
  ordered_json json = {
      {"samples", result.samples},
      {"seconds", result.seconds},
      {"samples_per_s", rate},
      {"read_bytes_per_s", static_cast<double>(stats.bytes_read) / result.seconds},
      {"first_batch_s", stats.first_batch_seconds},
      {"bound_by", stats.bound_by},
      {"rss_bytes", resident_bytes()},
      {"threads", stats.threads},
      {"memory_limit", stats.memory_limit},
      {"memory_peak", stats.memory_peak},
      {"wait_s",
       {{"consumer", stats.consumer_wait_seconds}, {"workers", stats.worker_wait_seconds}}},
      {"read_s", stats.read_seconds},
      {"index",
       {{"samples", stats.index.samples},
        {"uses", stats.index.uses},
        {"bytes", stats.index.bytes}}}};
  if (stats.cache) json["cache"] = json_of(*stats.cache);
  if (stats.fetch) json["offload"] = json_of(*stats.fetch);
  if (const auto& store = stats.store)
    json["store"] = {
        {"path", store->path},   {"cut", store->cut},         {"codec", store->codec},
        {"state", store->state}, {"reason", store->reason},   {"samples", store->samples},
        {"bytes", store->bytes}, {"damaged", store->damaged}, {"seconds", store->seconds}};
  if (!options.profile.empty())
    json["profile"] = {{"path", options.profile}, {"samples", result.profiled}};
  json["busy_share"] = result.busy_seconds / result.seconds;  // 0 without --step-ms
  json["ops"] = ordered_json::object();
  for (const NamedOpTime& op : stats.ops)
    json["ops"][op.name] = {{"seconds", op.seconds}, {"calls", op.calls}};
  json["epochs"] = ordered_json::array();
  for (const EpochResult& epoch : result.epochs) {
    ordered_json one = {{"epoch", epoch.epoch},       {"samples", epoch.samples},
                        {"seconds", epoch.seconds},   {"busy_s", epoch.busy_seconds},
                        {"cpu_s", epoch.cpu_seconds}, {"hits", epoch.hits},
                        {"misses", epoch.misses},     {"wire_bytes", epoch.wire_bytes}};
    if (options.hash && !epoch.set_hash.empty()) {  // several jobs together have none
      one["stream_hash"] = epoch.stream_hash;
      one["set_hash"] = epoch.set_hash;
    }
    json["epochs"].push_back(std::move(one));
  }
  for (const auto& [key, failures] :
       {std::pair{"skipped", &stats.skipped}, {"substituted", &stats.substituted}}) {
    json[key] = ordered_json::array();
    for (const Failure& f : *failures)
      json[key].push_back({{"id", f.sample}, {"path", f.path}, {"op", f.op}, {"reason", f.reason}});
  }
  return json;
}

void print_hashes(const RunResult& result, const ReportOptions& options) {
  if (!options.hash) return;
  for (const EpochResult& epoch : result.epochs)
    if (!epoch.set_hash.empty())
      std::printf("epoch %lld: stream %s  set %s\n", static_cast<long long>(epoch.epoch),
                  epoch.stream_hash.c_str(), epoch.set_hash.c_str());
}

void print_one(const RunResult& result, const ReportOptions& options) {
  const LoaderStats& stats = result.stats;
  std::printf("%lld samples in %.2f s: %.0f samples/s, %.1f MB/s read, first batch after %.3f s\n",
              static_cast<long long>(result.samples), result.seconds,
              static_cast<double>(result.samples) / result.seconds,
              static_cast<double>(stats.bytes_read) / result.seconds * 1e-6,
              stats.first_batch_seconds);
  const double threads = stats.threads;
  const auto line = [&](const std::string& name, double seconds, std::uint64_t calls) {
    std::printf("  %-52s %8.3f s  %5.1f %%  %8.1f us each\n", name.c_str(), seconds,
                100 * seconds / (result.seconds * threads),
                calls > 0 ? 1e6 * seconds / static_cast<double>(calls) : 0.0);
  };
  std::printf("time of %d thread%s:\n", stats.threads, stats.threads == 1 ? "" : "s");
  line("read", stats.read_seconds, static_cast<std::uint64_t>(stats.reads));
  if (const auto& cache = stats.cache)
    line("cache", cache->seconds, static_cast<std::uint64_t>(cache->hits + cache->misses));
  for (const NamedOpTime& op : stats.ops) line(op.name, op.seconds, op.calls);
  if (const auto& cache = stats.cache)
    std::printf("cache: %s of %s, %lld of %lld samples came from it; at cut '%s', codec %s (%s)\n",
                bytes_text(cache->bytes).c_str(), bytes_text(cache->limit).c_str(),
                static_cast<long long>(cache->hits),
                static_cast<long long>(cache->hits) + static_cast<long long>(cache->misses),
                cache->cut.c_str(), cache->codec.c_str(), cache->why.c_str());
  if (stats.cache)
    for (const CacheReport::Form& form : stats.cache->forms)
      std::printf("  %-52s %8lld kept, %s, %lld hits\n", form.cut.c_str(),
                  static_cast<long long>(form.entries), bytes_text(form.bytes).c_str(),
                  static_cast<long long>(form.hits));
  if (stats.cache && stats.cache->damaged > 0)
    std::printf("cache: %lld times a sample was damaged and made again\n",
                static_cast<long long>(stats.cache->damaged));
  if (const auto& store = stats.store)
    std::printf("store: %s, cut '%s', codec %s: %s%s\n", store->path.c_str(), store->cut.c_str(),
                store->codec.c_str(), store->state.c_str(),
                store->reason.empty() ? "" : (", " + store->reason).c_str());
  if (stats.store && stats.store->damaged > 0)
    std::printf("store: %lld times a sample was damaged and made again\n",
                static_cast<long long>(stats.store->damaged));
  std::printf("threads waited for room %.3f s, the consumer for batches %.3f s\n",
              stats.worker_wait_seconds, stats.consumer_wait_seconds);
  if (options.busy)
    std::printf("the consumer was busy %.1f %% of the time\n",
                100 * result.busy_seconds / result.seconds);
  print_hashes(result, options);
  for (const Failure& failure : stats.skipped)
    std::printf("skipped %s\n", failure.message().c_str());
  for (const Failure& failure : stats.substituted)
    std::printf("substituted %s\n", failure.message().c_str());
  if (!options.profile.empty())
    std::printf("profile of %zu samples: %s\n", result.profiled, options.profile.c_str());
  std::printf("bound by %s\n", stats.bound_by.c_str());
}

}  // namespace

std::string json_text(const std::vector<RunResult>& jobs, const ReportOptions& options) {
  ordered_json json = json_of(jobs.size() == 1 ? jobs[0] : together(jobs), options);
  if (options.wire_bytes) json["wire_bytes"] = *options.wire_bytes;
  if (jobs.size() > 1) {
    json["jobs"] = ordered_json::array();
    for (const RunResult& job : jobs) json["jobs"].push_back(json_of(job, options));
  }
  return json.dump(2);
}

void print(const std::vector<RunResult>& jobs, const ReportOptions& options) {
  if (jobs.size() > 1) std::printf("%zu jobs together: ", jobs.size());
  print_one(jobs.size() == 1 ? jobs[0] : together(jobs), options);
  for (std::size_t i = 0; jobs.size() > 1 && i < jobs.size(); ++i) {
    const RunResult& job = jobs[i];
    std::printf("job %zu: %lld samples in %.2f s: %.0f samples/s", i + 1,
                static_cast<long long>(job.samples), job.seconds,
                static_cast<double>(job.samples) / job.seconds);
    if (const auto& cache = job.stats.cache) {
      const long long hits = cache->hits, misses = cache->misses;
      std::printf(", %lld of %lld from the cache", hits, hits + misses);
    }
    std::printf("\n");
    print_hashes(job, options);
  }
  if (options.wire_bytes)
    std::printf("%s went over the link\n", bytes_text(*options.wire_bytes).c_str());
}

}  // namespace cutwater::cli
