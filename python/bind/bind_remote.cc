// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bind.h"
#include "cutwater/remote.h"

namespace cutwater::python {

static nb::dict times_dict(const FetchReport::Times& times) {
  nb::dict dict;
  dict["consumer_s"] = times.consumer_s;
  dict["compute_s"] = times.compute_s;
  dict["storage_s"] = times.storage_s;
  dict["network_s"] = times.network_s;
  return dict;
}

nb::dict fetch_dict(const FetchReport& report) {
  nb::dict ways;
  for (const FetchReport::Way& way : report.ways) {
    if (way.samples == 0) continue;
    nb::dict one;
    one["samples"] = way.samples;
    one["bytes"] = way.bytes;
    one["storage_seconds"] = way.storage_seconds;
    ways[way.name.c_str()] = one;
  }
  nb::dict dict;
  dict["policy"] = report.policy;
  dict["decision"] = report.decision;
  dict["times"] = nb::none();
  if (report.times) {
    nb::dict times;
    times["before"] = times_dict(report.times->before);
    times["after"] = times_dict(report.times->after);
    dict["times"] = times;
  }
  dict["wire_bytes"] = report.wire_bytes;
  dict["stored_bytes"] = report.stored_bytes;
  dict["storage_seconds"] = report.storage_seconds;
  dict["storage_threads"] = report.storage_threads;
  dict["by_way"] = ways;
  dict["retries"] = report.retries;
  dict["hedged"] = report.hedged;
  dict["damaged"] = report.damaged;
  dict["ran_less"] = report.ran_less;
  dict["fallbacks"] = report.fallbacks;
  dict["trouble"] = report.trouble.empty() ? nb::none() : nb::object(nb::cast(report.trouble));
  return dict;
}

void bind_remote(nb::module_& m) {
  m.def(
      "open_remote",
      [](const std::string& url, const std::string& token, const nb::str& ca, double patience_s,
         std::shared_ptr<Source> fallback) {
        RemoteOptions options;
        options.token = token;
        options.ca = file_name(ca);
        options.patience_s = patience_s;
        options.fallback = std::move(fallback);
        const nb::gil_scoped_release released;  // servers are asked
        return std::const_pointer_cast<Source>(open_remote(url, options));
      },
      nb::arg("url"), nb::arg("token"), nb::arg("ca"), nb::arg("patience_s"),
      nb::arg("fallback").none());
}

}  // namespace cutwater::python
