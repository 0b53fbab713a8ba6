// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bind.h"
#include "cutwater/options.h"

namespace cutwater::python {
namespace {

nb::dict stats_dict(const Cache& cache) {
  const CacheStats stats = cache.stats();
  const std::string trouble = cache.trouble();
  nb::dict dict;
  dict["bytes"] = stats.bytes;
  dict["limit"] = stats.limit;
  dict["entries"] = stats.entries;
  dict["hits"] = stats.hits;
  dict["misses"] = stats.misses;
  dict["refused"] = stats.refused;
  dict["evicted"] = stats.evicted;
  dict["damaged"] = stats.damaged;
  dict["trouble"] = trouble.empty() ? nb::none() : nb::object(nb::cast(trouble));
  return dict;
}

}  // namespace

void bind_cache(nb::module_& m) {
  nb::class_<Cache>(m, "Cache", "Bytes by key, kept so that work need not be done again.")
      .def("stats", &stats_dict);
  m.def(
      "open_cache", [](const std::string& text) { return cache_named(text); }, nb::arg("text"),
      nb::call_guard<nb::gil_scoped_release>(), "The cache that a text stands for.");
}

}  // namespace cutwater::python
