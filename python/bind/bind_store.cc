// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "bind.h"
#include "cutwater/store.h"

namespace cutwater::python {
namespace {

nb::dict info_dict(const StoreInfo& info) {
  nb::dict dict;
  dict["samples"] = info.samples - static_cast<std::int64_t>(info.bad.size());
  dict["bytes"] = info.bytes;
  dict["raw_bytes"] = info.raw_bytes;
  dict["cut"] = info.cut;
  dict["cut_name"] = info.cut_name;
  dict["codec"] = to_string(info.codec);
  dict["pipeline"] = info.pipeline;
  dict["fingerprint"] = info.fingerprint;
  dict["bad"] = failure_list(info.bad);
  return dict;
}

// `on_progress` is called with (done, samples, bytes), some times a second.
nb::dict materialized(const std::shared_ptr<Source>& source, const Pipeline& pipeline, Cut cut,
                      const std::string& codec, const nb::str& out, std::optional<int> threads,
                      const nb::object& on_progress) {
  StoreForecast forecast;
  MaterializeProgress last;
  MaterializeOptions options;
  options.codec = codec_named(codec);
  options.threads = threads;
  options.on_forecast = [&](const StoreForecast& made) { forecast = made; };
  options.on_progress = [&](const MaterializeProgress& now) {
    last = now;
    const nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!on_progress.is_none()) on_progress(now.done, now.samples, now.bytes);
  };
  StoreInfo info;
  {
    const std::string folder = file_name(out);
    const nb::gil_scoped_release released;
    info = materialize(source, pipeline, cut, folder, options);
  }
  nb::dict dict = info_dict(info);
  dict["payload_bytes"] = *info.payload_bytes;
  nb::dict foreseen;
  foreseen["bytes"] = forecast.bytes;
  foreseen["seconds"] = forecast.seconds;
  foreseen["free_bytes"] = forecast.free_bytes;
  dict["forecast"] = foreseen;
  dict["resumed"] = last.resumed;
  return dict;
}

}  // namespace

void bind_store(nb::module_& m) {
  m.def("materialize", &materialized, nb::arg("source"), nb::arg("pipeline"), nb::arg("cut"),
        nb::arg("codec"), nb::arg("out"), nb::arg("threads").none(), nb::arg("on_progress").none());
  m.def(
      "open_store",
      [](const nb::str& path) {
        const std::string name = file_name(path);
        const nb::gil_scoped_release released;
        return std::const_pointer_cast<Source>(open_store(name));
      },
      nb::arg("path"));
  m.def(
      "store_info", [](const nb::str& path) { return info_dict(store_info(file_name(path))); },
      nb::arg("path"));
}

}  // namespace cutwater::python
