// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <tuple>

#include "bind.h"
#include "cutwater/cache.h"
#include "cutwater/plan.h"

namespace cutwater::python {
namespace {

Plan made(const Profile& profile, const std::string& policy, std::int64_t epochs,
          std::optional<std::uint64_t> disk, std::optional<std::uint64_t> memory,
          std::optional<int> threads, std::optional<double> consumer, const std::string& page_cache,
          std::optional<std::tuple<double, double, double>> prices, int jobs, bool same_seed,
          bool processes, const std::string& split, std::optional<double> storage_rate,
          std::optional<double> cache_rate, std::optional<double> link_rate,
          std::optional<std::int64_t> window, std::optional<int> storage_threads,
          double storage_speed) {
  PlanOptions options;
  options.policy = policy_named(policy);
  options.epochs = epochs;
  options.disk_bytes = disk;
  options.memory_bytes = memory;
  options.threads = threads;
  options.consumer_samples_per_s = consumer;
  options.residency = residency_named(page_cache);
  if (prices) {
    const auto& [disk_gb_month, core_hour, months] = *prices;
    options.prices = Prices{disk_gb_month, core_hour, months};
  }
  options.cache_books = kCacheBooks;
  options.jobs = jobs;
  options.same_seed = same_seed;
  options.processes = processes;
  options.split = split;
  options.storage_bytes_per_s = storage_rate;
  options.cache_bytes_per_s = cache_rate;
  options.link_bytes_per_s = link_rate;
  options.window_samples = window;
  options.storage_threads = storage_threads;
  options.storage_speed = storage_speed;
  const nb::gil_scoped_release released;
  return make_plan(profile, options);
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Plan>(m, "Plan", "Strategies of a profile, ranked.")
      .def_static("from_json", &plan_from_json, nb::arg("text"))
      .def("to_json", [](const Plan& plan) { return to_json(plan); })
      .def(
          "explain",
          [](const Plan& plan, std::optional<std::size_t> rows) {
            return explain(plan, rows.value_or(std::numeric_limits<std::size_t>::max()));
          },
          nb::arg("rows").none());
  m.def("make_plan", &made, nb::arg("profile"), nb::arg("policy"), nb::arg("epochs"),
        nb::arg("disk").none(), nb::arg("memory").none(), nb::arg("threads").none(),
        nb::arg("consumer").none(), nb::arg("page_cache"), nb::arg("prices").none(),
        nb::arg("jobs"), nb::arg("same_seed"), nb::arg("processes"), nb::arg("split"),
        nb::arg("storage_rate").none(), nb::arg("cache_rate").none(), nb::arg("link_rate").none(),
        nb::arg("window").none(), nb::arg("storage_threads").none(), nb::arg("storage_speed"));
}

}  // namespace cutwater::python
