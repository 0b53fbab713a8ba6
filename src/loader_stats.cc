// SPDX-License-Identifier: Apache-2.0
#include "loader_stats.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cutwater {
namespace {

std::string per_cent(double share) { return std::to_string(std::lround(share * 100)) + " %"; }

}  // namespace

std::string bottleneck(const LoaderStats& stats) {
  const double thread_seconds = stats.elapsed_seconds * stats.threads;
  if (stats.batches == 0 || thread_seconds <= 0) return "nothing yet";
  const double waited = stats.consumer_wait_seconds / stats.elapsed_seconds;
  if (waited < 0.05)
    return "consumer: it waited for data only " + per_cent(waited) + " of the time";
  const double idle = stats.worker_wait_seconds / thread_seconds;
  if (idle > 0.5)
    return "memory: threads were idle " + per_cent(idle) +
           " of the time for want of room; raise memory_limit or lower batch_size";
  double op_seconds = 0;
  const NamedOpTime* slowest = nullptr;
  for (const NamedOpTime& op : stats.ops) {
    op_seconds += op.seconds;
    if (slowest == nullptr || op.seconds > slowest->seconds) slowest = &op;
  }
  const NamedOpTime beside[] = {
      {"the cache", stats.cache ? stats.cache->seconds : 0, 0},
      {"putting samples aside for the store", stats.store ? stats.store->seconds : 0, 0}};
  for (const NamedOpTime& keeper : beside) {
    op_seconds += keeper.seconds;
    if (slowest == nullptr || keeper.seconds > slowest->seconds) slowest = &keeper;
  }
  const double busy = std::max(stats.read_seconds + op_seconds, 1e-9);
  if (stats.read_seconds >= op_seconds && stats.fetch)
    return "network: threads wait for samples " + per_cent(stats.read_seconds / busy) +
           " of the time; " + stats.fetch->decision;
  if (stats.read_seconds >= op_seconds)
    return "storage: reading takes " + per_cent(stats.read_seconds / busy) +
           " of the threads' work";
  return "cpu: " + slowest->name + " takes " + per_cent(slowest->seconds / busy) +
         " of the work of " + std::to_string(stats.threads) +
         (stats.threads == 1 ? " thread" : " threads");
}

std::vector<NamedOpTime> op_times(const What& what, bool fuse,
                                  std::map<Route, std::vector<OpTime>> routes) {
  const Pipeline& pipeline = what.pipeline;
  const Route direct{what.source->cut(), pipeline.last_cut()};
  if (routes.empty()) routes[direct];
  std::map<std::pair<int, int>, NamedOpTime> named;  // by the group's steps
  for (auto& [route, times] : routes) {
    times.resize(pipeline.steps().size());
    for (const Group& group : pipeline.groups(route.from, route.to, fuse)) {
      NamedOpTime& time = named[{group.begin, group.end}];
      time.name = pipeline.name_of(group);
      time.calls += times[static_cast<std::size_t>(group.begin)].calls;
      for (int k = group.begin; k < group.end; ++k)  // a group may also have run op by op
        time.seconds += 1e-9 * static_cast<double>(times[static_cast<std::size_t>(k)].nanoseconds);
    }
  }
  std::vector<NamedOpTime> ops;
  for (auto& [steps, time] : named) ops.push_back(std::move(time));
  return ops;
}

}  // namespace cutwater
